//! The nodes of a cluster, as far as a conversation needs them: going where a reply points to, and to each
//! node in turn.

use std::io::Write;

use resp::Value;
use resp::cluster::{Node, Redirection, parse_slots};

use super::conversation::Session;
use crate::connection::Place;
use crate::failure::{Failure, Result};
use crate::limits::MAX_REDIRECTIONS;

impl Session {
    /// Goes to the node that a reply names, if it does and redirections are followed; `count` is how many
    /// were before, for the same request. Inside a transaction none is followed:
    /// its commands would run outside of it.
    ///
    /// # Errors
    /// The node cannot be reached, of which the person was told, or there were too many. The place is the
    /// one from before then.
    pub(super) fn redirect(&mut self, value: &Value, count: &mut u32) -> Result<bool> {
        let Value::Error(text) = value else {
            return Ok(false);
        };
        if !self.access.follows_redirections || self.in_transaction() {
            return Ok(false);
        }
        let Some(target) = Redirection::parse(text) else {
            return Ok(false);
        };
        if *count == MAX_REDIRECTIONS {
            return Err(Failure::Other(format!(
                "Too many redirections ({MAX_REDIRECTIONS}), the last: {}",
                String::from_utf8_lossy(text)
            )));
        }
        *count += 1;
        let host = self.host_or_own(target.host);
        if self.is_interactive {
            writeln!(
                std::io::stdout(),
                "-> Redirected to slot [{}] located at {host}:{}",
                target.slot,
                target.port
            )?;
        }
        let before = self.access.place.clone();
        self.access.place = Place::Port(host, target.port);
        if let Err(failure) = self.connect() {
            // A node that is gone takes only its own slots along.
            self.access.place = before;
            return Err(failure);
        }
        if target.is_once {
            self.demand("ASKING", &[b"ASKING".to_vec()])?;
        }
        Ok(true)
    }

    /// A node that does not know its own name means the one that was asked.
    fn host_or_own(&self, host: String) -> String {
        match (host.as_str(), &self.access.place) {
            ("", Place::Port(own, _)) => own.clone(),
            _ => host,
        }
    }

    /// The nodes that have slots, if redirections are followed and the server is a cluster's.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn owners(&mut self) -> Result<Option<Vec<Node>>> {
        if !self.access.follows_redirections {
            return Ok(None);
        }
        let reply = self.ask(&[b"CLUSTER".to_vec(), b"SLOTS".to_vec()])?;
        let nodes = parse_slots(&reply).filter(|nodes| !nodes.is_empty());
        Ok(nodes.map(|nodes| {
            let named = |node: Node| Node {
                host: self.host_or_own(node.host),
                ..node
            };
            nodes.into_iter().map(named).collect()
        }))
    }

    /// Where these are.
    ///
    /// # Errors
    /// As [`Session::owners`].
    pub(crate) fn nodes(&mut self) -> Result<Option<Vec<Place>>> {
        let place = |node: Node| Place::Port(node.host, node.port);
        let owners = self.owners()?;
        Ok(owners.map(|nodes| nodes.into_iter().map(place).collect()))
    }

    /// Goes on at another node.
    ///
    /// # Errors
    /// There is no connection; standard error says why.
    pub(crate) fn go_to(&mut self, place: Place) -> Result {
        self.access.place = place;
        self.connect()
    }
}
