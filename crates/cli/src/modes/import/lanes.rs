//! Where an import writes: a connection to the server, or with `-c` one to each node of a cluster.
//!
//! A lane is a connection with the keys that wait for its replies. In a cluster a key goes by the lane of its
//! slot; a node that does not have it any more says which has, and that is remembered.

use std::collections::VecDeque;

use resp::Value;
use resp::cluster::Redirection;
use resp::slot::{SLOTS, slot};

use crate::access::Access;
use crate::connection::{Connection, Place};
use crate::failure::{Failure, Result};
use crate::limits::MAX_REDIRECTIONS;
use crate::session::Session;

/// A key that is sent, by one request or several, until its last reply comes.
pub(super) struct Sent {
    pub(super) key: Vec<u8>,
    pub(super) database: u64,
    /// In a cluster the requests, which another node may have to be sent.
    pub(super) requests: Vec<Vec<Vec<u8>>>,
    /// Requests whose replies have not come.
    pub(super) unanswered: usize,
    /// No request of the key follows.
    pub(super) is_whole: bool,
    /// The first error among the replies, or the last reply.
    pub(super) reply: Value,
}

impl Sent {
    pub(super) fn new(key: &[u8], database: u64) -> Sent {
        Sent {
            key: key.to_vec(),
            database,
            requests: Vec::new(),
            unanswered: 0,
            is_whole: false,
            reply: Value::Null,
        }
    }

    /// Takes the next reply.
    pub(super) fn take(&mut self, reply: Value) {
        if !matches!(self.reply, Value::Error(_)) {
            self.reply = reply;
        }
    }
}

/// A key that a node of a cluster did not take.
pub(super) struct Astray {
    pub(super) sent: Sent,
    /// The lane that it went by.
    pub(super) from: usize,
    pub(super) target: Redirection,
    /// How often it was sent on before.
    pub(super) count: u32,
}

/// See the module.
pub(super) struct Lane {
    place: Place,
    connection: Connection,
    /// In the order of their replies; the last `batch_keys` of them are not on their way yet.
    pub(super) waiting: VecDeque<Sent>,
    pub(super) batch_keys: usize,
    pub(super) batch_bytes: usize,
}

impl Lane {
    fn of(session: Session) -> Result<Lane> {
        Ok(Lane {
            place: session.access.place.clone(),
            connection: session.into_connection()?,
            waiting: VecDeque::new(),
            batch_keys: 0,
            batch_bytes: 0,
        })
    }

    /// Adds a request to the batch.
    pub(super) fn queue<W: AsRef<[u8]>>(&mut self, words: &[W]) {
        self.connection.queue(words);
    }

    /// Sends the batch. Returns how many keys it had.
    pub(super) fn send(&mut self) -> Result<usize> {
        self.flush()?;
        Ok(std::mem::take(&mut self.batch_keys))
    }

    /// Sends the batch, which goes on.
    pub(super) fn flush(&mut self) -> Result {
        self.batch_bytes = 0;
        Ok(self.connection.flush()?)
    }

    /// Adds a request of the key that was begun last.
    fn queue_for_key<W: AsRef<[u8]>>(&mut self, words: &[W], is_cluster: bool) {
        self.queue(words);
        let sent = self.waiting.back_mut().expect("a key was begun");
        sent.unanswered += 1;
        if is_cluster {
            let words = words.iter().map(|word| word.as_ref().to_vec());
            sent.requests.push(words.collect());
        }
        self.batch_bytes += words.iter().map(|word| word.as_ref().len()).sum::<usize>();
    }

    /// The reply to one request. No other may wait for its reply.
    pub(super) fn ask(&mut self, request: &[Vec<u8>], is_once: bool) -> Result<Value> {
        if is_once {
            self.queue(&[b"ASKING"]);
            self.send()?;
            self.reply()?;
        }
        self.queue(request);
        self.send()?;
        self.reply()
    }

    /// The next reply.
    pub(super) fn reply(&mut self) -> Result<Value> {
        loop {
            match self.connection.read(None)? {
                Value::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }
}

/// All connections of an import.
pub(super) struct Lanes {
    access: Access,
    is_verbose: bool,
    pub(super) all: Vec<Lane>,
    /// In a cluster the lane of each slot.
    by_slot: Option<Vec<usize>>,
}

impl Lanes {
    /// Connects.
    ///
    /// # Errors
    /// There is no connection to the server, or to a node.
    pub(super) fn open(access: Access, is_verbose: bool) -> Result<Lanes> {
        let mut session = Session::new(access.clone(), false, is_verbose);
        session.connect()?;
        let owners = session.owners()?;
        let mut lanes = Lanes {
            access,
            is_verbose,
            all: Vec::new(),
            by_slot: None,
        };
        let Some(owners) = owners else {
            lanes.all.push(Lane::of(session)?);
            return Ok(lanes);
        };
        // A slot that no node has is refused by the first.
        let mut by_slot = vec![0; usize::from(SLOTS)];
        for node in owners {
            let at = lanes.find_or_open(Place::Port(node.host, node.port))?;
            for (first, last) in node.ranges {
                by_slot[usize::from(first)..=usize::from(last)].fill(at);
            }
        }
        lanes.by_slot = Some(by_slot);
        Ok(lanes)
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.by_slot.is_some()
    }

    /// The lane of a key.
    pub(super) fn of(&self, key: &[u8]) -> usize {
        let by_slot = self.by_slot.as_ref();
        by_slot.map_or(0, |by_slot| by_slot[usize::from(slot(key))])
    }

    /// Begins the requests of a key. Returns its lane.
    pub(super) fn begin_key(&mut self, key: &[u8], database: u64) -> usize {
        let at = self.of(key);
        self.all[at].waiting.push_back(Sent::new(key, database));
        at
    }

    /// Adds a request of the key that was begun last on a lane.
    pub(super) fn queue_for_key<W: AsRef<[u8]>>(&mut self, at: usize, words: &[W]) {
        let is_cluster = self.is_cluster();
        self.all[at].queue_for_key(words, is_cluster);
    }

    /// Ends the requests of the key that was begun last on a lane.
    pub(super) fn end_key(&mut self, at: usize) {
        let lane = &mut self.all[at];
        lane.batch_keys += 1;
        lane.waiting.back_mut().expect("a key was begun").is_whole = true;
    }

    /// Whether the server has a key. No request may wait for its reply.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn exists(&mut self, key: &[u8]) -> Result<bool> {
        let request = [b"EXISTS".to_vec(), key.to_vec()];
        let (mut at, mut is_once) = (self.of(key), false);
        for _ in 0..=MAX_REDIRECTIONS {
            let reply = self.all[at].ask(&request, is_once);
            match self.at_node(at, reply)? {
                Value::Error(text) if self.is_cluster() => {
                    let Some(target) = Redirection::parse(&text) else {
                        break;
                    };
                    at = self.follow(at, &target)?;
                    is_once = target.is_once;
                }
                reply => return Ok(reply == Value::Integer(1)),
            }
        }
        // What is wrong is told where the key is written.
        Ok(false)
    }

    /// The lane to where a redirection points, which is that of its slot from now on if it says so.
    ///
    /// # Errors
    /// There is no connection to that node.
    pub(super) fn follow(&mut self, from: usize, target: &Redirection) -> Result<usize> {
        let host = match (target.host.as_str(), &self.all[from].place) {
            ("", Place::Port(own, _)) => own.clone(),
            (host, _) => host.to_owned(),
        };
        let at = self.find_or_open(Place::Port(host, target.port))?;
        if let Some(by_slot) = &mut self.by_slot
            && !target.is_once
        {
            by_slot[usize::from(target.slot)] = at;
        }
        Ok(at)
    }

    fn find_or_open(&mut self, place: Place) -> Result<usize> {
        if let Some(at) = self.all.iter().position(|lane| lane.place == place) {
            return Ok(at);
        }
        self.access.place = place;
        let session = Session::new(self.access.clone(), false, self.is_verbose);
        self.all.push(Lane::of(session)?);
        Ok(self.all.len() - 1)
    }

    /// Says of what went wrong at which node it did, where there are several.
    pub(super) fn at_node<T>(&self, at: usize, result: Result<T>) -> Result<T> {
        match result {
            Err(failure) if self.is_cluster() => {
                let place = &self.all[at].place;
                Err(Failure::Other(format!("{place}: {failure}")))
            }
            result => result,
        }
    }
}
