//! Connections to the nodes of a cluster: which node each belongs to, and moving it when the map has changed.

use super::Worker;
use crate::drive::clock::Ticks;
use crate::drive::run::Message;
use crate::wire::cluster::Map;
use std::sync::Arc;
use sys::socket::Endpoint;

impl Worker<'_> {
    /// Deals out the connections to the nodes of a map. One that now belongs to another node is given up
    /// when its requests are
    /// answered.
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
}
