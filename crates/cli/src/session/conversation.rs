//! The connection of a conversation: opening it, what has to be done again on a new one, and asking.

use std::io::Write;
use std::time::Duration;

use resp::Value;
use sys::signal::Interrupts;

use crate::access::{Access, Protocol};
use crate::connection::{Connection, Place};
use crate::failure::{Broken, Failure, Result};
use crate::limits::RECONNECT_PAUSE;

/// Whether the server answers, which `CLIENT REPLY` changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Replies {
    On,
    Off,
    /// Not to the next request.
    Skip,
}

/// See the module.
pub(crate) struct Session {
    pub(crate) access: Access,
    pub(super) connection: Option<Connection>,
    /// Counts connections.
    pub(super) generation: u64,
    /// The one that is selected on the connection.
    pub(super) database: u64,
    /// Inside a transaction: the database from before it.
    pub(super) before_transaction: Option<u64>,
    pub(super) replies: Replies,
    /// A person is there who sees what goes wrong, and wants to go on.
    pub(super) is_interactive: bool,
    pub(super) is_verbose: bool,
    /// Ends what takes long, if it is heard at all.
    pub(crate) interrupts: Option<Interrupts>,
}

impl Session {
    /// A conversation that has not begun.
    pub(crate) fn new(access: Access, is_interactive: bool, is_verbose: bool) -> Session {
        Session {
            access,
            connection: None,
            generation: 0,
            database: 0,
            before_transaction: None,
            replies: Replies::On,
            is_interactive,
            is_verbose,
            interrupts: None,
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Which connection there is: another number, another connection.
    pub(crate) fn generation(&self) -> Option<u64> {
        self.connection.as_ref().map(|_| self.generation)
    }

    /// The database that is selected.
    pub(crate) fn database(&self) -> u64 {
        self.database
    }

    /// Whether EXEC or DISCARD is due.
    pub(crate) fn in_transaction(&self) -> bool {
        self.before_transaction.is_some()
    }

    /// The connection, for a mode that does all of its talking itself.
    ///
    /// # Errors
    /// There is none; the person was told why.
    pub(crate) fn into_connection(mut self) -> Result<Connection> {
        self.ensure_connected()?;
        self.connection.take().ok_or(Failure::Told)
    }

    /// Connects, anew if need be, and says who we are and what we want.
    ///
    /// # Errors
    /// There is no connection; standard error says why.
    pub(crate) fn connect(&mut self) -> Result {
        if let Err(error) = self.open() {
            let place = match &self.access.place {
                Place::Port(host, port) => format!("{host}:{port}"),
                place @ Place::Socket(_) => place.to_string(),
            };
            eprintln!("Could not connect to Redis at {place}: {error}");
            return Err(Failure::Told);
        }
        self.introduce()
    }

    /// The same where a server would be nice to have.
    ///
    /// # Errors
    /// There is no connection; nobody was told.
    pub(crate) fn connect_quietly(&mut self) -> Result {
        self.open().map_err(|_| Failure::Told)?;
        self.introduce()
    }

    /// Replaces the connection by one on which nothing has been said.
    pub(super) fn open(&mut self) -> std::io::Result<()> {
        self.drop_connection();
        let connection = Connection::open(&self.access.place, self.access.approach)?;
        self.connection = Some(connection);
        self.generation += 1;
        if self.is_verbose {
            eprintln!("Connected to {}", self.access.place);
        }
        Ok(())
    }

    pub(super) fn drop_connection(&mut self) {
        self.connection = None;
        self.database = 0;
        self.before_transaction = None;
        self.replies = Replies::On;
    }

    /// AUTH, SELECT and HELLO, where they are needed. A refusal is told and the conversation goes on, as
    /// people know it; but a script must not write into another database than it meant to.
    pub(super) fn introduce(&mut self) -> Result {
        if let Some(password) = self.access.password.clone() {
            let mut words = vec![b"AUTH".to_vec()];
            words.extend(self.access.user.clone());
            words.push(password);
            self.demand("AUTH", &words)?;
        }
        let database = self.access.database;
        if database != 0 {
            let number = database.to_string();
            let words = [b"SELECT".to_vec(), number.clone().into_bytes()];
            if self.demand(&format!("SELECT {number}"), &words)? {
                self.database = database;
            } else if !self.is_interactive {
                self.drop_connection();
                return Err(Failure::Told);
            }
        }
        if matches!(
            self.access.protocol,
            Some(Protocol::Resp3 | Protocol::Resp3IfPossible)
        ) {
            self.demand("HELLO 3", &[b"HELLO".to_vec(), b"3".to_vec()])?;
        }
        Ok(())
    }

    /// Asks for something that should not be refused, and tells if it is.
    pub(super) fn demand(&mut self, what: &str, words: &[Vec<u8>]) -> Result<bool> {
        match self.ask(words) {
            Ok(Value::Error(text)) => {
                eprintln!("{what} failed: {}", String::from_utf8_lossy(&text));
                Ok(false)
            }
            Ok(_) => Ok(true),
            Err(failure) => {
                self.drop_connection();
                Err(failure)
            }
        }
    }

    /// Sends a request on the connection that is there, and waits for its reply; messages that come in
    /// between are dropped.
    ///
    /// # Errors
    /// The connection is broken, or there is none.
    pub(crate) fn ask(&mut self, words: &[Vec<u8>]) -> Result<Value> {
        let interrupts = self.interrupts.as_ref();
        let connection = self.connection.as_mut().ok_or(Failure::Told)?;
        connection.queue(words);
        connection.flush()?;
        loop {
            match connection.read(interrupts)? {
                Value::Push(_) => {}
                value => return Ok(value),
            }
        }
    }

    /// The same for several requests at once: the replies in their order.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn ask_all<W: AsRef<[u8]>>(&mut self, requests: &[Vec<W>]) -> Result<Vec<Value>> {
        let interrupts = self.interrupts.as_ref();
        let connection = self.connection.as_mut().ok_or(Failure::Told)?;
        for words in requests {
            connection.queue(words);
        }
        connection.flush()?;
        let mut replies = Vec::with_capacity(requests.len());
        while replies.len() < requests.len() {
            match connection.read(interrupts)? {
                Value::Push(_) => {}
                value => replies.push(value),
            }
        }
        Ok(replies)
    }

    /// The same for a mode that watches a server which may go and come back: connects again, once a second,
    /// until there is an answer.
    ///
    /// # Errors
    /// What the server sends is no reply, or nobody sees what this prints.
    pub(crate) fn ask_patiently(&mut self, words: &[Vec<u8>]) -> Result<Value> {
        let mut tries = 0;
        loop {
            match self.ask(words) {
                Err(Failure::Broken(Broken::Closed | Broken::Io(_)) | Failure::Told) => {}
                result => {
                    if tries > 0 {
                        write!(std::io::stdout(), "\r\x1b[0K")?;
                    }
                    return result;
                }
            }
            tries += 1;
            let mut out = std::io::stdout();
            write!(out, "\r\x1b[0KReconnecting... {tries}\r")?;
            out.flush()?;
            std::thread::sleep(RECONNECT_PAUSE);
            if self.open().is_ok() {
                // If the server goes again at this moment, the next turn finds out.
                let _ = self.introduce();
            }
        }
    }

    /// Does nothing for a while.
    ///
    /// # Errors
    /// A person wants it to end, now or since this was asked last.
    pub(crate) fn pause(&self, interval: Duration) -> Result {
        match &self.interrupts {
            Some(interrupts) if interrupts.sleep(interval) => Err(Failure::Interrupted),
            Some(_) => Ok(()),
            None => {
                std::thread::sleep(interval);
                Ok(())
            }
        }
    }

    /// Connects unless there is a connection that can be used.
    ///
    /// # Errors
    /// There is none, or one with a transaction that was lost.
    pub(crate) fn ensure_connected(&mut self) -> Result {
        match &self.connection {
            None => self.connect(),
            // A script gets the error that the request will cause.
            Some(connection) if self.is_interactive && connection.is_ended() => {
                if self.in_transaction() {
                    return Err(Broken::Closed.into());
                }
                self.connect()
            }
            Some(_) => Ok(()),
        }
    }
}
