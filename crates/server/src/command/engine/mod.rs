//! Lua of one worker: made when the first script comes, and functions of the scripts that have run.
//!
//! The worker finds a script that it has run by the SHA-1 of its text or by the text, as the request has it.
//! The registry of all workers is asked about others. `libraries` has the functions of libraries, in a state
//! of their own.

mod hashed;
mod libraries;

use std::collections::hash_map::Entry;
use std::sync::{Arc, Weak};

use lua::{Function, State};

use crate::config::redis_version;
use crate::limits::{FUNCTIONS_OF_SCRIPTS, SCRIPT_BUFFER_KEPT};
use crate::request::Failure;
use crate::script::{Script, Sha};
use crate::server::Server;
use hashed::HashedMap;
use libraries::Loaded;

/// A script and its function in the state. The registry owns the script.
struct Compiled {
    script: Weak<Script>,
    function: Function,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Engine {
    state: Option<State>,
    functions: HashedMap<Sha, Compiled>,
    /// Scripts of EVAL by hashes of their texts.
    by_text: HashedMap<u64, Weak<Script>>,
    /// The generation of scripts that these are of.
    generation: u64,
    libraries: Loaded,
    /// The buffer of replies.
    reply: Vec<u8>,
}

fn not_compiled(message: &[u8]) -> Failure {
    let before = b"ERR Error compiling script (new function): ";
    Failure([before, message].concat().into())
}

impl Engine {
    /// A script that has run here, and that the server has kept.
    pub(crate) fn find(&self, server: &Server, sha: &Sha) -> Option<Arc<Script>> {
        if self.generation != server.scripts.generation() {
            return None;
        }
        self.functions.get(sha)?.script.upgrade()
    }

    /// The same for a text. `hash`: of the text.
    pub(crate) fn find_text(&self, server: &Server, hash: u64, text: &[u8]) -> Option<Arc<Script>> {
        if self.generation != server.scripts.generation() {
            return None;
        }
        let script = self.by_text.get(&hash)?.upgrade()?;
        (*script.text == *text).then_some(script)
    }

    /// Notes that a script can be found by its text.
    pub(crate) fn note_text(&mut self, server: &Server, hash: u64, script: &Arc<Script>) {
        self.renew(server);
        self.by_text.insert(hash, Arc::downgrade(script));
    }

    /// Forgets all where scripts were flushed, or there are too many.
    fn renew(&mut self, server: &Server) {
        let generation = server.scripts.generation();
        let count = self.functions.len().max(self.by_text.len());
        if self.generation != generation || count >= FUNCTIONS_OF_SCRIPTS {
            self.clear();
            self.generation = generation;
        }
    }

    /// A function of a library that has run here. `hash`: of its name.
    pub(crate) fn find_function(
        &self,
        server: &Server,
        hash: u64,
        name: &[u8],
    ) -> Option<Arc<Script>> {
        self.libraries.find(server, hash, name)
    }

    /// Notes that a function of a library can be found by its name.
    pub(crate) fn note_function(&mut self, server: &Server, hash: u64, script: &Arc<Script>) {
        self.libraries.note(server, hash, script);
    }

    /// The state, and the function of a script in it.
    ///
    /// # Errors
    /// The text is no script, or there is no memory for it.
    pub(crate) fn function(
        &mut self,
        server: &Server,
        script: &Arc<Script>,
    ) -> Result<(&mut State, &Function), Failure> {
        match &script.library {
            None => self
                .function_of_text(server, script)
                .map_err(|message| not_compiled(&message)),
            Some(_) => self.libraries.function(server, script),
        }
    }

    fn function_of_text(
        &mut self,
        server: &Server,
        script: &Arc<Script>,
    ) -> Result<(&mut State, &Function), Vec<u8>> {
        self.renew(server);
        let state = self
            .state
            .get_or_insert_with(|| State::new(server.lua_state_limit(), redis_version()));
        let compiled = match self.functions.entry(script.sha) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let function = state.compile("@user_script", script.body())?;
                let function =
                    function.only_reads(script.names_its_keys(), script.only_reads_argv());
                let script = Weak::new();
                new.insert(Compiled { script, function })
            }
        };
        if compiled.script.as_ptr() != Arc::as_ptr(script) {
            compiled.script = Arc::downgrade(script);
        }
        Ok((state, &compiled.function))
    }

    /// The buffer for the reply of a run, empty.
    pub(crate) fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.reply)
    }

    /// After a run: keeps the buffer. A state that has met its limit makes room for a new one.
    pub(crate) fn rest(&mut self, mut reply: Vec<u8>) {
        reply.clear();
        reply.shrink_to(SCRIPT_BUFFER_KEPT);
        self.reply = reply;
        if self.state.as_mut().is_some_and(|state| !state.rest()) {
            self.clear();
        }
        self.libraries.rest();
    }

    fn clear(&mut self) {
        // The functions are the state's: they end with it.
        self.functions.clear();
        self.by_text.clear();
        self.state = None;
    }
}
