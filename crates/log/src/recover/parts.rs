//! The files of segments, and the chain that they make.

use std::path::PathBuf;

use sys::file::File;

use crate::address::Lsn;
use crate::bindings::Bindings;
use crate::paths::Paths;
use crate::segment::{Extent, Header, HeaderFlaw, Name};

/// A segment's file with a header that can be read.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn File>,
    pub(crate) header: Header,
    pub(crate) header_bytes: u64,
    pub(crate) size: u64,
}

impl Candidate {
    /// Its records up to `end`, as a later header names them.
    pub(crate) fn extent(&self, end: Lsn) -> Extent {
        Extent {
            first: self.header.first,
            bytes: end.get() - self.header.first.get(),
        }
    }
}

/// A segment's file without one.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) first: Lsn,
    pub(crate) path: PathBuf,
    pub(crate) reason: HeaderFlaw,
    pub(crate) size: u64,
}

/// What the directory says.
#[derive(Debug)]
pub(crate) struct Chain {
    /// The segments of the log, oldest first; the last one ends at `end`.
    pub(crate) segments: Vec<(Candidate, Extent)>,
    pub(crate) end: Lsn,
    /// The name of the log, if there is one.
    pub(crate) name: Option<Name>,
    pub(crate) epoch: u64,
    pub(crate) bindings: Bindings,
    /// Everything below was synced by an earlier run, as far as there is evidence.
    pub(crate) durable: Lsn,
    /// A record above what is durable that names a large value, or an earlier one, if there is one.
    pub(crate) last_blob: Lsn,
    /// What lies behind the end: the rest of the last segment, and files.
    pub(crate) cut: Option<Cut>,
    /// Files that are no part of the log any more and can go.
    pub(crate) leftovers: Vec<PathBuf>,
    /// It is a backup that no server has written to.
    pub(crate) is_backup: bool,
}

impl Chain {
    /// A log in which nothing was written yet.
    pub(super) fn empty() -> Chain {
        Chain {
            segments: Vec::new(),
            end: Lsn::FIRST,
            name: None,
            epoch: 0,
            bindings: Bindings::default(),
            durable: Lsn(0),
            last_blob: Lsn(0),
            cut: None,
            leftovers: Vec::new(),
            is_backup: false,
        }
    }
}

/// What is behind the end of the log.
#[derive(Debug)]
pub(crate) struct Cut {
    /// Why the log ends there.
    pub(crate) reason: String,
    /// Bytes of the last segment behind the end that are not zeroes.
    pub(crate) tail: Option<std::ops::Range<u64>>,
    /// Whole files.
    pub(crate) files: Vec<PathBuf>,
}

impl Cut {
    /// What is behind `end` and will be put aside: a line for the operator.
    pub(crate) fn line(&self, end: Lsn, paths: &Paths) -> String {
        let tail = self.tail.as_ref().map_or(0, |tail| tail.end - tail.start);
        let mut line = format!("the log ends at {end}: {}", self.reason);
        line += &format!("; {tail} bytes behind it");
        if !self.files.is_empty() {
            line += &format!(" and {} files", self.files.len());
        }
        line += &format!(" are put aside in {}", paths.lost.display());
        line
    }
}
