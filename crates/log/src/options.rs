//! How a log is set up.

use crate::error::Error;
use crate::limits::WINDOW_SHARE;

/// When what was written is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SyncPolicy {
    /// Before the reply leaves: many writers share one sync.
    Always = 0,
    /// Once a second, as long as something is written.
    #[default]
    EverySecond = 1,
    /// When the operating system likes to, and when a segment is full.
    Never = 2,
}

impl SyncPolicy {
    pub(crate) fn from_bits(bits: u8) -> SyncPolicy {
        match bits {
            0 => SyncPolicy::Always,
            1 => SyncPolicy::EverySecond,
            _ => SyncPolicy::Never,
        }
    }
}

/// See each field. `Options::default()` is what a server wants.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of records after which a segment ends (with the record that reaches it).
    pub segment_bytes: u64,
    /// Bytes of the ring between appenders and the log thread: a power of two, whole pages. Small enough to
    /// stay in the processor's cache.
    pub ring_bytes: usize,
    /// Is told of memory of the ring that is taken from here on, or no more (negative), in bytes: it is
    /// mapped past the allocator, and takes memory as it is filled for the first time.
    pub charge: fn(i64),
    /// The most [`Appender`](crate::Appender)s at a time.
    pub appenders: usize,
    /// When what was written is made durable. Can be changed later.
    pub sync: SyncPolicy,
    /// Values of this many bytes and more belong into a file of their own.
    pub blob_min: u64,
    /// Below this many free bytes of the file system nothing is accepted but removals. They are as long as
    /// more than a quarter of that is left, which is compaction's; space that segments have taken and not
    /// used counts here.
    pub reserve_bytes: u64,
    /// Garbage that compaction tolerates, in percent of live bytes.
    pub garbage_percent: u64,
    /// Garbage that it tolerates however little is live: where there is much of it a segment that is emptied
    /// has little to move.
    pub garbage_bytes: u64,
    /// Bytes a second that compaction reads and writes at most, unless there is more garbage than is
    /// tolerated.
    pub compaction_bytes_per_second: u64,
    /// The part of a segment, in percent, that its hints may take; it gets none if they would take more.
    /// Whoever looks for what is still needed of it reads them first.
    pub hint_percent: u64,
    /// The most bytes of hints that a segment may have: they are kept in memory until it is full.
    pub hint_bytes: u64,
    /// A number that only grows, kept in every segment: who may write (for a later election).
    pub epoch: u64,
    /// Whether the log has threads of its own. Without, whoever calls `Log::turn` and its like drives it: for
    /// simulations.
    pub background: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 64 << 20,
            ring_bytes: 16 << 20,
            charge: |_| (),
            appenders: 64,
            sync: SyncPolicy::default(),
            blob_min: 256 << 10,
            reserve_bytes: 64 << 20,
            garbage_percent: 50,
            garbage_bytes: 0,
            compaction_bytes_per_second: 256 << 20,
            hint_percent: 6,
            hint_bytes: u64::MAX,
            epoch: 0,
            background: true,
        }
    }
}

impl Options {
    /// Whether the options fit together.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let ring = self.ring_bytes as u64;
        let wrong = if !self.ring_bytes.is_power_of_two() || self.ring_bytes < 64 << 10 {
            "the log's ring must be a power of two of at least 64 kb"
        } else if self.segment_bytes < ring {
            "a segment of the log must be at least as large as the ring"
        } else if self.segment_bytes > 1 << 40 {
            "a segment of the log can have 1 tb at most"
        } else if self.blob_min > ring / WINDOW_SHARE / 2 || self.blob_min == 0 {
            "values in files of their own must begin at an eighth of the ring or less"
        } else if self.appenders == 0 || self.appenders as u64 > ring / (16 << 10) {
            "the log's ring is too small for so many threads"
        } else if self.compaction_bytes_per_second == 0 {
            "compaction must be allowed some bytes a second"
        } else {
            return Ok(());
        };
        Err(Error::Options(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit_and_contradictions_do_not() {
        assert!(Options::default().check().is_ok());
        let wrong: [fn(&mut Options); 6] = [
            |options| options.ring_bytes = 3 << 20,
            |options| options.segment_bytes = 1 << 20,
            |options| options.blob_min = 16 << 20,
            |options| options.appenders = 0,
            |options| options.appenders = 1 << 20,
            |options| options.compaction_bytes_per_second = 0,
        ];
        for change in wrong {
            let mut options = Options::default();
            change(&mut options);
            assert!(
                matches!(options.check(), Err(Error::Options(_))),
                "{options:?}"
            );
        }
    }
}
