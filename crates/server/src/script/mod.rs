//! Texts of scripts, for all workers: kept by their SHA-1 (`registry`), and what their first line says of them
//! (`shebang`).
//!
//! Not here: Lua itself (the crate `lua`), and commands (`crate::command::script`).

mod registry;
mod shebang;

pub(crate) use registry::{Script, Scripts, Sha};
pub(crate) use shebang::{Flags, flags_of};
