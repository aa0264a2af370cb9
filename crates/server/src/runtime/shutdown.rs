//! The end of the server by a signal.

use sys::signal::Signal;

use crate::persistence::{Ending, end};
use crate::runtime::pid_file;
use crate::server::Server;

/// Ends the server because of a signal, on a thread of its own: a second signal is still heard.
pub(crate) fn begin_by_signal(server: &'static Server, signal: Signal) {
    if server.set_ending(true) {
        if signal != Signal::Term {
            log::warn!("You insist... exiting now.");
            pid_file::remove(&server.settings);
            std::process::exit(1);
        }
        return;
    }
    log::warn!("received {}: shutting down", signal.name());
    let end = move || {
        let ended = end(
            server,
            &server.keyspace.turns().exclusive(),
            Ending::default(),
        );
        if ended.is_err() {
            log::warn!(
                "{} received but errors trying to shut down the server, check the logs for more information",
                signal.name()
            );
            server.set_ending(false);
        }
    };
    let thread = std::thread::Builder::new().name("shutdown".into());
    if let Err(error) = thread.spawn(end) {
        log::error!("cannot start a thread to shut down: {error}");
        server.set_ending(false);
    }
}
