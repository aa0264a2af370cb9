//! What a check has found, and how it is told.

use std::fmt;

use crate::error::Damage;

/// What a log consists of, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments, the one that was written last included.
    pub segments: usize,
    /// Bytes of records.
    pub bytes: u64,
    /// Records that change data, those inside of batches included.
    pub records: u64,
    /// Batches.
    pub batches: u64,
    /// Values in files of their own that are needed.
    pub blobs: usize,
    /// Where the log ends; 0 if that is not known, because it is damaged.
    pub end: u64,
    /// A torn tail: not damage, the next start puts it aside.
    pub tail: Option<String>,
    /// What processes that were killed have left in memory for the next start: a line for each.
    pub rings: Vec<String>,
    /// Records that this version does not know, because another version wrote them: no damage, but a start
    /// refuses them, and a repair changes nothing.
    pub unknown: Vec<Damage>,
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// What a repair does about each of them, as in "takes out 24 bytes".
    pub remedies: Vec<String>,
    /// What was done about it.
    pub repairs: Vec<String>,
}

impl Report {
    /// Whether a server can start with the log as it is.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.unknown.is_empty()
    }

    /// Notes why a start is refused that meets what another version wrote.
    pub(super) fn push_unknown(&mut self, unknown: Damage) {
        let is_it = |known: &Damage| known.file == unknown.file && known.offset == unknown.offset;
        if !self.unknown.iter().any(is_it) {
            self.unknown.push(unknown);
        }
    }

    pub(super) fn push(&mut self, damage: Damage, remedy: impl Into<String>) {
        self.damage.push(damage);
        self.remedies.push(remedy.into());
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "segments: {}, bytes: {}, records: {}, batches: {}, large values: {}",
            self.segments, self.bytes, self.records, self.batches, self.blobs
        )?;
        match self.end {
            0 => writeln!(f)?,
            end => writeln!(f, ", end: {end:#x}")?,
        }
        if let Some(line) = &self.tail {
            writeln!(f, "torn: {line}")?;
        }
        for line in &self.rings {
            writeln!(f, "ring: {line}")?;
        }
        for line in &self.repairs {
            writeln!(f, "repaired: {line}")?;
        }
        for unknown in &self.unknown {
            writeln!(f, "unknown: {}", unknown.unknown())?;
        }
        for (damage, remedy) in self.damage.iter().zip(&self.remedies) {
            writeln!(f, "damage: {damage}")?;
            if !remedy.is_empty() && self.unknown.is_empty() {
                writeln!(f, "        a repair {remedy}")?;
            }
        }
        f.write_str(match (self.unknown.is_empty(), self.is_whole()) {
            (true, true) => "the log is whole",
            (true, false) => "the log is damaged",
            (false, _) => {
                "the log is of another version: start the one that wrote it, or a later one. Nothing was \
                 changed, and a repair changes nothing"
            }
        })
    }
}
