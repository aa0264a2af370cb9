//! Connections: opening and losing them; in a cluster, which node each belongs to, and moving it when the map
//! has changed.

use super::state::{Worker, token};
use crate::drive::clock::{self, Ticks, now};
use crate::drive::job::Message;
use crate::limits::{MAX_DIALING, REDIAL_PAUSE};
use crate::wire::link::{Link, LinkError};
use crate::wire::map::Map;
use std::io;
use std::sync::Arc;
use sys::socket::Endpoint;

impl Worker<'_> {
    /// Deals out the connections to the nodes of a map. One that now belongs to another node is given up
    /// when its requests are answered.
    pub(super) fn take_map(&mut self, map: Arc<Map>, version: u32) {
        for index in 0..self.clients.len() {
            let place = map.place_of(self.first_client + index);
            let client = &mut self.clients[index];
            client.next_node = place;
            if client.link.is_none() {
                client.node = place;
            } else if client.is_stale() && client.in_flight == 0 {
                self.hang_up(index);
            }
        }
        self.nodes = Some(map);
        self.map_version = version;
    }

    /// Ends a connection that has done its batch, or that is only being opened.
    pub(super) fn hang_up(&mut self, index: usize) {
        if let Some(link) = self.clients[index].link.take() {
            if link.is_open() {
                self.open -= 1;
            } else {
                self.dialing -= 1;
            }
            link.leave(&mut self.poller);
            self.closed.push(index);
        }
    }

    /// Asks for the map to be read again, if it was not just read.
    pub(super) fn doubt_map(&self, now: Ticks) {
        if let Some(cluster) = &self.job.cluster
            && cluster.takes_read(now)
        {
            // Nobody listens any more only if the run was given up.
            let _ = self.reports.send(Message::Moved);
        }
    }

    /// Takes the newest map, if there is one.
    pub(super) fn look_at_map(&mut self) {
        if let Some(cluster) = &self.job.cluster
            && cluster.version() != self.map_version
        {
            let (map, version) = cluster.map();
            self.take_map(map, version);
        }
    }

    /// Where the next connection of a client goes.
    pub(super) fn endpoint(&mut self, index: usize) -> Endpoint {
        let client = &mut self.clients[index];
        client.node = client.next_node;
        match &self.nodes {
            Some(map) => map.nodes[client.node].endpoint.clone(),
            None => self.job.target.endpoint.clone(),
        }
    }

    /// Begins as many connections as may be begun at a time.
    pub(super) fn dial_some(&mut self) -> Result<(), LinkError> {
        while self.dialing < MAX_DIALING
            && let Some(index) = self.closed.pop()
        {
            let endpoint = self.endpoint(index);
            let client = &mut self.clients[index];
            client.generation += 1;
            client.dialed_at = now();
            let token = token(index, client.generation);
            match Link::dial(&mut self.poller, &endpoint, token) {
                Ok(link) => {
                    client.link = Some(link);
                    self.dialing += 1;
                }
                // No port or no room in the queue just now.
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::AddrNotAvailable
                    ) =>
                {
                    self.closed.push(index);
                    self.redial_at = now() + clock::ticks(REDIAL_PAUSE);
                    return Ok(());
                }
                Err(error) => {
                    self.closed.push(index);
                    return self.survive(error.into());
                }
            }
        }
        Ok(())
    }

    /// Goes on after a connection was lost, if that is wanted and not for too long already.
    pub(super) fn survive(&mut self, error: LinkError) -> Result<(), LinkError> {
        let patience = clock::ticks(self.job.plan.reconnect);
        let is_refusal = matches!(error, LinkError::Refused(_) | LinkError::NoReply(_));
        if patience == 0 || is_refusal || !self.job.has_started() {
            return Err(error);
        }
        let now = now();
        if self.open == 0 {
            let since = *self.alone_since.get_or_insert(now);
            if now - since > patience {
                return Err(error);
            }
        }
        self.redial_at = now + clock::ticks(REDIAL_PAUSE);
        Ok(())
    }

    /// Drops a connection and what was under way on it.
    pub(super) fn lose(&mut self, index: usize, error: LinkError) -> Result<(), LinkError> {
        let client = &mut self.clients[index];
        let Some(link) = client.link.take() else {
            return Ok(());
        };
        if link.is_open() {
            self.open -= 1;
            self.slice.lost_connections += 1;
            self.slice.lost_requests += client.in_flight as u64;
        } else {
            self.dialing -= 1;
        }
        link.leave(&mut self.poller);
        self.in_flight -= client.in_flight;
        client.in_flight = 0;
        client.owed = 0;
        client.sent.clear();
        self.closed.push(index);
        // Another node may have its slots by now.
        self.doubt_map(now());
        self.survive(error)
    }
}
