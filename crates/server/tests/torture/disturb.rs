//! Connections that are made, cut in the middle of a request, and closed by the server: which of what was on
//! its way has happened?

use std::sync::atomic::Ordering;

use crate::support::{PATIENCE, Value};
use crate::torture::history::{Deed, Step};
use crate::torture::inspect;
use crate::torture::lives::Rule;
use crate::torture::run::{Find, LANES, Runner};
use crate::torture::script::Request;
use crate::torture::wire::{Silence, encode, now_ms};

impl Runner {
    /// Connects a lane anew, with RESP3 where its number says so.
    pub(crate) fn connect(&mut self, number: usize) -> Result<(), Find> {
        let failed = |what: String| Find::new("connect", what);
        let connection = self.process.connect(number.is_multiple_of(2), &self.clock);
        let mut connection = connection.map_err(|error| failed(error.to_string()))?;
        if number % 4 >= 2 {
            let reply = connection.ask("HELLO 3", PATIENCE);
            reply.map_err(|silence| failed(format!("HELLO 3: {silence:?}")))?;
        }
        let id = match connection.ask("CLIENT ID", PATIENCE) {
            Ok(Value::Int(id)) => id,
            other => return Err(failed(format!("CLIENT ID answers {other:?}"))),
        };
        if number % 3 == 2 {
            connection.be_lazy();
        }
        let lane = &mut self.lanes[number];
        lane.connection = Some(connection);
        lane.id = id;
        lane.unanswered_bytes.clear();
        lane.in_multi = false;
        lane.is_watching = false;
        Ok(())
    }

    /// Sends a part of a request, closes the connection, and looks which of what was on its way has happened.
    pub(crate) fn cut(&mut self, number: usize, share: u8, request: &Request) -> Result<(), Find> {
        self.need_server()?;
        if self.life.is_stuck || self.pending_global() {
            return Ok(());
        }
        let bytes = encode(request);
        let len = (bytes.len() * usize::from(share) / 100).min(bytes.len() - 1);
        if let Some(connection) = &mut self.lanes[number].connection {
            connection.send_bytes(&bytes[..len]);
            connection.close();
        }
        self.reconnect(number)
    }

    /// Another connection sends a request for the keys of this one, while nothing of this one is on its way.
    pub(crate) fn beside(&mut self, number: usize, request: &Request) -> Result<(), Find> {
        self.need_server()?;
        if self.life.may_refuse() || self.life.is_stuck {
            return Ok(());
        }
        if self.pending_global() {
            self.settle()?;
        }
        while self.lanes[number].history.pending() > 0 {
            if !self.pump(number)? {
                return Ok(());
            }
        }
        let mut connection = self.reader()?;
        let model = &self.lanes[number].history.model;
        let request = model.with_cursor(request);
        let silent = |silence| Find::new("silence", format!("beside {number}: {silence:?}"));
        if model.db > 0 {
            let selected = connection.ask(&format!("SELECT {}", model.db), PATIENCE);
            selected.map_err(silent)?;
        }
        let (bytes, sent_ms) = (encode(&request), now_ms());
        let step = Step {
            deed: Deed::Beside(request),
            global: None,
            sent: connection.send_bytes(&bytes),
            sent_ms,
            answer: None,
            maps: self.maps(),
            limit: None,
        };
        let lane = &mut self.lanes[number];
        lane.unanswered_bytes.push(bytes.len());
        lane.history.steps.push(step);
        let reply = connection.receive(PATIENCE).map_err(silent)?;
        self.take(number, &reply)
    }

    /// Has the server close a connection.
    pub(crate) fn kick(&mut self, number: usize) -> Result<(), Find> {
        self.need_server()?;
        if self.life.is_stuck || self.pending_global() {
            return Ok(());
        }
        let id = self.lanes[number].id;
        self.ask(&format!("CLIENT KILL ID {id}"))?;
        self.reconnect(number)
    }

    /// Finishes sending, and takes the answers to all that was sent, behind which the server closes the
    /// connection.
    pub(crate) fn finish_sending(&mut self, number: usize) -> Result<(), Find> {
        self.need_server()?;
        if self.life.is_stuck || self.pending_global() {
            return Ok(());
        }
        // A connection that waits for a key ends when half of it is closed, as in Redis.
        while self.lanes[number].history.may_wait() && self.pump(number)? {}
        if let Some(connection) = &mut self.lanes[number].connection {
            connection.finish();
        }
        while self.lanes[number].history.pending() > 0 {
            let Some(connection) = &mut self.lanes[number].connection else {
                break;
            };
            match connection.receive(PATIENCE) {
                Ok(reply) => self.take(number, &reply)?,
                // A client whose replies take too much memory is closed.
                Err(Silence::Closed) if self.life.maxmemory.is_some() => break,
                Err(silence) => {
                    let pending = self.lanes[number].history.pending();
                    let text = format!("{pending} requests are not answered: {silence:?}");
                    return Err(Find::new("finish", format!("connection {number}: {text}")));
                }
            }
        }
        if let Some(connection) = &mut self.lanes[number].connection {
            let end = connection.receive(PATIENCE).map(|reply| reply.value);
            if end != Err(Silence::Closed) {
                let text = format!("connection {number} does not end: {end:?}");
                return Err(Find::new("finish", text));
            }
        }
        self.reconnect(number)
    }

    /// Waits until the server has forgotten a connection, reads its keys, and connects it again.
    pub(crate) fn reconnect(&mut self, number: usize) -> Result<(), Find> {
        let lane = &mut self.lanes[number];
        if let Some(mut connection) = lane.connection.take() {
            while lane.history.pending() > 0 {
                let Ok(reply) = connection.receive(PATIENCE) else {
                    break;
                };
                lane.connection = None;
                let answered =
                    lane.history
                        .answer(&reply, self.life.is_always, &self.life.refusals());
                answered
                    .map_err(|wrong| Find::new("reply", format!("connection {number}: {wrong}")))?;
            }
        }
        let id = format!("id={} ", self.lanes[number].id);
        self.until("a closed connection goes", |runner| {
            let list = runner.ask("CLIENT LIST")?.text();
            Ok(!list.lines().any(|line| line.starts_with(&id)))
        })?;
        let found = self.with_all_slots(|runner| {
            let mut reader = runner.reader()?;
            let is_scarce = runner.life.maxmemory.is_some();
            let found = inspect::read(&mut reader, LANES, Some(number), is_scarce);
            found.map_err(|problem| Find::new("read", problem))
        })?;
        let history = &mut self.lanes[number].history;
        let kept = history.judge(&found.keys[number], found.asked, Rule::KeepsAll);
        let kept = kept.and_then(|kept| match kept.most < history.answered {
            true => Err(format!(
                "{} of {} steps are there",
                kept.most, history.answered
            )),
            false => Ok(kept),
        });
        let kept = kept.map_err(|wrong| {
            Find::new("cut", format!("connection {number} was closed; {wrong}"))
        })?;
        let stamp = self.clock.fetch_add(1, Ordering::SeqCst);
        history.reconnect(
            kept,
            stamp,
            &found.keys[number],
            found.asked,
            self.life.is_always,
        );
        self.connect(number)
    }
}
