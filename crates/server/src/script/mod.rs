//! Texts of scripts, for all workers: `registry` keeps them by their SHA-1, `shebang` reads their first line,
//! `proof` finds out whether one names all of its keys.
//!
//! Not here: Lua itself (the crate `lua`), and commands (`crate::command::script`).

mod proof;
mod registry;
mod shebang;
mod tokens;

pub(crate) use proof::KeyPlaces;
pub(crate) use registry::{Pace, Script, Scripts, Sha};
pub(crate) use shebang::{Flags, flags_of};
