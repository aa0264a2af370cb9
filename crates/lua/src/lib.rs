//! Lua 5.1 for scripts of the server: a state with a limit of memory, functions that can be stopped at any
//! time, and globals that no script changes. The C sources are those of the crate `mlua-sys`, unpatched; a
//! sandbox in front of them does the rest. This crate knows no command and no key: they are the [`Host`]'s.
//!
//! Reading order: [`host`](Host) is the server as scripts see it, `alloc` the memory of a state, `machine`
//! its other data, `stack` Lua's C API, `raise` how callbacks fail, `stop` how a run ends early, `proxy`
//! tables that can't be changed, `reply` and `result` the way from RESP and back, `libraries` the functions
//! of scripts, and [`State`] all of it together.
//!
//! Errors of Lua are jumps (`longjmp`). The rules that follow from it are at the top of `stack`.

mod alloc;
mod errors;
mod host;
mod libraries;
mod machine;
mod number;
mod pattern;
mod proxy;
mod raise;
mod reply;
mod result;
mod stack;
mod state;
mod stop;

pub use host::{Arguments, Called, Captured, Host, Interrupt, Large, Level};
pub use state::{Call, Ended, Function, MEMORY_MIN, MemoryUse, State};
