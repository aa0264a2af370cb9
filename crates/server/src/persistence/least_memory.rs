//! Warning for a `maxmemory` below what the server takes for itself. As in Redis the limit is accepted, and
//! writes are refused; a message says how much is needed.

use std::sync::atomic::Ordering::Relaxed;

use crate::config::Setting;
use crate::persistence::durable::Durable;

/// A smaller limit is probably in the wrong unit.
const SMALLEST: u64 = 1 << 20;
const UNIT: &str = ". The unit of maxmemory is bytes: 512mb are megabytes, 2gb gigabytes";

impl Durable {
    /// Warns if `maxmemory` leaves no room for data, or is below the current data.
    pub(crate) fn warn_of_small_limit(&self) {
        let limit = self.settings.int(Setting::MaxMemory).unsigned_abs();
        let (least, used) = (self.least_memory(), self.used_memory());
        if limit == 0 {
            return;
        }
        if limit <= least {
            log::warn!(
                "maxmemory is {limit} bytes, but the server itself takes up to {least}: \
                 there is no room for data, and writes are refused. It should be some megabytes above that{}",
                if limit < SMALLEST { UNIT } else { "" }
            );
        } else if limit < used {
            let outcome = match self.policy() {
                Some(_) => "keys are evicted until it holds",
                None if self.offloads() && self.may_offload() => {
                    "values are left in the log until it holds"
                }
                None => "writes are refused until keys are deleted",
            };
            log::warn!("maxmemory is {limit} bytes, and {used} bytes are in use: {outcome}");
        }
    }

    /// Bytes of a server without data: at the start, buffers of the log that fill with time, and the margin
    /// of the workers.
    fn least_memory(&self) -> u64 {
        let margin = self.memory.margin.load(Relaxed).unsigned_abs();
        self.memory.startup() + self.persistence.ring_capacity() + margin
    }
}
