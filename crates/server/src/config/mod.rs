//! Configuration: from what an operator typed to the values of a running server, and back to a file.
//!
//! Reading order: `table` names every setting once, and everything else derives from it; `value` reads and
//! writes one value; `settings` holds the values of a running server. `syntax` is the line of a configuration
//! file, `file` and `flags` collect directives (what was typed), `load` gives them meaning, `foreign` to
//! those that are no settings here; `report` is `--check-config`. `rewrite` is CONFIG REWRITE, `help` is
//! `--help`, and `docs` writes docs/config.md.
//!
//! What a setting does is not here: whoever honours it reads it from [`Settings`].

mod file;
mod flags;
mod foreign;
mod help;
mod load;
mod report;
mod rewrite;
mod settings;
mod syntax;
mod table;
mod value;

#[cfg(test)]
mod docs;

pub(crate) use foreign::Foreign;
pub(crate) use load::{Startup, load};
pub(crate) use rewrite::{remove_leftovers, rewrite};
pub(crate) use settings::{Change, ClientClass, Settings};
pub(crate) use table::{Row, Setting, TABLE};
