//! Snapshots: RDB files that are written from the keyspace and loaded into it.
//!
//! A snapshot is the state at one moment, taken while all workers run ([`mod@keyspace`] does that). A thread
//! of its own writes a temporary file and then replaces the old one, so the file is always complete. Reading
//! order: `state` the current and the last snapshot, `saver` the thread, `save` and `load` the two
//! directions, `items` collections in both, `streams` streams, `making` a collection that is being read,
//! `in_log` one that is larger than memory, `beside` saving while workers run, `cold` values that are only in
//! the log, `reload` both directions, `file` the replacement of the file.
//!
//! The commands are in `command/server/persistence`, the stop of the server in `ending`.

mod beside;
mod cold;
mod file;
mod in_log;
mod items;
mod load;
mod making;
mod reload;
mod save;
mod saver;
mod state;
mod streams;

pub(crate) use file::remove_leftovers;
pub(crate) use items::{KINDS, dump_items, read_items};
pub(crate) use load::{Duplicates, load_base};
pub(crate) use making::{Beyond, Destination, ReadItems};
pub(crate) use reload::{Reload, ReloadError, reload};
pub(crate) use save::{after_flush_all, save_alone};
pub(crate) use saver::{is_there, load_at_start, run};
pub(crate) use state::{Busy, Cancelled, Kind, Loading, Outcome, Snapshots};
