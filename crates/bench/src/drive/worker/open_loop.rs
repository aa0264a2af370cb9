//! The open loop: what the timetable says is due goes out, on the connections in turn.

use super::state::Worker;
use crate::drive::clock::{self, now};
use crate::limits::MAX_IN_FLIGHT;
use crate::wire::link::LinkError;

impl Worker<'_> {
    /// Sends what the timetable says is due, on the connections in turn.
    pub(super) fn send_due(&mut self) -> Result<(), LinkError> {
        loop {
            let now = now();
            let Some(schedule) = &mut self.schedule else {
                return Ok(());
            };
            let due = schedule.due();
            if due > now || due >= self.job.until() || self.job.is_given_up() {
                return Ok(());
            }
            let Some(index) = self.next_in_turn() else {
                // Everybody is waiting: the plan stands, and what is due goes out late.
                return Ok(());
            };
            let count = self.claim(self.batch(index), due);
            if count == 0 {
                return Ok(());
            }
            let Some(schedule) = &mut self.schedule else {
                return Ok(());
            };
            let planned = schedule.take();
            if planned >= self.job.measure_from()
                && let Some(lateness) = &mut self.slice.lateness
            {
                lateness.saturating_record_n(clock::ns_between(planned, now), u64::from(count));
            }
            if let Err(error) = self.send_batch(index, count, Some(planned)) {
                self.lose(index, error)?;
            }
        }
    }

    /// The next connection that takes requests.
    fn next_in_turn(&mut self) -> Option<usize> {
        for _ in 0..self.clients.len() {
            let index = self.turn;
            self.turn = (self.turn + 1) % self.clients.len();
            let client = &self.clients[index];
            let is_ready = client
                .link
                .as_ref()
                .is_some_and(|link| link.is_open() && !link.is_blocked());
            if is_ready && client.in_flight < MAX_IN_FLIGHT && !self.is_spent(index) {
                return Some(index);
            }
        }
        None
    }
}
