//! Session of a connection: identity, database, modes.
//!
//! The session belongs to the connection's worker. Its part for other connections (CLIENT LIST, CLIENT KILL)
//! is in its [`Client`] record, which the methods here keep in step.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use resp::reply::Protocol;

use crate::command::combining::Combining;
use crate::command::deferred::Deferred;
use crate::command::queue::Transaction;
use crate::config::ClientClass;
use crate::names::Disjoint;
use crate::observe::watch::WatchList;
use crate::request::ReplyMode;
use crate::shared::clients::{Client, ClientKind, status};

/// See the module.
pub(crate) struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    /// It gave the password, or there was none when it connected; see [`Session::is_admitted`].
    pub(crate) authenticated: bool,
    /// When its attempt to log in has its turn (Unix, ms), for which it waits.
    pub(crate) login_at_ms: Option<i64>,
    pub(crate) reply_mode: ReplyMode,
    /// CLIENT NO-TOUCH.
    pub(crate) no_touch: bool,
    /// Receives every command that is run.
    pub(crate) monitor: bool,
    /// It may be told something that it did not ask for: its worker's `Listeners` know it.
    pub(crate) listens: bool,
    /// SYNC sends the libraries alone.
    pub(crate) wants_libraries: bool,
    /// The connection ends once its replies are sent.
    pub(crate) closing: bool,
    /// Transaction begun by MULTI.
    pub(crate) transaction: Option<Box<Transaction>>,
    /// Watched keys.
    pub(crate) watched: WatchList,
    /// Where the keys begin that CLIENT TRACKING BCAST wants to know of.
    pub(crate) prefixes: Disjoint,
    /// Deferred work that it waits for.
    pub(crate) deferred: Option<Box<Deferred>>,
    /// Value that a thread makes for its request.
    pub(crate) combining: Option<Box<Combining>>,
    /// Turns in which there was no room yet for its first request.
    pub(crate) turns_without_room: u32,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, authenticated: bool) -> Session {
        Session {
            client,
            db: 0,
            protocol: Protocol::Resp2,
            authenticated,
            login_at_ms: None,
            reply_mode: ReplyMode::On,
            no_touch: false,
            monitor: false,
            listens: false,
            wants_libraries: false,
            closing: false,
            transaction: None,
            watched: WatchList::default(),
            prefixes: Disjoint::default(),
            deferred: None,
            combining: None,
            turns_without_room: 0,
        }
    }

    /// Whether it may do more than authenticate. A connection from the time of a password needs none once the
    /// password is removed.
    #[inline]
    pub(crate) fn is_admitted(&self, needs_password: impl FnOnce() -> bool) -> bool {
        self.authenticated || !needs_password()
    }

    /// Whether all it gets are messages, so that it may only say what is about them: RESP2 can't tell them
    /// from replies.
    #[inline]
    pub(crate) fn is_subscriber_only(&self) -> bool {
        self.listens && self.protocol == Protocol::Resp2 && self.client.has_status(status::PUBSUB)
    }

    /// Gives it a name; an empty one is none.
    pub(crate) fn set_name(&mut self, name: &str) {
        self.client.rename(|names| names.name = name.to_owned());
    }

    /// Chooses a database, which exists.
    pub(crate) fn select(&mut self, db: usize) {
        self.db = db;
        self.client.db.store(db, Relaxed);
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
        self.client.protocol.store(self.protocol_number(), Relaxed);
    }

    /// The version of its protocol, as HELLO and CLIENT LIST give it.
    pub(crate) fn protocol_number(&self) -> u8 {
        match self.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }

    pub(crate) fn set_no_touch(&mut self, on: bool) {
        self.no_touch = on;
        self.client.set_status(status::NO_TOUCH, on);
    }

    /// Resets it to a new session, but for name and version of its library. The caller has ended MONITOR,
    /// subscriptions, transaction and tracking.
    pub(crate) fn reset(&mut self, authenticated: bool) {
        // Its own reply may be the one that is skipped.
        let reply_mode = match self.reply_mode {
            ReplyMode::Skip => ReplyMode::Skip,
            _ => ReplyMode::On,
        };
        *self = Session {
            reply_mode,
            ..Session::new(Arc::clone(&self.client), authenticated)
        };
        self.select(self.db);
        self.set_protocol(self.protocol);
        self.client
            .set_status(status::MONITOR | status::NO_EVICT | status::NO_TOUCH, false);
        self.set_name("");
    }

    /// The kind of client whose output limit applies.
    pub(crate) fn output_class(&self) -> ClientClass {
        match self.client.kind() {
            ClientKind::PubSub => ClientClass::PubSub,
            ClientKind::Normal | ClientKind::Replica | ClientKind::Master => ClientClass::Normal,
        }
    }
}
