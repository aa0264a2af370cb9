//! Lua 5.1 for scripts of the server: a state with a limit of memory, functions that can be stopped at any
//! time, and globals that no script changes. The C sources are those of the crate `mlua-sys`, unpatched; a
//! sandbox in front of them does the rest. This crate knows no command and no key: they are the [`Host`]'s.
//!
//! Reading order: [`host`](Host) is the server as scripts see it, `alloc` the memory of a state, `machine`
//! its other data, `stack` Lua's C API, `raise` how callbacks fail, `stop` how a run ends early, `proxy`
//! tables that can't be changed, `reply` and `result` the way from RESP and back, `libraries` the functions
//! of scripts, and [`State`] all of it together.
//!
//! Differences from redis-server 7.0, all on purpose; `tests/vectors` marks them with `=`:
//!
//! - A stop passes every `pcall`, handler and coroutine. There a `pcall` can catch a kill.
//! - A pattern matches 200 levels deep. `load` and `loadstring` take 16 MiB, cjson and cmsgpack 2,000 levels.
//! - Each run begins with the same random numbers and options of cjson; there they go on. `cjson.new` is the
//!   library itself. `collectgarbage` changes nothing of the collector.
//! - An error that is a table without a text in `err` ends redis-server; here it is an error like others.
//! - `load` gives the error of its reader as it is; there it is a table if no `pcall` is around.
//! - `getmetatable(_G)` is `_G`. The length of a library is 0, and cjson and cmsgpack find nothing in it.
//! - `[[a [[ b]]` does not compile: this build of Lua refuses brackets of one level in each other.
//! - `redis.set_repl` checks its argument, and all effects are logged.
//!
//! Errors of Lua are jumps (`longjmp`). The rules that follow from it are at the top of `stack`.

mod alloc;
mod api;
mod errors;
mod fault;
mod function;
mod host;
mod libraries;
mod library;
mod loader;
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

pub use function::Function;
pub use host::{Arguments, Called, Captured, Host, Interrupt, KNOWN_KEYS, Large, Level};
pub use library::{FUNCTION_FLAGS, NotLoaded, Registered, is_function_name};
pub use state::{Call, Ended, MEMORY_MIN, MemoryUse, State};
