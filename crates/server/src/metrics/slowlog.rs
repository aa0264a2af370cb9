//! Slow log: the last commands that took longer than `slowlog-log-slower-than`, at most `slowlog-max-len` and
//! at most a part of `maxmemory`.

use std::collections::VecDeque;

use crate::config::{Setting, Settings};
use crate::limits::{LEAST_SLOW_LOG_BYTES, SLOW_LOG_SHARE};

/// Arguments kept of a command, and bytes kept of an argument.
const KEPT_ARGS: usize = 32;
const KEPT_BYTES: usize = 128;

/// Capacity that is kept for entries when there are few.
const LEAST_CAPACITY: usize = 256;

/// One slow command.
pub(crate) struct SlowCommand {
    pub(crate) id: u64,
    /// Time of the run, Unix s.
    pub(crate) at_s: i64,
    pub(crate) duration_us: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) peer: String,
    pub(crate) name: String,
}

impl SlowCommand {
    /// Bytes of the entry.
    fn memory(&self) -> usize {
        let args = self
            .args
            .iter()
            .map(|arg| size_of::<Vec<u8>>() + arg.capacity().max(16));
        size_of::<SlowCommand>() + args.sum::<usize>() + self.peer.capacity() + self.name.capacity()
    }
}

/// Bounds of the slow log.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) commands: usize,
    pub(crate) bytes: usize,
}

impl Bounds {
    /// Bounds of the current settings. Without `maxmemory` there is no bound of bytes.
    pub(crate) fn of(settings: &Settings) -> Bounds {
        let limit = settings.int(Setting::MaxMemory);
        let bytes = match limit {
            0 => usize::MAX,
            limit => ((limit / SLOW_LOG_SHARE) as usize).max(LEAST_SLOW_LOG_BYTES),
        };
        let commands = settings.int(Setting::SlowlogMaxLen) as usize;
        Bounds { commands, bytes }
    }
}

/// Entries, newest first.
#[derive(Default)]
pub(crate) struct SlowLog {
    next_id: u64,
    entries: VecDeque<SlowCommand>,
    /// Bytes of the entries.
    bytes: usize,
}

impl SlowLog {
    /// Adds a command of the client with this address and name. Removes the oldest entries beyond the bounds.
    pub(crate) fn add<'a>(
        &mut self,
        args: impl ExactSizeIterator<Item = &'a [u8]>,
        (peer, name): (&str, &str),
        duration_us: u64,
        bounds: Bounds,
    ) {
        let count = args.len();
        let kept = if count > KEPT_ARGS {
            KEPT_ARGS - 1
        } else {
            count
        };
        let mut list: Vec<Vec<u8>> = args.take(kept).map(shortened).collect();
        if kept < count {
            list.push(format!("... ({} more arguments)", count - kept).into_bytes());
        }
        let entry = SlowCommand {
            id: self.next_id,
            at_s: sys::clock::realtime_ms() / 1000,
            duration_us,
            args: list,
            peer: peer.to_owned(),
            name: shortened_name(name),
        };
        self.push(entry, bounds);
    }

    fn push(&mut self, entry: SlowCommand, bounds: Bounds) {
        self.next_id += 1;
        self.bytes += entry.memory();
        self.entries.push_front(entry);
        while self.entries.len() > bounds.commands || self.bytes > bounds.bytes {
            let Some(oldest) = self.entries.pop_back() else {
                break;
            };
            self.bytes -= oldest.memory();
        }
        if self.entries.capacity() > (4 * self.entries.len()).max(LEAST_CAPACITY) {
            self.entries.shrink_to(2 * self.entries.len());
        }
    }

    /// Bytes of the slow log.
    pub(crate) fn memory(&self) -> usize {
        self.bytes + (self.entries.capacity() - self.entries.len()) * size_of::<SlowCommand>()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &SlowCommand> {
        self.entries.iter()
    }

    pub(crate) fn clear(&mut self) {
        self.entries = VecDeque::new();
        self.bytes = 0;
    }
}

/// The first [`KEPT_BYTES`] of a client's name, which may have any length.
fn shortened_name(name: &str) -> String {
    // Names are ASCII.
    String::from_utf8_lossy(&shortened(name.as_bytes())).into_owned()
}

fn shortened(arg: &[u8]) -> Vec<u8> {
    if arg.len() <= KEPT_BYTES {
        return arg.to_vec();
    }
    let mut short = arg[..KEPT_BYTES].to_vec();
    short.extend_from_slice(format!("... ({} more bytes)", arg.len() - KEPT_BYTES).as_bytes());
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(len: usize) -> SlowCommand {
        SlowCommand {
            id: 0,
            at_s: 0,
            duration_us: 0,
            args: vec![vec![b'x'; len]],
            peer: String::new(),
            name: String::new(),
        }
    }

    #[test]
    fn the_oldest_go_beyond_either_bound_and_their_memory_with_them() {
        let mut log = SlowLog::default();
        let bounds = |commands, bytes| Bounds { commands, bytes };
        (0..5000).for_each(|_| log.push(slow(100), bounds(4000, usize::MAX)));
        assert_eq!(log.iter().len(), 4000);
        assert!(log.memory() > 4000 * 100);
        log.push(slow(100), bounds(4000, 20_000));
        assert!(log.iter().len() > 50 && log.bytes <= 20_000);
        assert!(log.memory() <= 20_000 + 2 * LEAST_CAPACITY * size_of::<SlowCommand>());
        log.push(slow(100), bounds(0, 20_000));
        assert_eq!((log.iter().len(), log.bytes), (0, 0));
    }

    #[test]
    fn a_long_name_is_shortened() {
        let name = shortened_name(&"n".repeat(60_000));
        assert_eq!(name, format!("{}... (59872 more bytes)", "n".repeat(128)));
    }
}
