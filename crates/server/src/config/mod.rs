//! Configuration: from the operator's text to the values of a running server, and back to a file.
//!
//! Reading order: `table` names every setting once, and everything else derives from it; `value` reads and
//! writes one value; `settings` holds the values of a running server. `syntax` is the line of a configuration
//! file, `file` and `flags` collect directives as typed, `load` gives them meaning, `foreign` to those that
//! are no settings here; `report` is `--check-config`. `rewrite` is CONFIG REWRITE, `help` is `--help`, and
//! `docs` writes docs/config.md. Parts of values: `classes` of keyspace events, save `points`, the `policy`
//! of the memory limit. `addresses`
//! checks that the process may map as much memory as its settings need, `first_process` finds a container's
//! server, `version` holds the versions.
//!
//! The effect of a setting is elsewhere: its user reads it from [`Settings`].

pub(crate) mod addresses;
pub(crate) mod classes;
pub(crate) mod drafts;
mod file;
mod first_process;
mod flags;
mod foreign;
mod help;
mod load;
pub(crate) mod logging;
mod packed;
mod points;
mod policy;
mod report;
mod rewrite;
mod settings;
mod syntax;
mod table;
mod value;
mod version;

#[cfg(test)]
mod docs;

pub(crate) use foreign::Foreign;
pub(crate) use load::{Startup, load};
pub(crate) use packed::{Packed, listed, listed_all};
pub(crate) use points::SavePoint;
pub(crate) use policy::{MaxMemoryPolicy, Scope};
pub(crate) use rewrite::{remove_leftovers, rewrite};
pub(crate) use settings::{Change, ClientClass, Settings};
pub(crate) use table::{Row, Setting, TABLE};
pub(crate) use value::parse_memory;
pub(crate) use version::{REDIS_VERSION, VERSION, redis_version};
