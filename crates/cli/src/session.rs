//! A conversation with a server: requests and what they change, and connecting again when the connection is
//! gone.
//!
//! Here is what a prompt shows (database, transaction) and what has to be done again on a new connection
//! (password, database, protocol). What a reply looks like is in `format`; where commands come from is in
//! `interactive`, `lines` and `main`.
//!
//! Invariants:
//! 1. A request is sent once. If the connection breaks before its reply, nobody knows whether it ran, so it
//!    is not sent again; a connection that was closed *before* the request is replaced without a word.
//! 2. A transaction is never continued on another connection.

mod cluster;

use std::io::Write;
use std::time::Duration;

use resp::Value;
use sys::signal::Interrupts;

use crate::connection::{Connection, Place};
use crate::failure::{Broken, Failure, Result};
use crate::flags::{Access, Protocol};
use crate::format::{Format, Style};
use crate::limits::RECONNECT_PAUSE;
use crate::request::{Answer, answer, begins, is};

/// Where replies go, and in what form.
pub(crate) struct Show<'a> {
    pub(crate) out: &'a mut dyn Write,
    pub(crate) style: &'a Style,
    /// Messages that nobody asked for are shown.
    pub(crate) pushes: bool,
    /// An error reply is a failure instead of text.
    pub(crate) ends_at_errors: bool,
    pub(crate) has_colors: bool,
    /// Told every reply.
    pub(crate) seen: Option<&'a mut dyn FnMut(&Value)>,
}

impl Show<'_> {
    fn reply(&mut self, value: &Value, is_text: bool) -> Result {
        if self.ends_at_errors
            && let Value::Error(text) = value
        {
            return Err(Failure::other(String::from_utf8_lossy(text)));
        }
        if let Some(seen) = &mut self.seen {
            seen(value);
        }
        let mut text = Vec::new();
        if is_text {
            self.style.append_text(&mut text, value);
        } else {
            self.style.append(&mut text, value);
        }
        self.out.write_all(&text)?;
        // Whoever reads this from a pipe wants it when it happens.
        Ok(self.out.flush()?)
    }

    fn push(&mut self, value: &Value) -> Result {
        if self.pushes {
            let mut text = Vec::new();
            self.style.append_push(&mut text, value);
            self.out.write_all(&text)?;
        }
        Ok(())
    }
}

/// Whether the server answers, which `CLIENT REPLY` changes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replies {
    On,
    Off,
    /// Not to the next request.
    Skip,
}

/// How often, and how quickly one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    /// For ever if negative.
    pub(crate) count: i64,
    pub(crate) interval: Duration,
}

/// See the module.
pub(crate) struct Session {
    pub(crate) access: Access,
    connection: Option<Connection>,
    /// Counts connections.
    generation: u64,
    /// The one that is selected on the connection.
    database: u64,
    /// Inside a transaction: the database from before it.
    before_transaction: Option<u64>,
    replies: Replies,
    /// A person is there who sees what goes wrong, and wants to go on.
    is_interactive: bool,
    is_verbose: bool,
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
    fn open(&mut self) -> std::io::Result<()> {
        self.drop_connection();
        let connection = Connection::open(&self.access.place, self.access.approach)?;
        self.connection = Some(connection);
        self.generation += 1;
        if self.is_verbose {
            eprintln!("Connected to {}", self.access.place);
        }
        Ok(())
    }

    fn drop_connection(&mut self) {
        self.connection = None;
        self.database = 0;
        self.before_transaction = None;
        self.replies = Replies::On;
    }

    /// AUTH, SELECT and HELLO, where they are needed. A refusal is told and the conversation goes on, as
    /// people know it; but a script must not write into another database than it meant to.
    fn introduce(&mut self) -> Result {
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
    fn demand(&mut self, what: &str, words: &[Vec<u8>]) -> Result<bool> {
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

    /// Runs a command as often as it should, and shows its replies. Connects if need be.
    ///
    /// # Errors
    /// The connection is broken and gone, or an error reply is one.
    pub(crate) fn run(&mut self, words: &[Vec<u8>], repeat: Repeat, show: &mut Show<'_>) -> Result {
        let mut left = repeat.count;
        while left != 0 {
            left -= i64::from(left > 0);
            let result = self.run_once(words, show);
            if let Err(Failure::Broken(_) | Failure::Interrupted) = result {
                self.drop_connection();
            }
            result?;
            if !repeat.interval.is_zero() {
                self.pause(repeat.interval)?;
            }
        }
        Ok(())
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

    fn run_once(&mut self, words: &[Vec<u8>], show: &mut Show<'_>) -> Result {
        self.ensure_connected()?;
        let answer = answer(words);
        if answer == Answer::Replication {
            return Err(Failure::other(
                "SYNC and PSYNC make the connection a replica's, which ferrite-cli cannot show",
            ));
        }
        let mut redirections = 0;
        loop {
            let connection = self.connection.as_mut().ok_or(Failure::Told)?;
            connection.queue(words);
            connection.flush()?;
            if !self.expects_reply(words) {
                return Ok(());
            }
            if matches!(answer, Answer::Monitor | Answer::Subscription) {
                if self.follow(answer, &mut redirections, show)? {
                    continue;
                }
                return Ok(());
            }
            let value = match self.read_reply(words, show) {
                Err(Failure::Broken(Broken::Closed)) if answer == Answer::End => {
                    self.drop_connection();
                    return Ok(());
                }
                result => result?,
            };
            if self.redirect(&value, &mut redirections)? {
                continue;
            }
            self.note(words, &value);
            return show.reply(&value, answer == Answer::Text);
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

    /// The reply of a request. Messages that come before it are shown; where a command is answered by a
    /// message, it is the reply.
    fn read_reply(&mut self, words: &[Vec<u8>], show: &mut Show<'_>) -> Result<Value> {
        loop {
            let interrupts = self.interrupts.as_ref();
            let connection = self.connection.as_mut().ok_or(Failure::Told)?;
            match connection.read(interrupts)? {
                Value::Push(items) => {
                    let value = Value::Push(items);
                    if answers_by_message(words, &value) {
                        return Ok(value);
                    }
                    show.push(&value)?;
                }
                value => return Ok(value),
            }
        }
    }

    /// Shows messages until an error, which ends them, or an interrupt, which costs the connection: there is
    /// no other way back from all of these modes. True: another node has to be asked instead, to which it has
    /// gone.
    fn follow(
        &mut self,
        answer: Answer,
        redirections: &mut u32,
        show: &mut Show<'_>,
    ) -> Result<bool> {
        let is_first = *redirections == 0;
        if answer == Answer::Subscription && is_first && show.style.format != Format::Raw {
            writeln!(show.out, "Reading messages... (press Ctrl-C to quit)")?;
            show.out.flush()?;
        }
        loop {
            let interrupts = self.interrupts.as_ref();
            let connection = self.connection.as_mut().ok_or(Failure::Told)?;
            match connection.read(interrupts) {
                Ok(value) => {
                    if self.redirect(&value, redirections)? {
                        return Ok(true);
                    }
                    show.reply(&value, false)?;
                    if matches!(value, Value::Error(_)) {
                        return Ok(false);
                    }
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Whether the server will answer this request.
    fn expects_reply(&mut self, words: &[Vec<u8>]) -> bool {
        let says = |how| words.len() == 3 && begins(words, "client reply") && is(&words[2], how);
        if says("off") {
            self.replies = Replies::Off;
        } else if says("on") {
            self.replies = Replies::On;
        } else if says("skip") && self.replies == Replies::On {
            self.replies = Replies::Skip;
            return false;
        }
        let expects = self.replies == Replies::On;
        if self.replies == Replies::Skip {
            self.replies = Replies::On;
        }
        expects
    }

    /// Keeps in mind what a request has changed.
    fn note(&mut self, words: &[Vec<u8>], value: &Value) {
        let [name, arguments @ ..] = words else {
            return;
        };
        let failed = matches!(value, Value::Error(_));
        match arguments {
            [number] if is(name, "select") && !failed => {
                let number = std::str::from_utf8(number).ok();
                if let Some(number) = number.and_then(|text| text.parse().ok()) {
                    self.set_database(number);
                }
            }
            [password] if is(name, "auth") && !failed => {
                self.access.user = None;
                self.access.password = Some(password.clone());
            }
            [user, password] if is(name, "auth") && !failed => {
                self.access.user = Some(user.clone());
                self.access.password = Some(password.clone());
            }
            [version, ..] if is(name, "hello") && !failed => {
                let protocol = if version == b"3" {
                    Protocol::Resp3
                } else {
                    Protocol::Resp2
                };
                self.access.protocol = Some(protocol);
            }
            [] if is(name, "multi") && !failed => self.before_transaction = Some(self.database),
            [] if is(name, "exec") => {
                if let Some(database) = self.before_transaction.take()
                    && (failed || *value == Value::Null)
                {
                    self.set_database(database);
                }
            }
            [] if is(name, "discard") && !failed => {
                if let Some(database) = self.before_transaction.take() {
                    self.set_database(database);
                }
            }
            [] if is(name, "reset") && !failed => {
                self.before_transaction = None;
                self.set_database(0);
                self.access.protocol = None;
            }
            _ => {}
        }
    }

    fn set_database(&mut self, database: u64) {
        self.database = database;
        self.access.database = database;
    }
}

/// In RESP3, (un)subscribing is answered by messages. Those that begin a subscription don't come here.
fn answers_by_message(words: &[Vec<u8>], message: &Value) -> bool {
    let Value::Push(items) = message else {
        return false;
    };
    let (Some(name), Some(Value::Bulk(kind) | Value::Simple(kind))) =
        (words.first(), items.first())
    else {
        return false;
    };
    kind.ends_with(b"unsubscribe") && name.eq_ignore_ascii_case(kind)
}
