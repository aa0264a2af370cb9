//! Room in the log for the records of threads that are no workers.

use std::time::Duration;

use ferrite_log::{Appender, Refusal};

use super::durable::Durable;
use crate::limits::{BEGIN_BYTES, BEGIN_RETRY_MS};

/// Reserves space in the log; waits while the disk is full.
pub(super) fn ensure(server: &Durable, appender: &mut Appender) -> Result<(), String> {
    ensure_bytes(server, appender, BEGIN_BYTES)
}

/// The same for so many bytes.
pub(super) fn ensure_bytes(
    server: &Durable,
    appender: &mut Appender,
    bytes: u64,
) -> Result<(), String> {
    loop {
        if server.is_shutting_down() || !server.persistence.is_open() {
            return Err("the log was closed before all data was in it".into());
        }
        match appender.ensure(bytes) {
            Ok(()) => return Ok(()),
            Err(Refusal::Full(_)) => std::thread::sleep(Duration::from_millis(BEGIN_RETRY_MS)),
            Err(refusal) => return Err(refusal.to_string()),
        }
    }
}
