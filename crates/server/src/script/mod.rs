//! Texts of scripts, for all workers: `registry` keeps them by their SHA-1, `shebang` reads their first line.
//!
//! Not here: Lua itself (the crate `lua`), and commands (`crate::command::script`).

mod registry;
mod shebang;

pub(crate) use registry::{Pace, Script, Scripts, Sha};
pub(crate) use shebang::{Flags, flags_of};
