//! Notifications to the service manager (systemd's `Type=notify`): the data is loaded, the server is alive,
//! the server ends.
//!
//! They are sent only if the environment asks for them (`NOTIFY_SOCKET`, `WATCHDOG_USEC`). A manager that
//! does not listen is ignored.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::server::Server;

/// See the module. Belongs to the control thread: while that runs its rounds, the server lives.
#[derive(Default)]
pub(crate) struct ServiceManager {
    is_ready: bool,
    is_ending: bool,
    /// How long the manager waits for a sign of life.
    patience: Option<Duration>,
    /// When it was given the last one (monotonic ns).
    alive_ns: u64,
}

impl ServiceManager {
    /// The one of this process, if there is one.
    pub(crate) fn new() -> ServiceManager {
        ServiceManager {
            patience: sd_notify::watchdog_enabled(),
            ..ServiceManager::default()
        }
    }

    /// Tells what has changed. To be called often.
    pub(crate) fn tick(&mut self, server: &Server) {
        if !self.is_ready && !server.is_loading() {
            self.is_ready = true;
            let status = format!("{} workers, {}", server.workers.len(), server.poller_name);
            tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
        }
        if !self.is_ending && (server.is_ending() || server.is_shutting_down()) {
            self.is_ending = true;
            tell(&[NotifyState::Stopping, NotifyState::Status("Ending")]);
        }
        let now_ns = sys::clock::monotonic_ns();
        if let Some(patience) = self.patience
            && u128::from(now_ns - self.alive_ns) >= patience.as_nanos() / 2
        {
            self.alive_ns = now_ns;
            tell(&[NotifyState::Watchdog]);
        }
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        log::warn!("the service manager cannot be told: {error}");
    }
}
