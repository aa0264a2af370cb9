//! Libraries: a text runs once and registers functions, which run later.

use std::os::raw::c_void;

use mlua_sys as ffi;

use crate::function::Function;
use crate::host::Host;
use crate::libraries::{FLAGS, is_name};
use crate::loader::Loading;
use crate::machine::Registration;
use crate::state::{Entered, LOADER, State};

/// A function that a library has registered.
#[derive(Debug)]
pub struct Registered {
    /// Its name, of letters, digits and `_`.
    pub name: String,
    /// Its description.
    pub description: Option<Vec<u8>>,
    /// Bits: the places of its flags in [`FUNCTION_FLAGS`].
    pub flags: u32,
    /// The function, in the state that has loaded the library.
    pub function: Function,
}

/// Why a library was not loaded.
#[derive(Debug, PartialEq, Eq)]
pub enum NotLoaded {
    /// The message of Lua: its text is no chunk.
    Compile(Vec<u8>),
    /// The error of its run, with its code.
    Run(Vec<u8>),
    /// The host has stopped its run.
    Stopped,
}

/// The flags of functions.
pub const FUNCTION_FLAGS: [&[u8]; 5] = FLAGS;

/// Whether bytes may be the name of a function or of a library.
#[must_use]
pub fn is_function_name(name: &[u8]) -> bool {
    is_name(name)
}

impl State {
    /// Runs the text of a library, and returns the functions that it has registered. `memory_most`: bytes
    /// that the run may take from the process.
    ///
    /// # Errors
    ///
    /// There is no such function, or the host has stopped it. Nothing is left in the state then.
    pub fn load_library(
        &mut self,
        host: &mut dyn Host,
        text: &[u8],
        memory_most: usize,
    ) -> Result<Vec<Registered>, NotLoaded> {
        let mut loading = Loading {
            text,
            message: None,
        };
        *self.machine().registered.borrow_mut() = Some(Vec::new());
        let task: *mut c_void = (&raw mut loading).cast();
        let entered = self.enter(host, LOADER, task, memory_most);
        let registered = self.machine().registered.borrow_mut().take();
        let registered = registered.unwrap_or_default();
        self.restore_globals();
        let problem = match (entered, loading.message) {
            (Entered::Done, None) => {
                let share = text.len() / registered.len().max(1);
                let functions = registered.into_iter().map(|one| Registered {
                    name: String::from_utf8_lossy(&one.name).into_owned(),
                    description: one.description,
                    flags: one.flags,
                    function: self.function(one.reference, share),
                });
                return Ok(functions.collect());
            }
            (_, Some(message)) => NotLoaded::Compile(message),
            (Entered::Stopped, None) => NotLoaded::Stopped,
            (Entered::Failed, None) => NotLoaded::Run(self.machine().fault.borrow().text.clone()),
        };
        for Registration { reference, .. } in registered {
            self.release(reference);
        }
        Err(problem)
    }

    /// Gives the globals the base of functions.
    fn restore_globals(&mut self) {
        let lua = self.lua();
        // The loader without a task. It allocates nothing.
        lua.copy(LOADER);
        lua.push_light(std::ptr::null_mut());
        let status = lua.protected_call(1, 0, 0);
        debug_assert_eq!(status, ffi::LUA_OK);
        lua.set_top(LOADER);
    }
}
