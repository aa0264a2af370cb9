//! Running a command: its replies are shown, and what it has changed is kept in mind.

use resp::Value;

use super::conversation::{Replies, Session};
use super::show::{Repeat, Show};
use crate::access::Protocol;
use crate::failure::{Broken, Failure, Result};
use crate::format::Format;
use crate::request::{Answer, answer, begins, is};

impl Session {
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
