//! The truth on disk: one append-only log, which is durability, restart, backup and more.
//!
//! This crate knows no command and no keyspace. It is given changes of keys and gives them back after a
//! restart. Files go through [`sys::file::Files`], so that a test can be the disk. docs/format.md draws every
//! byte.
//!
//! # The life of a log
//!
//! ```text
//! // Locks, finds the end, changes nothing.
//! let mut recovery = Log::open(Arc::new(sys::file::Disk), dir, options)?;
//! recovery.replay(ReplayOptions { threads, partitions }, &replayer, &mut |progress| ...)?;
//! let bindings = recovery.bindings().clone();   // what database numbers mean
//! let log = recovery.start()?;                    // puts a torn tail aside, takes writes
//! let mut appender = log.appender(Some(wake))?;   // one for every thread that writes
//! ...
//! log.close()?;
//! ```
//!
//! # Appending
//!
//! A worker, each turn:
//!
//! 1. [`Appender::ensure`] room for a window of requests, **outside of any lock**. It waits when the ring is
//!    full, and fails ([`Refusal`]) when the disk is full or has failed: then writes are refused, reads go
//!    on.
//! 2. Under the shard's lock, in the order of execution: [`Appender::set`], [`delete`](Appender::delete),
//!    [`expire`](Appender::expire), [`patch`](Appender::patch). None of them fails or, with enough room,
//!    waits. `set` returns the [`Address`] that the entry keeps; after a `patch` the entry keeps
//!    [`Address::patched`]. Whatever was replaced or removed is told to [`Liveness::dead`] by the address it
//!    had.
//! 3. [`Appender::commit`] at the end of the turn: the log thread may write it. It returns a position; with
//!    [`SyncPolicy::Always`] replies wait until that is durable ([`Appender::wake_when_durable`]).
//!
//! Several changes that must not be torn apart by a crash go through [`Appender::batch`], or if they are sets
//! whose size is known before through [`Appender::begin_series`], under all their locks. A flush or an
//! exchange of databases is [`Appender::bind`].
//!
//! A key that expires is *not* logged: its expiry is in the log, and a replay comes to the same conclusion.
//! Except a key whose value is in a file of its own ([`Address::is_blob`]): the file goes, so its record must
//! not be the last word, and the key is deleted like any other. A key that is evicted is deleted, too.
//! `delete`, `expire` and `patch` are for keys that exist.
//!
//! A collection that is in its entry is a value that changes by [`Appender::edit`], whose bytes the log does
//! not understand. A larger one is an *instance*: a tree whose leaves are written one by one
//! ([`Appender::leaf`]) and change by [`Appender::edit_instance`]. Its number, which no other instance ever
//! had, takes the place of the key in these records. The key's `Set`, with [`Tag::is_tree`], names it.
//!
//! Large values have files of their own ([`BlobStore`]): such a value is in its file before any lock is
//! taken, and [`Appender::set_blob`] names it. It is durable no later than the record.
//!
//! # Replaying
//!
//! [`Replayer::apply`] gets records of a partition in the order of the log and does what they say: a `Set`
//! replaces whatever was there (with [`Record::address`] as the entry's address), `Delete` removes, `Expire`
//! and `Patch` change what is there, or nothing if the key is missing. Nothing expires meanwhile. An `Edit`
//! or a `Patch` may also meet a value of another type: one of the right type follows. A `Leaf` replaces a
//! part of its instance, and an `Edit` amends a leaf, or nothing where there is none. After the last record,
//! an entry whose `Set` names an instance gets the leaves of that; leaves that no entry gets are told to
//! [`Recovery::liveness`].

mod address;
mod appender;
mod backup;
mod batch;
mod bell;
mod bindings;
mod blob;
mod check;
mod claims;
mod closed;
mod compact;
mod core;
mod credit;
mod directory;
mod draft;
mod engine;
mod error;
mod fetch;
mod filled;
mod gathered;
mod hint;
mod keeper;
mod lacking;
mod limits;
mod liveness;
mod lock;
mod log;
mod manifest;
mod options;
mod pace;
mod paths;
mod piece;
mod portion;
mod record;
mod recover;
mod routes;
mod scan;
mod segment;
mod segments;
mod series;
mod space;
mod status;
mod store;
mod sums;
mod sweep;
mod sync;
mod threads;
mod version;
mod walk;
mod ways;
mod writer;

pub use address::{Address, DbId, Lsn};
pub use appender::Appender;
pub use backup::Backup;
pub use batch::Batch;
pub use bindings::{Bindings, Rebind};
pub use blob::Blob;
pub use check::{LeafRange, Report, check, repair};
pub use compact::{Compactor, Current, Relocate, Verdict, judge};
pub use draft::BlobDraft;
pub use error::{Damage, Error, Refusal, Result};
pub use fetch::{BlobStream, FoundValue, Hold, Located, ValueReader};
pub use liveness::Liveness;
pub use log::Log;
pub use options::{Options, SyncPolicy};
pub use piece::Replayed;
pub use record::{BlobRef, Change, MAX_RECORD, Record, Tag, Value};
pub use recover::{Progress, Recovery, ReplayOptions, Replayer};
pub use status::{Slowest, Status};
pub use store::BlobStore;
pub use sums::{BLOB_PIECE_BYTES, BlobFile};
pub use sweep::Sweep;
