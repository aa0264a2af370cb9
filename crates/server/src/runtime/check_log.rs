//! `--check-log DIR` and `--repair-log DIR`: a look at a log that no server uses.
//!
//! | code | means |
//! |---|---|
//! | 0 | the log is whole, maybe because it was mended |
//! | 1 | it is damaged |
//! | 2 | unknown: there is no log, a server uses it, or the disk refuses |
//!
//! Checking and repairing is done by the crate `ferrite_log`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ferrite_log::{Error, check, repair};
use keyspace::collection::kind::Edge;
use keyspace::collection::log::leaf::LeafRecord;
use sys::file::Disk;

use crate::config::Setting;

/// Task for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Check,
    Repair,
}

/// Does the task, prints the result, and returns the exit code.
pub(crate) fn run(directory: &Path, task: Task) -> ExitCode {
    let report = match task {
        Task::Check => check(Arc::new(Disk), directory),
        Task::Repair => repair(Arc::new(Disk), directory, range_of),
    };
    match report {
        Ok(report) => {
            println!("{report}");
            ExitCode::from(u8::from(!report.is_whole()))
        }
        Err(error) => {
            eprintln!("ferrite-server: {error}{}", advice(&error));
            ExitCode::from(2)
        }
    }
}

/// Which part of a collection a leaf has, in bytes whose order is that of the elements.
fn range_of(leaf: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let leaf = LeafRecord::read(leaf).ok()?;
    let bytes = |edge: Edge<'_>| match edge == Edge::default() {
        true => Vec::new(),
        false => [&edge.order.to_be_bytes(), edge.name].concat(),
    };
    Some((bytes(leaf.from), leaf.to.map(bytes)))
}

/// Where the log may be instead, if there is none where it was looked for.
fn advice(error: &Error) -> String {
    let Error::Missing(directory) = error else {
        return String::new();
    };
    let usual = Setting::AppendDirName.row().default;
    // The second is where it is beside an append-only file of redis-server.
    let places = [usual.to_owned(), format!("{usual}.ferrite")];
    let mut places = places.iter().map(|name| directory.join(name));
    places
        .find(|place| place.join("log").is_dir())
        .map_or_else(String::new, |place| {
            format!("; there is one in {}", place.display())
        })
}
