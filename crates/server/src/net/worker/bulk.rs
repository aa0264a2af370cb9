//! Connections that move large values to files and from them. In each turn of a worker small requests come
//! first, then at most [`BULK_TURN_BYTES`] of large values in all. So the wait of others does not depend on
//! the number of such connections.
//!
//! A connection that was left out is reported again by the next wait, which does not sleep then. Turns begin
//! at one connection after the other.

use super::Worker;
use crate::limits::BULK_TURN_BYTES;
use crate::net::connection::State;

/// Connections that can move some of a large value in this turn.
#[derive(Default)]
pub(crate) struct Bulk {
    ready: Vec<u64>,
    turns: usize,
}

impl Bulk {
    /// Lets a connection wait until what is small is done.
    pub(crate) fn push(&mut self, token: u64) {
        self.ready.push(token);
    }
}

impl Worker {
    /// Lets a connection wait to which a large value is being sent; whether it is one.
    pub(super) fn puts_off(&mut self, token: u64) -> bool {
        let connection = self.connections.get_mut(token);
        let is_bulk = connection.is_some_and(|connection| connection.backlog.begins_with_file());
        if is_bulk {
            self.bulk.push(token);
        }
        is_bulk
    }

    /// Moves what the connections of this turn may, and runs what requests come of it.
    #[inline]
    pub(super) fn move_bulk(&mut self) {
        if !self.bulk.ready.is_empty() {
            self.move_some();
            self.run_group();
        }
    }

    #[cold]
    #[inline(never)]
    fn move_some(&mut self) {
        let mut ready = std::mem::take(&mut self.bulk.ready);
        self.bulk.turns = self.bulk.turns.wrapping_add(1);
        let first = self.bulk.turns % ready.len();
        ready.rotate_left(first);
        let mut left = BULK_TURN_BYTES;
        for &token in &ready {
            if left == 0 {
                break;
            }
            let Some(connection) = self.connections.get_mut(token) else {
                continue;
            };
            // One may do both: send a large value, and be sent another that was asked for before.
            let (sends, is_sent) = (
                connection.upload.is_some() && connection.state == State::Open,
                connection.backlog.begins_with_file(),
            );
            if is_sent {
                left = left.saturating_sub(self.write_some(token, left).0);
            }
            if sends && left > 0 {
                left = left.saturating_sub(self.read_upload(token, left));
            }
        }
        ready.clear();
        self.bulk.ready = ready;
    }
}
