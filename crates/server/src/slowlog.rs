//! The slow log: the last commands that took longer than `slowlog-log-slower-than`.

use std::collections::VecDeque;

use crate::command::{Args, Command};
use crate::session::Session;

/// Arguments kept of a command, and bytes kept of an argument.
const KEPT_ARGS: usize = 32;
const KEPT_BYTES: usize = 128;

/// One slow command.
pub(crate) struct SlowCommand {
    pub(crate) id: u64,
    /// When it ran (Unix, s).
    pub(crate) at_s: i64,
    pub(crate) duration_us: u64,
    pub(crate) args: Vec<Vec<u8>>,
    pub(crate) peer: String,
    pub(crate) name: String,
}

/// See the module. Newest first.
#[derive(Default)]
pub(crate) struct SlowLog {
    next_id: u64,
    entries: VecDeque<SlowCommand>,
}

impl SlowLog {
    /// Keeps a command, and at most `most` in all.
    pub(crate) fn add(
        &mut self,
        command: &Command,
        args: &Args<'_>,
        session: &Session,
        duration_us: u64,
        most: usize,
    ) {
        let kept = if args.len() > KEPT_ARGS {
            KEPT_ARGS - 1
        } else {
            args.len()
        };
        let mut list: Vec<Vec<u8>> = (0..kept)
            .map(|at| shortened(command.shown(args, at)))
            .collect();
        if kept < args.len() {
            list.push(format!("... ({} more arguments)", args.len() - kept).into_bytes());
        }
        let entry = SlowCommand {
            id: self.next_id,
            at_s: sys::clock::realtime_ms() / 1000,
            duration_us,
            args: list,
            peer: session.client.peer.clone(),
            name: session.client.names.lock().name.clone(),
        };
        self.next_id += 1;
        self.entries.push_front(entry);
        self.entries.truncate(most);
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &SlowCommand> {
        self.entries.iter()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

fn shortened(arg: &[u8]) -> Vec<u8> {
    if arg.len() <= KEPT_BYTES {
        return arg.to_vec();
    }
    let mut short = arg[..KEPT_BYTES].to_vec();
    short.extend_from_slice(format!("... ({} more bytes)", arg.len() - KEPT_BYTES).as_bytes());
    short
}
