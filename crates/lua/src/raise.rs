//! How callbacks are entered and how they raise errors. The work of a callback is a plain function that
//! returns the number of its results, or [`Raise`]; raising is the last statement of the callback itself.

use std::ffi::CStr;
use std::os::raw::c_int;

use mlua_sys::{lua_CFunction, lua_State};

use crate::stack::Lua;

/// An error that a callback raises.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Raise {
    /// The value on top of the stack.
    Top,
    /// A message, with the place of the caller in front of it.
    Text(&'static CStr),
    /// A message about an argument.
    Argument(c_int, &'static CStr),
    /// A message about an argument, on top of the stack.
    ArgumentTop(c_int),
    /// Another type was expected of an argument.
    Type(c_int, &'static CStr),
    /// There is no memory.
    Memory,
    /// The run is being stopped.
    Stop,
}

/// The results of a callback: how many of the values on top of the stack.
pub(crate) type Returned = Result<c_int, Raise>;

/// A library's functions by name.
pub(crate) type Functions = &'static [(&'static CStr, lua_CFunction)];

impl Raise {
    /// Leaves the callback.
    #[cold]
    fn now(self, lua: Lua<'_>) -> ! {
        match self {
            Raise::Top => {}
            Raise::Text(text) => {
                lua.push_place(1);
                lua.push(text.to_bytes());
                lua.concat(2);
            }
            Raise::Argument(index, text) => lua.raise_argument(index, text),
            Raise::ArgumentTop(index) => lua.raise_argument_top(index),
            Raise::Type(index, expected) => lua.raise_type(index, expected),
            Raise::Memory => lua.push(NO_MEMORY),
            Raise::Stop => lua.push_light(std::ptr::null_mut()),
        }
        lua.raise_top()
    }
}

/// The message that Lua itself raises, a string that every state keeps: pushing it needs no memory.
pub(crate) const NO_MEMORY: &[u8] = b"not enough memory";

/// Runs the work of a callback. A panic ends the process: it can't pass the frames of Lua.
///
/// # Safety
///
/// Lua has called the callback with this state. The work keeps the agreement of [`crate::stack`].
#[inline]
pub(crate) unsafe fn enter(raw: *mut lua_State, work: impl Fn(Lua<'_>) -> Returned) -> c_int {
    // SAFETY: the caller's promise.
    let lua = unsafe { Lua::of(raw) };
    match abort_on_panic(|| work(lua)) {
        Ok(results) => results,
        Err(raise) => raise.now(lua),
    }
}

/// Runs `work`; if it panics, the process ends.
#[inline]
pub(crate) fn abort_on_panic<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(panic = "unwind")]
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(_) => std::process::abort(),
    }
    #[cfg(not(panic = "unwind"))]
    work()
}

/// The callback around a function `fn(Lua) -> Returned`.
macro_rules! callback {
    ($work:path) => {{
        unsafe extern "C-unwind" fn entry(raw: *mut mlua_sys::lua_State) -> std::os::raw::c_int {
            // SAFETY: Lua calls it with its state; the work keeps the agreement of `stack`.
            unsafe { $crate::raise::enter(raw, $work) }
        }
        let entry: mlua_sys::lua_CFunction = entry;
        entry
    }};
}

pub(crate) use callback;
