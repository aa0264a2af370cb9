//! The control thread: the main thread once everything runs. It accepts connections, hears signals, and ten
//! times a second brings figures up to date that no worker owns.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use keyspace::Turn;
use sys::poller::{Backend, Interest, Poller};
use sys::signal::{Signal, Signals};
use sys::socket::{Listener, Socket};

use crate::command::cluster::reload_and_tell;
use crate::config::Setting;
use crate::config::logging;
use crate::limits::{ACCEPT_BURST, CRON_MS, CRON_PATIENCE, ENDING_PATIENCE_NS};
use crate::runtime::pid_file;
use crate::runtime::service::ServiceManager;
use crate::runtime::shutdown;
use crate::server::Server;
use crate::shared::Message;
use crate::shared::clients::Client;
use crate::transport::Transport;

const WAKER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

/// Rounds of [`CRON_MS`] after which rates are computed.
const RATE_ROUNDS: u32 = 10;

/// See the module.
pub(crate) struct Control {
    server: &'static Server,
    listeners: Vec<Listener>,
    signals: Signals,
    poller: Poller,
    turn: Turn<'static>,
    manager: ServiceManager,
    rounds: u32,
    is_first_round: bool,
    /// When the end of the server was first seen (monotonic ns).
    ending_since_ns: Option<u64>,
    last: [u64; 3],
    /// Accepting waits until then (monotonic ns) after the process ran out of descriptors.
    accept_after_ns: u64,
    /// It has, and the log says so.
    accept_fails: bool,
}

impl Control {
    pub(crate) fn new(
        server: &'static Server,
        listeners: Vec<Listener>,
        signals: Signals,
    ) -> io::Result<Control> {
        let mut poller = Poller::new(Backend::Auto)?;
        poller.add_waker(&server.control, WAKER)?;
        poller.add(signals.as_fd(), SIGNALS, Interest::READ)?;
        for (at, listener) in listeners.iter().enumerate() {
            poller.add(listener.as_fd(), at as u64, Interest::READ)?;
        }
        let turn = server.keyspace.turns().register();
        Ok(Control {
            server,
            listeners,
            signals,
            poller,
            turn,
            manager: ServiceManager::new(),
            rounds: 0,
            is_first_round: true,
            ending_since_ns: None,
            last: [0; 3],
            accept_after_ns: 0,
            accept_fails: false,
        })
    }

    /// Runs until the server shuts down.
    pub(crate) fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        // Before the first connection: the memory of the start is not that of a request.
        self.cron();
        let mut next_cron = sys::clock::monotonic_ns() + CRON_MS as u64 * 1_000_000;
        while !self.server.is_shutting_down() {
            let wait = next_cron.saturating_sub(sys::clock::monotonic_ns());
            if let Err(error) = self
                .poller
                .wait(&mut events, Some(Duration::from_nanos(wait)))
            {
                log::error!("waiting for connections failed: {error}");
                self.server.begin_shutdown();
            }
            for event in &events {
                match event.token {
                    WAKER => {
                        self.server.control.drain();
                        self.server.memory.purge_if_much();
                    }
                    SIGNALS => self.hear(),
                    at => self.accept(at as usize),
                }
            }
            if self.server.running.is_abandoned() {
                log::warn!("exiting beside a script that has not ended: its changes are lost");
                pid_file::remove(&self.server.settings);
                std::process::exit(0);
            }
            if sys::clock::monotonic_ns() >= next_cron {
                next_cron = sys::clock::monotonic_ns() + CRON_MS as u64 * 1_000_000;
                self.cron();
            }
        }
        self.manager.tick(self.server);
    }

    fn hear(&mut self) {
        while let Some(signal) = self.signals.read() {
            match signal {
                Signal::Term | Signal::Int | Signal::Quit => {
                    shutdown::begin_by_signal(self.server, signal);
                }
                Signal::Hup => {
                    reopen_log(self.server, signal);
                    if let Some(cluster) = &self.server.cluster {
                        // The log says what came of it.
                        let _ = reload_and_tell(self.server, cluster);
                    }
                }
                Signal::Usr1 => reopen_log(self.server, signal),
                Signal::Usr2 => log::info!("received {}: it means nothing", signal.name()),
            }
        }
    }

    fn accept(&mut self, at: usize) {
        if sys::clock::monotonic_ns() < self.accept_after_ns {
            // The listener stays readable; sleeping here is what keeps this from spinning.
            std::thread::sleep(Duration::from_millis(10));
            return;
        }
        for _ in 0..ACCEPT_BURST {
            match self.listeners[at].accept() {
                Ok(Some(socket)) => {
                    self.accept_fails = false;
                    self.admit(socket);
                }
                Ok(None) => return,
                Err(error) => {
                    if !self.accept_fails {
                        log::warn!(
                            "accepting connections fails, trying again until it doesn't: {error}"
                        );
                    }
                    self.accept_fails = true;
                    self.accept_after_ns = sys::clock::monotonic_ns() + 100_000_000;
                    return;
                }
            }
        }
    }

    /// Hands a connection to the worker with the fewest, or refuses it.
    fn admit(&mut self, socket: Socket) {
        let server = self.server;
        if let Some(refusal) = self.refusal(&socket) {
            server.totals.rejected.add(1);
            // A client that was not reading its first reply yet gets nothing: it is refused either way.
            let _ = Transport::plain(socket).send(&mut self.poller, refusal.as_bytes());
            return;
        }
        server.totals.connections.add(1);
        // A connection that is gone already is found out by its worker's first read.
        let _ = socket.set_nodelay(true);
        let keepalive = server.settings.int(Setting::TcpKeepalive);
        if keepalive > 0 {
            let _ = socket.set_keepalive(keepalive as u32);
        }
        let fewest = server
            .workers
            .iter()
            .enumerate()
            .min_by_key(|(_, worker)| worker.connections.load(Relaxed));
        let (number, worker) = fewest.expect("there is at least one worker");
        worker.connections.fetch_add(1, Relaxed);
        let client = Arc::new(Client::new(server.clients.next_id(), &socket, number));
        server.clients.add(Arc::clone(&client));
        worker.send(Message::Accept(socket, client));
    }

    fn refusal(&self, socket: &Socket) -> Option<String> {
        let settings = &self.server.settings;
        if self.server.clients.len() as i64 >= settings.int(Setting::MaxClients) {
            return Some("-ERR max number of clients reached\r\n".into());
        }
        if !self.server.is_protected_from(socket) {
            return None;
        }
        Some(
            "-DENIED Ferrite is running in protected mode: no password is set for the default user, so only connections \
             from the loopback interface are accepted. To accept others, set a password (requirepass) or, on a network \
             you trust, turn the protection off with CONFIG SET protected-mode no from this host.\r\n"
                .into(),
        )
    }

    /// Looks once more at what the process takes before there is data: all threads have begun by now.
    fn note_startup_memory(&self) {
        let keyspace = &self.server.keyspace;
        let mut databases = (0..keyspace.databases()).map(|db| keyspace.existing(&self.turn, db));
        let is_empty =
            databases.all(|database| database.is_none_or(|database| database.is_empty()));
        if is_empty && !self.server.is_loading() {
            // The log's ring has a figure of its own.
            let ring = self.server.persistence.ring_bytes() as usize;
            let data = keyspace.memory(&self.turn);
            self.server.note_startup_memory(data + ring);
        }
    }

    /// Tells INFO and LATENCY how long commands were held up by an index that was being resized.
    fn note_resizing(&self) {
        let server = self.server;
        let took_us = sys::clock::ticks_to_ns(server.keyspace.take_slowest_resize()) / 1000;
        let slowest = &server.totals.slowest_resize_us;
        slowest.set(slowest.get().max(took_us));
        let threshold_ms = server.settings.int(Setting::LatencyMonitorThreshold);
        if threshold_ms > 0 && took_us as i64 >= threshold_ms * 1000 {
            let now_s = sys::clock::realtime_ms() / 1000;
            server
                .latency
                .lock()
                .add("index-resize", now_s, took_us / 1000);
        }
    }

    /// Notes what took long in the log: writes and syncs under the names that they have in Redis, slices of
    /// compaction.
    fn note_disk(&self) {
        let server = self.server;
        let slowest = server.persistence.take_slowest();
        let threshold_ms = server.settings.int(Setting::LatencyMonitorThreshold);
        let is_always = server.settings.choice(Setting::AppendFsync) == "always";
        let events = [
            ("aof-write", slowest.write_us),
            (
                "aof-fsync-always",
                if is_always { slowest.sync_us } else { 0 },
            ),
            ("log-compaction", slowest.compaction_us),
        ];
        for (name, us) in events {
            if threshold_ms > 0 && us as i64 >= threshold_ms * 1000 {
                let now_s = sys::clock::realtime_ms() / 1000;
                server.latency.lock().add(name, now_s, us / 1000);
            }
        }
    }

    /// Ends the process if the end of the server has waited long for a script that has changed data.
    fn end_in_spite_of_a_script(&mut self) {
        let now = sys::clock::monotonic_ns();
        let since = *self.ending_since_ns.get_or_insert(now);
        if now - since > ENDING_PATIENCE_NS && self.server.running.any() {
            self.server.running.abandon();
        }
    }

    /// Ten times a second.
    fn cron(&mut self) {
        self.manager.tick(self.server);
        // The thread that ends the server keeps others out of the keyspace, and signals are to be heard
        // meanwhile.
        if self.server.is_ending() {
            self.end_in_spite_of_a_script();
            return;
        }
        self.ending_since_ns = None;
        self.server
            .check_memory(self.server.persistence.ring_capacity());
        // A script may keep others out for long, and signals are to be heard meanwhile.
        if self.server.running.ms() > CRON_PATIENCE.as_millis() as i64 {
            return;
        }
        if !self.turn.enter_within(CRON_PATIENCE) {
            return;
        }
        let is_first = std::mem::take(&mut self.is_first_round);
        if is_first {
            self.note_startup_memory();
            self.server
                .check_memory(self.server.persistence.ring_capacity());
            self.server.warn_of_small_limit();
        }
        self.server.bound_clients_anew();
        if self.server.should_begin_offloading() {
            self.turn
                .exclusive(|alone| self.server.begin_offloading(alone));
            log::info!(
                "Memory is nearly used up: values that were not used lately are left in the log"
            );
        }
        if self.rounds == 0 {
            self.server.forget_large(&mut self.turn);
        }
        if !self.server.is_loading() {
            let snapshots = &self.server.snapshots;
            snapshots.start_if_due(self.server, &mut self.turn);
            self.server
                .key_scan
                .go_on(&self.server.keyspace, &self.turn);
            if let Some(cluster) = &self.server.cluster {
                cluster.look_for_strays(&self.server.keyspace, &self.turn);
            }
        }
        self.turn.leave();
        let now_ms = sys::clock::realtime_ms();
        self.server
            .hot_key_session
            .stop_if_due(self.server.stats(), now_ms);
        self.note_resizing();
        self.note_disk();
        self.rounds += 1;
        if self.rounds < RATE_ROUNDS {
            return;
        }
        self.rounds = 0;
        let server = self.server;
        let now = [
            server.sum(|stats| &stats.commands),
            server.sum(|stats| &stats.input_bytes),
            server.sum(|stats| &stats.output_bytes),
        ];
        let rates = [
            &server.totals.commands_per_second,
            &server.totals.input_per_second,
            &server.totals.output_per_second,
        ];
        for ((rate, now), last) in rates.into_iter().zip(now).zip(self.last) {
            rate.set(now.saturating_sub(last));
        }
        self.last = now;
    }
}

/// Opens a new log file: a rotation has renamed the old one.
fn reopen_log(server: &Server, signal: Signal) {
    let name = signal.name();
    match logging::reopen(&server.settings) {
        Ok(true) => log::info!("received {name}: the log file was opened anew"),
        Ok(false) => log::info!("received {name}: there is no 'logfile' to open anew"),
        Err(problem) => log::warn!("received {name}: {problem}; the old file is written on"),
    }
}

/// Opens everything the configuration says to listen on. The error names the address.
pub(crate) fn listen(settings: &crate::config::Settings) -> Result<Vec<Listener>, String> {
    let mut listeners = Vec::new();
    let port = settings.int(Setting::Port) as u16;
    let backlog = settings.int(Setting::TcpBacklog) as i32;
    if port != 0 {
        listeners = Listener::tcp_at_each(&settings.text(Setting::Bind), port, backlog)?;
        if listeners.is_empty() {
            return Err(format!(
                "cannot listen on port {port}: none of the addresses in 'bind' is usable"
            ));
        }
    }
    let path = settings.text(Setting::UnixSocket);
    if !path.is_empty() {
        let mode = settings.int(Setting::UnixSocketPerm);
        let mode = (mode != 0).then_some(mode as u32);
        let listener = Listener::unix(Path::new(&*path), mode, backlog);
        listeners.push(
            listener.map_err(|error| format!("cannot listen on unix socket {path}: {error}"))?,
        );
    }
    if listeners.is_empty() {
        return Err("nothing to listen on: 'port' is 0 and 'unixsocket' is not set".into());
    }
    Ok(listeners)
}
