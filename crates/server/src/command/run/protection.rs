//! Commands that a connection needs leave for: DEBUG and its kin, and modules.

use std::net::SocketAddr;

use crate::command::{Command, Session};
use crate::config::Setting;
use crate::request::{Failure, failure};
use crate::server::Server;

/// Refusal of a protected command, if any: DEBUG needs `enable-debug-command`, and no client may load
/// modules.
#[cold]
pub(super) fn protection(command: &Command, server: &Server, session: &Session) -> Option<Failure> {
    if command.full_name.starts_with("module|") {
        return Some(failure::NO_MODULES);
    }
    let is_allowed = match server.settings.choice(Setting::EnableDebugCommand) {
        "yes" => true,
        "local" => is_local(session),
        _ => false,
    };
    (!is_allowed).then_some(failure::PROTECTED)
}

/// Whether a connection comes from this machine.
fn is_local(session: &Session) -> bool {
    let client = &session.client;
    let peer = client.peer.parse::<SocketAddr>();
    client.is_unix || peer.is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
}
