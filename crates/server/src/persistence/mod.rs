//! The log of the server as a whole: opened and replayed at the start, compacted meanwhile, closed at the
//! end.
//!
//! The listeners are open before the log is replayed. Until it is, commands on data are answered with
//! `LOADING`. Then each worker gets a [`Journal`], and only a worker with one runs such commands. When the
//! log refuses records (the disk is full or has failed), writes are answered with `MISCONF` and reads
//! continue.
//!
//! Not here: how changes become records (`journal`), and the bytes of records (crate `ferrite_log`).

mod again;
mod amendments;
mod backup;
mod bring_back;
mod compaction;
mod durable;
mod ending;
mod install;
mod instances;
pub(crate) mod journal;
mod large;
mod least_memory;
mod libraries;
mod options;
mod place;
mod reading;
mod redis_files;
mod relief;
mod replay;
mod room_in_log;
mod sizes;
pub(crate) mod snapshot;
mod spill;
mod start;
mod state;
pub(crate) mod switch;
mod tile_store;
mod tree_replay;
mod warming;

pub(crate) use again::AgainError;
pub(crate) use backup::{backup_directory, check_place};
pub(crate) use bring_back::check_room;
pub(crate) use durable::Durable;
pub(crate) use ending::{Ending, end, fail};
pub(crate) use instances::instance_key;
pub(crate) use place::tell;
pub(crate) use reading::{NOT_THERE, Sought};
pub(crate) use redis_files::{Found, find};
pub(crate) use relief::Relief;
pub(crate) use start::{begin_loading, open};
pub(crate) use state::{Persistence, Phase};
pub(crate) use switch::forget_incomplete;
pub(crate) use warming::Warming;
