//! The thread that serves HTTP.
//!
//! A slow or hostile client costs a bounded part of this one thread and nothing of the workers: there are at
//! most [`HTTP_CONNECTIONS`] connections (a further one takes the place of the one that is closest to its
//! deadline), each has a deadline and a few kilobytes, and figures are gathered at most every
//! [`HTTP_FRESH_MS`](crate::limits::HTTP_FRESH_MS), however many ask for them.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use keyspace::Turn;
use sys::poller::{Backend, Event, Interest, Poller};
use sys::socket::{Listener, Socket};

use super::connection::{Connection, Said};
use super::routes::Routes;
use crate::config::{Setting, Settings};
use crate::limits::{HTTP_ACCEPT_BURST, HTTP_CONNECTIONS};
use crate::server::Server;

const WAKER: u64 = u64::MAX;
/// Tokens from here on are listeners.
const LISTENERS: u64 = u64::MAX / 2;

/// See the module.
pub(crate) struct Http {
    server: &'static Server,
    listeners: Vec<Listener>,
    poller: Poller,
    connections: Vec<Connection>,
    next_token: u64,
    routes: Routes,
}

/// Opens what `http-port` and `http-bind` say; nothing where the port is 0.
pub(crate) fn listen(settings: &Settings) -> Result<Vec<Listener>, String> {
    let port = settings.int(Setting::HttpPort) as u16;
    if port == 0 {
        return Ok(Vec::new());
    }
    let listeners = Listener::tcp_at_each(&settings.text(Setting::HttpBind), port, 64)?;
    if listeners.is_empty() {
        return Err(format!(
            "cannot listen on http-port {port}: none of the addresses in 'http-bind' is usable"
        ));
    }
    Ok(listeners)
}

impl Http {
    /// Built by the thread that starts the others, so that a failure is one of the start.
    pub(crate) fn new(server: &'static Server, listeners: Vec<Listener>) -> io::Result<Http> {
        let mut poller = Poller::new(Backend::Auto)?;
        poller.add_waker(&server.http, WAKER)?;
        for (at, listener) in listeners.iter().enumerate() {
            poller.add(listener.as_fd(), LISTENERS + at as u64, Interest::READ)?;
        }
        Ok(Http {
            server,
            listeners,
            poller,
            connections: Vec::new(),
            next_token: 0,
            routes: Routes::new(server),
        })
    }

    /// Runs until the server shuts down.
    pub(crate) fn run(mut self) {
        let mut turn = self.server.keyspace.turns().register();
        let mut events = Vec::with_capacity(64);
        while !self.server.is_shutting_down() {
            if let Err(error) = self.poller.wait(&mut events, Some(self.timeout())) {
                // The data is unaffected: HTTP ends, everything else goes on.
                log::error!("HTTP ends: waiting for events failed: {error}");
                return;
            }
            for event in &events {
                self.hear(event, &mut turn);
            }
            let waiting: Vec<u64> = self.waiting().collect();
            for token in waiting {
                self.go_on(token, &mut turn);
            }
            self.close_late();
            self.routes.look(&mut turn, now_ms());
        }
    }

    /// Connections that have sent a further request already.
    fn waiting(&self) -> impl Iterator<Item = u64> + '_ {
        let waiting = self
            .connections
            .iter()
            .filter(|one| one.has_whole_request());
        waiting.map(|one| one.token)
    }

    fn timeout(&self) -> Duration {
        if self.waiting().next().is_some() {
            return Duration::ZERO;
        }
        let deadlines = self.connections.iter().map(|one| one.deadline_ms);
        let next_ms = deadlines
            .min()
            .unwrap_or(u64::MAX)
            .min(self.routes.due_ms());
        Duration::from_millis(next_ms.saturating_sub(now_ms()).min(60_000))
    }

    fn hear(&mut self, event: &Event, turn: &mut Turn<'static>) {
        match event.token {
            WAKER => self.server.http.drain(),
            token @ LISTENERS.. => self.accept((token - LISTENERS) as usize),
            token => {
                let Some(at) = self.find(token) else { return };
                let connection = &mut self.connections[at];
                let done = if connection.is_sending() {
                    self.flush(at)
                } else if event.readable || event.hangup {
                    connection.receive(&mut self.poller, now_ms())
                } else {
                    Ok(())
                };
                match done {
                    Ok(()) => self.go_on(token, turn),
                    Err(_) => self.close(token),
                }
            }
        }
    }

    fn accept(&mut self, at: usize) {
        for _ in 0..HTTP_ACCEPT_BURST {
            match self.listeners[at].accept() {
                Ok(Some(socket)) => self.admit(socket),
                Ok(None) => return,
                Err(_) => {
                    // No descriptors are left; the control thread's log tells of it. The listener stays
                    // readable, so this pause is what keeps the thread from spinning.
                    std::thread::sleep(Duration::from_millis(10));
                    return;
                }
            }
        }
    }

    fn admit(&mut self, socket: Socket) {
        if self.connections.len() == HTTP_CONNECTIONS {
            let nearest = self.connections.iter().min_by_key(|one| one.deadline_ms);
            let token = nearest.expect("the bound is not zero").token;
            self.close(token);
        }
        // One that is gone already is found out by its first read.
        let _ = socket.set_nodelay(true);
        let token = self.next_token;
        self.next_token = (self.next_token + 1) % LISTENERS;
        let connection = Connection::new(socket, token, now_ms());
        let watched = connection
            .transport
            .watch(&mut self.poller, token, Interest::READ);
        if watched.is_ok() {
            self.connections.push(connection);
        }
    }

    /// Answers the next request of a connection that has nothing to send, if it is there. One at a time, so
    /// that connections take turns.
    fn go_on(&mut self, token: u64, turn: &mut Turn<'static>) {
        let Some(at) = self.find(token) else { return };
        let connection = &mut self.connections[at];
        if connection.is_sending() {
            return;
        }
        match connection.next(now_ms()) {
            Said::Nothing => {}
            Said::End => return self.close(token),
            Said::Request(request) => {
                let response = self
                    .routes
                    .answer(&request, connection.transport.socket(), turn);
                connection.answer(response, request.is_head, now_ms());
            }
        }
        if self.flush(at).is_err() {
            self.close(token);
        }
    }

    /// Sends what can be sent, and waits for what comes next.
    fn flush(&mut self, at: usize) -> io::Result<()> {
        let connection = &mut self.connections[at];
        if !connection.is_sending() {
            return Ok(());
        }
        if !connection.send(&mut self.poller, now_ms())? {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        let interest = connection.interest();
        connection
            .transport
            .rewatch(&mut self.poller, connection.token, interest)
    }

    fn close_late(&mut self) {
        let now_ms = now_ms();
        let late = self
            .connections
            .iter()
            .filter(|one| one.deadline_ms <= now_ms);
        let tokens: Vec<u64> = late.map(|one| one.token).collect();
        tokens.into_iter().for_each(|token| self.close(token));
    }

    fn find(&self, token: u64) -> Option<usize> {
        self.connections.iter().position(|one| one.token == token)
    }

    fn close(&mut self, token: u64) {
        if let Some(at) = self.find(token) {
            let connection = self.connections.swap_remove(at);
            let _ = connection.transport.unwatch(&mut self.poller);
        }
    }
}

fn now_ms() -> u64 {
    sys::clock::monotonic_ns() / 1_000_000
}
