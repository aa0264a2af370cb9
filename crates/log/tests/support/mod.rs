//! What the tests of the log share: a disk that forgets, and a small store on top of a log.

#![allow(dead_code, reason = "every test uses a part")]

pub(crate) mod batches;
pub(crate) mod simulator;
pub(crate) mod store;
pub(crate) mod trees;

use std::sync::Arc;

use ferrite_log::{Log, Options, Recovery};
use simulator::Simulator;

/// A small log without threads.
pub(crate) fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        garbage_percent: 20,
        ring_bytes: 64 << 10,
        appenders: 3,
        blob_min: 4 << 10,
        reserve_bytes: 0,
        hint_percent: 50,
        background: false,
        ..Options::default()
    }
}

/// Where every test has its log, on a disk of its own.
pub(crate) fn directory() -> &'static std::path::Path {
    std::path::Path::new("/data")
}

pub(crate) fn open(disk: &Simulator, options: Options) -> ferrite_log::Result<Recovery> {
    Log::open(Arc::new(disk.clone()), directory(), options)
}

/// Begins a log on a disk on which there is none.
pub(crate) fn begin(disk: &Simulator, options: Options) -> Log {
    let recovery = open(disk, options).expect("it is new");
    recovery.start().expect("it is empty")
}
