//! Lua of one worker: made when the first script comes, and functions of the scripts that have run.

use std::collections::HashMap;

use lua::{Function, State};

use crate::config::{REDIS_VERSION, Setting};
use crate::limits::{
    FUNCTIONS_OF_SCRIPTS, SCRIPT_MEMORY_LEAST, SCRIPT_MEMORY_MOST, SCRIPT_MEMORY_SHARE,
};
use crate::script::{Script, Sha};
use crate::server::Server;

/// See the module.
#[derive(Default)]
pub(crate) struct Engine {
    state: Option<State>,
    functions: HashMap<Sha, Function>,
    /// The generation of scripts that the functions are of.
    generation: u64,
}

/// Bytes that a state of Lua may have.
fn limit(server: &Server) -> usize {
    let share = server.settings.int(Setting::MaxMemory).max(0) as usize / SCRIPT_MEMORY_SHARE;
    match share {
        0 => SCRIPT_MEMORY_MOST,
        share => share.clamp(SCRIPT_MEMORY_LEAST, SCRIPT_MEMORY_MOST),
    }
}

/// The version that scripts see.
fn version() -> [u8; 3] {
    let mut parts = REDIS_VERSION
        .split('.')
        .map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

impl Engine {
    /// The state, and the function of a script in it.
    ///
    /// # Errors
    /// The message of Lua, if the text is no script.
    pub(crate) fn function(
        &mut self,
        server: &Server,
        script: &Script,
    ) -> Result<(&mut State, &Function), Vec<u8>> {
        let generation = server.scripts.generation();
        if self.generation != generation || self.functions.len() >= FUNCTIONS_OF_SCRIPTS {
            self.clear();
            self.generation = generation;
        }
        let state = self
            .state
            .get_or_insert_with(|| State::new(limit(server), version()));
        let function = match self.functions.entry(script.sha) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => {
                new.insert(state.compile("@user_script", script.body())?)
            }
        };
        Ok((state, function))
    }

    /// After a run: a state that has met its limit makes room for a new one.
    pub(crate) fn rest(&mut self) {
        if self.state.as_mut().is_some_and(|state| !state.rest()) {
            self.clear();
        }
    }

    fn clear(&mut self) {
        // The functions are the state's: they end with it.
        self.functions.clear();
        self.state = None;
    }
}
