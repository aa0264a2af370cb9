//! What a connection may send, and sending it.

use super::state::{Worker, token};
use crate::drive::clock::{Ticks, now};
use crate::drive::plan::Until;
use crate::drive::tally::{enqueue, stamp};
use crate::limits::BATCH_BYTES;
use crate::wire::link::LinkError;

impl Worker<'_> {
    /// A connection has sent as many requests as it may.
    #[inline]
    pub(super) fn is_spent(&self, index: usize) -> bool {
        let interval = self.job.plan.reconnect_interval;
        let client = &self.clients[index];
        interval.is_some_and(|interval| client.sent_since_open >= interval) || client.is_stale()
    }

    /// How many requests a connection may send together.
    #[inline]
    pub(super) fn batch(&self, index: usize) -> u32 {
        let pipeline = self.job.plan.pipeline;
        let Some(interval) = self.job.plan.reconnect_interval else {
            return pipeline;
        };
        let left = interval.saturating_sub(self.clients[index].sent_since_open);
        // At most the pipeline.
        left.min(u64::from(pipeline)) as u32
    }

    /// Sends the next batch of the closed loop, if there is one. It counts as sent now, unless it
    /// began earlier.
    #[inline]
    pub(super) fn send_next(&mut self, index: usize, at: Option<Ticks>) -> Result<(), LinkError> {
        let count = self.claim(self.batch(index), now());
        self.send_batch(index, count, at)
    }

    /// How many requests may be sent of those that are wanted.
    #[inline]
    pub(super) fn claim(&self, wanted: u32, now: Ticks) -> u32 {
        match self.job.plan.until {
            Until::Time(_) if now >= self.job.until() => 0,
            Until::Requests(_) if now >= self.job.measure_from() => self.job.claim(wanted),
            // Warm-up goes on until its time is over.
            _ => wanted,
        }
    }

    /// Writes and sends so many requests. Without a moment to count from, that is when the first
    /// bytes are handed to the system; nothing else is in flight then.
    #[inline]
    pub(super) fn send_batch(
        &mut self,
        index: usize,
        count: u32,
        at: Option<Ticks>,
    ) -> Result<(), LinkError> {
        let client = &mut self.clients[index];
        let Some(link) = &mut client.link else {
            return Ok(());
        };
        let token = token(index, client.generation);
        let mut at = at;
        let mut left = count;
        while left > 0 {
            let home = self.nodes.as_ref().map(|map| &map.nodes[client.node].home);
            let shape = self.source.write(&mut self.out, index, home) as u32;
            enqueue(&mut client.sent, shape, at.unwrap_or(0));
            left -= 1;
            // Behind a socket that is full everything joins the backlog.
            if left == 0 || (self.out.bytes.len() >= BATCH_BYTES && !link.is_blocked()) {
                let at = *at.get_or_insert_with(|| stamp(&mut client.sent));
                if at >= self.job.measure_from() {
                    self.slice.bytes_out += self.out.total();
                }
                link.send(&mut self.poller, token, &mut self.out, self.job.data)?;
            }
        }
        client.in_flight += count as usize;
        client.sent_since_open += u64::from(count);
        self.in_flight += count as usize;
        Ok(())
    }
}
