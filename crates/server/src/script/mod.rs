//! Texts of scripts, for all workers: `registry` keeps them by their SHA-1, `shebang` reads their first line,
//! `proof` finds out whether one names all of its keys, `callbacks` does so for a library. `libraries` keeps
//! the libraries of functions by their names, `library` learns the functions of one.
//!
//! Not here: Lua itself (the crate `lua`), and commands (`crate::command::script`).

mod callbacks;
mod libraries;
mod library;
mod places;
mod proof;
mod registry;
mod shebang;
mod tokens;

pub(crate) use libraries::{Existing, Hears, Libraries, Recorded};
pub(crate) use library::{Library, LoadBounds, LoadHost, TIMEOUT, Unlearned, log_line};
pub(crate) use places::KeyPlaces;
pub(crate) use registry::{Pace, Script, Scripts, Sha};
pub(crate) use shebang::{Flags, flags_of};
