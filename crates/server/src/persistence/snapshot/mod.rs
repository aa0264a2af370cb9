//! Snapshots: what is in the keyspace, written to an RDB file and loaded from it.
//!
//! A snapshot is a point in time, taken while all workers go on ([`mod@keyspace`] does that); a thread of its
//! own writes it beside the old file and then puts it in its place, so the file is always a whole one.
//! Reading order: `state` what is going on and what became of the last one, `saver` is the thread, `save` and
//! `load` are the two directions, `beside` is saving while others go on, `cold` finds values that are in the
//! log alone, `reload` is both directions, `file` is the way a file gets its name.
//!
//! Commands are in `command/server/persistence`, the end of the server in `shutdown`.

mod beside;
mod cold;
mod file;
mod load;
mod reload;
mod save;
mod saver;
mod state;

pub(crate) use file::remove_leftovers;
pub(crate) use load::{Duplicates, load_base};
pub(crate) use reload::{Reload, ReloadError, reload};
pub(crate) use save::{after_flush_all, save_alone};
pub(crate) use saver::{is_there, load_at_start, run};
pub(crate) use state::{Busy, Kind, Loading, Outcome, Snapshots};
