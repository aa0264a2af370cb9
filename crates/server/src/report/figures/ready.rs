//! Whether the server is ready: whether every command may run.

use crate::config::Setting;
use crate::server::Server;
use crate::shared::gate::Closed;

/// Why some commands are refused now; `None` if none are.
pub(crate) fn why_not_ready(server: &Server) -> Option<&'static str> {
    let gate = &server.gate;
    if gate.has(Closed::Ending) || server.is_ending() {
        Some("the server is shutting down")
    } else if gate.has(Closed::Loading) {
        Some("data is being loaded")
    } else if gate.has(Closed::SnapshotFailed) {
        Some(
            "writes are refused: the last snapshot could not be written (stop-writes-on-bgsave-error)",
        )
    } else if gate.has(Closed::LogRefuses) {
        Some("writes are refused: the log takes no records, as the disk is full or has failed")
    } else if server.running.ms() > server.settings.int(Setting::BusyReplyThreshold) {
        Some("a script keeps all others from the data (busy-reply-threshold)")
    } else if !gate.is_open() {
        Some("writes are refused: see the log of the server")
    } else if server.policy().is_none() && server.memory.is_exceeded() {
        Some("writes are refused: the memory limit is reached (maxmemory)")
    } else {
        None
    }
}
