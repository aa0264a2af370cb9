//! Lua's C API in the form that the callbacks of this crate use: [`Lua`] is a state, or a coroutine, that a
//! callback has been called with.
//!
//! The methods are safe functions under one agreement, which whoever makes a [`Lua`] answers for
//! ([`Lua::of`]), and which all code of this crate keeps:
//!
//! 1. An index is a value on the stack, an upvalue or a pseudo-index, unless the method allows none. A
//!    callback has room for 20 values beside its arguments; beyond that it asks by [`Lua::reserve`].
//! 2. Many methods leave by a jump (an error of Lua, no memory). No frame that may be jumped over owns
//!    anything that needs `Drop`, or holds a borrow of a `RefCell`.
//! 3. Bytes of a string are read while the string is on the stack or in a place that the script can't reach.
//! 4. All of it stands inside a protected call.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;
use std::slice;

use mlua_sys as ffi;
use mlua_sys::{lua_CFunction, lua_State};

use crate::machine::Machine;

unsafe extern "C-unwind" {
    /// Hands the count of nested C calls on to a coroutine. Part of `lua.h` that `mlua-sys` leaves out.
    fn lua_setlevel(from: *mut lua_State, to: *mut lua_State);
}

/// A state or a coroutine, for the time of a callback.
#[derive(Clone, Copy)]
pub(crate) struct Lua<'l> {
    pub(crate) raw: *mut lua_State,
    lifetime: PhantomData<&'l Machine>,
}

/// Methods that only hand their arguments on.
macro_rules! forward {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)? = $function:ident;)*) => {
        impl Lua<'_> {
            $(
                $(#[$doc])*
                #[inline]
                pub(crate) fn $name(self, $($arg: $type),*) $(-> $result)? {
                    // SAFETY: the agreement at the top of this file.
                    unsafe { ffi::$function(self.raw, $($arg),*) }
                }
            )*
        }
    };
}

forward! {
    /// Number of values on the stack of this call.
    fn top() -> c_int = lua_gettop;
    fn set_top(top: c_int) = lua_settop;
    fn pop(count: c_int) = lua_pop;
    /// Pushes a copy of a value.
    fn copy(index: c_int) = lua_pushvalue;
    fn remove(index: c_int) = lua_remove;
    /// Moves the top to a place below.
    fn insert(index: c_int) = lua_insert;
    /// Pops the top into a place.
    fn replace(index: c_int) = lua_replace;
    /// The type: `LUA_TNONE` where there is no value.
    fn kind(index: c_int) -> c_int = lua_type;
    fn number(index: c_int) -> f64 = lua_tonumber;
    fn raw_len(index: c_int) -> usize = lua_objlen;
    fn push_nil() = lua_pushnil;
    fn push_number(number: f64) = lua_pushnumber;
    fn push_light(pointer: *mut c_void) = lua_pushlightuserdata;
    fn push_closure(function: lua_CFunction, upvalues: c_int) = lua_pushcclosure;
    fn new_table(array: c_int, record: c_int) = lua_createtable;
    /// Pops a key, pushes its value, without metamethods.
    fn raw_get(table: c_int) = lua_rawget_;
    fn raw_get_at(table: c_int, at: c_int) = lua_rawgeti_;
    /// Pops a value and the key below it.
    fn raw_set(table: c_int) = lua_rawset;
    fn raw_set_at(table: c_int, at: c_int) = lua_rawseti_;
    /// Pops a key, pushes its value.
    fn get(table: c_int) = lua_gettable_;
    fn set_metatable(index: c_int) -> c_int = lua_setmetatable;
    /// Calls a function with so many arguments on top of it.
    fn call(arguments: c_int, results: c_int) = lua_call;
    /// The same; an error is the only result. `handler`: an index, or 0.
    fn protected_call(arguments: c_int, results: c_int, handler: c_int) -> c_int = lua_pcall;
    fn concat(count: c_int) = lua_concat;
    fn thread(index: c_int) -> *mut lua_State = lua_tothread;
    fn new_thread() -> *mut lua_State = lua_newthread;
    fn status() -> c_int = lua_status;
    fn raise_top() -> ! = lua_error;
    /// The place of the caller in the text, in front of messages.
    fn push_place(level: c_int) = luaL_where;
    fn expect_any(index: c_int) = luaL_checkany;
    fn expect_number(index: c_int) -> f64 = luaL_checknumber;
    fn reference(table: c_int) -> c_int = luaL_ref;
    fn release(table: c_int, reference: c_int) = luaL_unref;
    fn collect(action: c_int, data: c_int) -> c_int = lua_gc;
}

impl<'l> Lua<'l> {
    /// A state in a callback, or around one protected call.
    ///
    /// # Safety
    ///
    /// The state is alive for `'l` and made by [`crate::state::State`]. The caller keeps the agreement at the
    /// top of this file.
    #[inline]
    pub(crate) unsafe fn of(raw: *mut lua_State) -> Lua<'l> {
        Lua {
            raw,
            lifetime: PhantomData,
        }
    }

    /// The data of the state.
    #[inline]
    pub(crate) fn machine(self) -> &'l Machine {
        let mut data = ptr::null_mut();
        // SAFETY: the agreement at the top of this file. The allocator's data is the memory of a `Machine`,
        // its first field, and lives as long as the state.
        unsafe {
            ffi::lua_getallocf(self.raw, &mut data);
            &*data.cast::<Machine>()
        }
    }

    #[inline]
    pub(crate) fn is(self, index: c_int, kind: c_int) -> bool {
        self.kind(index) == kind
    }

    #[inline]
    pub(crate) fn is_none_or_nil(self, index: c_int) -> bool {
        self.kind(index) <= ffi::LUA_TNIL
    }

    /// Whether a value is a number, or a string that is the text of one.
    #[inline]
    pub(crate) fn is_number(self, index: c_int) -> bool {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_isnumber(self.raw, index) != 0 }
    }

    /// Whether a value is a string or a number.
    #[inline]
    pub(crate) fn is_string(self, index: c_int) -> bool {
        matches!(self.kind(index), ffi::LUA_TSTRING | ffi::LUA_TNUMBER)
    }

    pub(crate) fn is_c_function(self, index: c_int) -> bool {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_iscfunction(self.raw, index) != 0 }
    }

    #[inline]
    pub(crate) fn truth(self, index: c_int) -> bool {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_toboolean(self.raw, index) != 0 }
    }

    #[inline]
    pub(crate) fn push_boolean(self, value: bool) {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_pushboolean(self.raw, c_int::from(value)) }
    }

    /// The pointer that a light userdata is.
    #[inline]
    pub(crate) fn light(self, index: c_int) -> *mut c_void {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_touserdata(self.raw, index) }
    }

    /// Address of a table, function or coroutine.
    #[inline]
    pub(crate) fn address(self, index: c_int) -> usize {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_topointer(self.raw, index) as usize }
    }

    #[inline]
    pub(crate) fn push_function(self, function: lua_CFunction) {
        self.push_closure(function, 0);
    }

    #[inline]
    pub(crate) fn push(self, bytes: &[u8]) {
        let text: *const c_char = bytes.as_ptr().cast();
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_pushlstring_(self.raw, text, bytes.len()) }
    }

    /// The bytes of a string; a number becomes one in its place, like `%.14g`.
    #[inline]
    pub(crate) fn bytes(self, index: c_int) -> Option<&'l [u8]> {
        let mut len = 0;
        // SAFETY: the agreement at the top of this file: the string stays where it is.
        unsafe {
            let text = ffi::lua_tolstring(self.raw, index, &mut len);
            if text.is_null() {
                return None;
            }
            Some(slice::from_raw_parts(text.cast(), len))
        }
    }

    /// The bytes of an argument that has to be a string or a number.
    #[inline]
    pub(crate) fn expect_bytes(self, index: c_int) -> &'l [u8] {
        let mut len = 0;
        // SAFETY: the agreement at the top of this file: the string stays where it is.
        unsafe {
            let text = ffi::luaL_checklstring(self.raw, index, &mut len);
            slice::from_raw_parts(text.cast(), len)
        }
    }

    /// An argument that has to be a number, truncated as C does it on x86-64.
    #[inline]
    pub(crate) fn expect_integer(self, index: c_int) -> i64 {
        truncated(self.expect_number(index))
    }

    /// The same, or a value of its own where the argument is missing.
    #[inline]
    pub(crate) fn integer_or(self, index: c_int, otherwise: i64) -> i64 {
        if self.is_none_or_nil(index) {
            otherwise
        } else {
            self.expect_integer(index)
        }
    }

    /// Raises an error unless an argument has a type.
    #[inline]
    pub(crate) fn expect(self, index: c_int, kind: c_int) {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::luaL_checktype(self.raw, index, kind) }
    }

    /// Whether there is room for so many values more; makes it.
    #[inline]
    pub(crate) fn has_room(self, values: c_int) -> bool {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_checkstack(self.raw, values) != 0 }
    }

    /// Pushes the metatable of a value, if it has one.
    #[inline]
    pub(crate) fn push_metatable(self, index: c_int) -> bool {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_getmetatable(self.raw, index) != 0 }
    }

    /// Pops a key, pushes the next one and its value, if there is one.
    #[inline]
    pub(crate) fn next(self, table: c_int) -> bool {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_next(self.raw, table) != 0 }
    }

    /// `a < b`, with metamethods.
    pub(crate) fn is_less(self, a: c_int, b: c_int) -> bool {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::lua_lessthan(self.raw, a, b) != 0 }
    }

    pub(crate) fn type_name(self, index: c_int) -> &'static CStr {
        // SAFETY: the agreement at the top of this file; the names are constants of Lua.
        unsafe { CStr::from_ptr(ffi::luaL_typename(self.raw, index)) }
    }

    /// Moves values to another coroutine of the state, which has room.
    pub(crate) fn move_to(self, other: Lua<'_>, count: c_int) {
        // SAFETY: the agreement at the top of this file, for both.
        unsafe { ffi::lua_xmove(self.raw, other.raw, count) }
    }

    /// Resumes this coroutine from another with so many arguments.
    pub(crate) fn resume_from(self, from: Lua<'_>, arguments: c_int) -> c_int {
        // SAFETY: the agreement at the top of this file, for both.
        unsafe {
            lua_setlevel(from.raw, self.raw);
            ffi::lua_resume_(self.raw, arguments)
        }
    }

    /// Whether there is a call at `level`. 0 is the running function.
    pub(crate) fn has_level(self, level: c_int) -> bool {
        // SAFETY: the agreement at the top of this file; `zeroed` is a value of this record of numbers and
        // pointers, which the function fills.
        unsafe { ffi::lua_getstack(self.raw, level, &mut std::mem::zeroed()) != 0 }
    }

    /// Source and line of the call at `level`, and whether it is a function of C.
    pub(crate) fn place(self, level: c_int) -> Option<(&'l [u8], c_int, bool)> {
        // SAFETY: as above. The source is a string that ends with 0 and lives as long as its function,
        // which is running.
        unsafe {
            let mut call: ffi::lua_Debug = std::mem::zeroed();
            if ffi::lua_getstack(self.raw, level, &mut call) == 0
                || ffi::lua_getinfo(self.raw, c"Sl".as_ptr(), &mut call) == 0
            {
                return None;
            }
            let is_c = *call.what.cast::<u8>() == b'C';
            let source = CStr::from_ptr(call.source).to_bytes();
            Some((source, call.currentline, is_c))
        }
    }

    /// Sets a field of a table without metamethods. The value is popped.
    pub(crate) fn set_field(self, table: c_int, name: &CStr) {
        self.push(name.to_bytes());
        self.insert(-2);
        let table = if table < 0 && table > ffi::LUA_REGISTRYINDEX {
            table - 1
        } else {
            table
        };
        self.raw_set(table);
    }

    /// Pushes a field of a table without metamethods.
    pub(crate) fn push_field(self, table: c_int, name: &[u8]) {
        self.push(name);
        let table = if table < 0 && table > ffi::LUA_REGISTRYINDEX {
            table - 1
        } else {
            table
        };
        self.raw_get(table);
    }

    /// Reads a text and pushes its function, or the message of the error. Returns whether it is a function.
    pub(crate) fn load(self, name: &CStr, text: &[u8]) -> bool {
        let mut pieces = Pieces {
            text,
            is_begun: false,
        };
        let data: *mut c_void = (&raw mut pieces).cast();
        // SAFETY: the agreement at the top of this file. `pieces` lives until the call ends.
        unsafe { ffi::lua_load(self.raw, read_piece, data, name.as_ptr()) == ffi::LUA_OK }
    }

    /// The same; the chunk's name is a string on the stack.
    pub(crate) fn load_named(self, name: c_int, text: &[u8]) -> bool {
        let mut pieces = Pieces {
            text,
            is_begun: false,
        };
        let data: *mut c_void = (&raw mut pieces).cast();
        // SAFETY: the agreement at the top of this file. `pieces` lives until the call ends, and the name is
        // on the stack.
        unsafe {
            let name = ffi::lua_tolstring(self.raw, name, ptr::null_mut());
            ffi::lua_load(self.raw, read_piece, data, name) == ffi::LUA_OK
        }
    }

    /// Raises an error about an argument.
    pub(crate) fn raise_argument(self, index: c_int, message: &CStr) -> ! {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::luaL_argerror(self.raw, index, message.as_ptr()) };
        unreachable!("it does not return")
    }

    /// Raises an error about an argument. Its message is on top of the stack.
    pub(crate) fn raise_argument_top(self, index: c_int) -> ! {
        // SAFETY: the agreement at the top of this file. Strings of Lua end with a zero.
        unsafe {
            let message = ffi::lua_tolstring(self.raw, -1, ptr::null_mut());
            ffi::luaL_argerror(self.raw, index, message);
        }
        unreachable!("it does not return")
    }

    /// Raises an error about the type of an argument.
    pub(crate) fn raise_type(self, index: c_int, expected: &CStr) -> ! {
        // SAFETY: the agreement at the top of this file.
        unsafe { ffi::luaL_typerror(self.raw, index, expected.as_ptr()) };
        unreachable!("it does not return")
    }
}

/// A number as an integer, truncated. Those that have none give the least, as the processor does.
#[inline]
pub(crate) fn truncated(number: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number) {
        number as i64
    } else {
        i64::MIN
    }
}

/// A text for the parser: a space, then the text. No text begins with the mark of bytecode then, and lines
/// are counted as before.
struct Pieces<'t> {
    text: &'t [u8],
    is_begun: bool,
}

unsafe extern "C-unwind" fn read_piece(
    _: *mut lua_State,
    data: *mut c_void,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: `Lua::load` gives its pieces and waits.
    let (pieces, len) = unsafe { (&mut *data.cast::<Pieces<'_>>(), &mut *len) };
    let piece = if pieces.is_begun {
        std::mem::take(&mut pieces.text)
    } else {
        pieces.is_begun = true;
        b" "
    };
    *len = piece.len();
    if piece.is_empty() {
        return ptr::null();
    }
    piece.as_ptr().cast()
}
