//! Libraries of one worker: loaded when the first of their functions is called, in one state of Lua.
//!
//! Upvalues of a function keep their values from call to call, as long as its library and the state stay.

use std::sync::Arc;

use lua::{Function, NotLoaded, State};

use super::hashed::HashedMap;
use crate::config::redis_version;
use crate::limits::{FUNCTIONS_OF_SCRIPTS, LIBRARY_AGAIN_MOST};
use crate::request::Failure;
use crate::script::{Library, LoadHost, Script};
use crate::server::Server;

/// See the module.
#[derive(Default)]
pub(super) struct Loaded {
    state: Option<State>,
    libraries: Vec<Own>,
    /// Functions by hashes of their names, as requests have them.
    by_name: HashedMap<u64, Arc<Script>>,
    /// The generation of libraries that these are of.
    generation: u64,
}

/// A library in the state.
struct Own {
    library: Arc<Library>,
    /// In the order of the library's.
    functions: Vec<Function>,
}

impl Loaded {
    pub(super) fn find(&self, server: &Server, hash: u64, name: &[u8]) -> Option<Arc<Script>> {
        if self.generation != server.persistence.libraries.generation() {
            return None;
        }
        let script = self.by_name.get(&hash)?;
        let is_it = script.name.as_bytes().eq_ignore_ascii_case(name);
        is_it.then(|| Arc::clone(script))
    }

    pub(super) fn note(&mut self, server: &Server, hash: u64, script: &Arc<Script>) {
        self.renew(server);
        if self.by_name.len() >= FUNCTIONS_OF_SCRIPTS {
            self.by_name.clear();
        }
        self.by_name.insert(hash, Arc::clone(script));
    }

    /// Forgets libraries that the server has no more.
    fn renew(&mut self, server: &Server) {
        let generation = server.persistence.libraries.generation();
        if self.generation == generation {
            return;
        }
        self.generation = generation;
        self.by_name.clear();
        let current = server.persistence.libraries.all();
        let is_current = |own: &Own| current.iter().any(|one| Arc::ptr_eq(one, &own.library));
        let (stay, go) = std::mem::take(&mut self.libraries)
            .into_iter()
            .partition(is_current);
        self.libraries = stay;
        if let Some(state) = &mut self.state {
            forget(state, go);
        }
    }

    /// The state, and a function of a library in it.
    ///
    /// # Errors
    /// The text does not register the functions that it has registered in FUNCTION LOAD, or there is no
    /// memory.
    pub(super) fn function(
        &mut self,
        server: &Server,
        script: &Script,
    ) -> Result<(&mut State, &Function), Failure> {
        self.renew(server);
        let library = script.library.as_ref().expect("it is a function");
        let state = self
            .state
            .get_or_insert_with(|| State::for_libraries(server.lua_state_limit(), redis_version()));
        let is_it = |own: &Own| Arc::ptr_eq(&own.library, library);
        let known = self.libraries.iter().position(is_it);
        let at = match known {
            Some(at) => at,
            None => {
                let functions = load(server, state, script)?;
                let library = Arc::clone(library);
                self.libraries.push(Own { library, functions });
                self.libraries.len() - 1
            }
        };
        Ok((state, &self.libraries[at].functions[script.number]))
    }

    /// After a run. A state that has met its limit makes room for a new one.
    pub(super) fn rest(&mut self) {
        if self.state.as_mut().is_some_and(|state| !state.rest()) {
            // The functions are the state's: they end with it.
            self.libraries.clear();
            self.state = None;
        }
    }
}

#[cold]
fn load(server: &Server, state: &mut State, script: &Script) -> Result<Vec<Function>, Failure> {
    let library = script.library.as_ref().expect("it is a function");
    let is_ending = || server.is_ending() || server.is_shutting_down();
    let mut host = LoadHost::new(LIBRARY_AGAIN_MOST, &is_ending);
    let text = Library::body(&library.text);
    let registered = state.load_library(&mut host, text, server.lua_run_limit());
    let mut registered = registered.map_err(|why| match why {
        NotLoaded::Compile(message) | NotLoaded::Run(message) => not_loaded(library, &message),
        NotLoaded::Stopped => not_loaded(library, b"it takes too long"),
    })?;
    registered.sort_by(|one, other| one.name.cmp(&other.name));
    let names = registered.iter().map(|one| &one.name);
    if !names.eq(library.functions.iter().map(|one| &one.name)) {
        let functions = registered.into_iter().map(|one| one.function);
        functions.for_each(|function| state.forget(function));
        return Err(not_loaded(library, b"it registers other functions now"));
    }
    // A proof is about all functions of a library.
    let (keys, argv) = (script.names_its_keys(), script.only_reads_argv());
    let functions = registered.into_iter();
    let own = functions.map(|one| one.function.only_reads(keys, argv));
    Ok(own.collect())
}

fn forget(state: &mut State, libraries: Vec<Own>) {
    for own in libraries {
        own.functions
            .into_iter()
            .for_each(|function| state.forget(function));
    }
}

fn not_loaded(library: &Library, why: &[u8]) -> Failure {
    let before = format!("ERR Error loading library '{}': ", library.name);
    Failure([before.as_bytes(), why].concat().into())
}
