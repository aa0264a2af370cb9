//! A question now and then: one connection, one request, wait for the reply. For what a load generator
//! wants to know besides its load: a server's version, its settings, its process.

use super::link::plain;
use super::target::Target;
use resp::{Value, parse_value};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use sys::{Backend, Event, Interest, Poller, Socket};

/// A connection for questions.
#[derive(Debug)]
pub(crate) struct Asker {
    socket: Socket,
    poller: Poller,
    events: Vec<Event>,
    input: Vec<u8>,
    /// How much of the input has been returned.
    taken: usize,
    /// How long an answer may take.
    patience: Duration,
}

impl Asker {
    /// Connects and greets. No answer, now or later, may take longer than `patience`.
    ///
    /// # Errors
    /// The server cannot be reached or refuses the greeting.
    pub(crate) fn open(target: &Target, patience: Duration) -> Result<Asker, String> {
        let failed = |error: io::Error| {
            format!(
                "Could not connect to Redis at {}: {}",
                target.name,
                plain(&error)
            )
        };
        let mut poller = Poller::new(Backend::Auto).map_err(failed)?;
        let socket = Socket::dial(&target.endpoint).map_err(failed)?;
        poller
            .add(socket.as_fd(), 0, Interest::WRITE)
            .map_err(failed)?;
        let mut asker = Asker {
            socket,
            poller,
            events: Vec::new(),
            input: Vec::new(),
            taken: 0,
            patience,
        };
        asker.wait().map_err(failed)?;
        asker.socket.take_error().map_err(failed)?;
        let (greeting, count) = target.greeting.encode();
        asker.send(&greeting).map_err(|error| plain(&error))?;
        for _ in 0..count {
            if let Value::Error(text) = asker.reply()? {
                return Err(format!(
                    "{}: {}",
                    target.name,
                    String::from_utf8_lossy(&text)
                ));
            }
        }
        Ok(asker)
    }

    /// Asks, and returns the reply, which may be an error of the server's.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        let mut request = Vec::new();
        resp::write_request(&mut request, words);
        self.send(&request).map_err(|error| plain(&error))?;
        self.reply()
    }

    /// Sends several requests together and returns their replies.
    ///
    /// # Errors
    /// The connection is broken.
    pub(crate) fn ask_many(&mut self, requests: &[u8], count: usize) -> Result<Vec<Value>, String> {
        self.send(requests).map_err(|error| plain(&error))?;
        (0..count).map(|_| self.reply()).collect()
    }

    /// The value of a setting, if the server tells.
    pub(crate) fn setting(&mut self, name: &str) -> Option<String> {
        match self.ask(&[b"CONFIG", b"GET", name.as_bytes()]).ok()? {
            Value::Array(pair) => text_of(pair.get(1)?),
            Value::Map(pairs) => text_of(&pairs.first()?.1),
            _ => None,
        }
    }

    /// Those of these commands that the server does not have. None, if it does not tell.
    pub(crate) fn lacking<'n>(&mut self, names: &[&'n str]) -> Vec<&'n str> {
        let mut words: Vec<&[u8]> = vec![b"COMMAND", b"INFO"];
        words.extend(names.iter().map(|name| name.as_bytes()));
        match self.ask(&words) {
            Ok(Value::Array(entries)) if entries.len() == names.len() => {
                let pairs = names.iter().zip(&entries);
                let lacking = pairs.filter(|(_, entry)| **entry == Value::Null);
                lacking.map(|(name, _)| *name).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// The connection is broken, or there was no answer in time.
    pub(crate) fn info(&mut self) -> Result<Info, String> {
        let reply = self.ask(&[b"INFO"])?;
        Ok(Info(text_of(&reply).unwrap_or_default()))
    }

    fn reply(&mut self) -> Result<Value, String> {
        loop {
            let parsed =
                parse_value(&self.input[self.taken..]).map_err(|error| error.to_string())?;
            if let Some((value, len)) = parsed {
                self.taken += len;
                return Ok(value);
            }
            // What was taken goes now and not with each reply, or many in a row would be moved often.
            self.input.drain(..self.taken);
            self.taken = 0;
            self.receive().map_err(|error| plain(&error))?;
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        self.input.reserve(16 << 10);
        let fd = self.socket.as_fd();
        match self.poller.recv_spare(fd, &mut self.input) {
            Ok(0) => Err(io::Error::other("Server closed the connection")),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.poller.modify(self.socket.as_fd(), 0, Interest::READ)?;
                self.wait()
            }
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.poller.send(self.socket.as_fd(), bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.poller
                        .modify(self.socket.as_fd(), 0, Interest::WRITE)?;
                    self.wait()?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        self.poller.wait(&mut self.events, Some(self.patience))?;
        if self.events.is_empty() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

/// The answer to INFO.
#[derive(Clone, Debug)]
pub(crate) struct Info(String);

impl Info {
    /// The value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            (field == name).then(|| value.trim())
        })
    }

    /// The name and version that the server gives itself. Those that are not Redis have a field for
    /// their own beside the version of Redis that they follow.
    pub(crate) fn version(&self) -> Option<String> {
        const FIELDS: [(&str, &str); 5] = [
            ("ferrite_version", "Ferrite"),
            ("valkey_version", "Valkey"),
            ("dragonfly_version", "Dragonfly"),
            ("garnet_version", "Garnet"),
            ("redis_version", "Redis"),
        ];
        FIELDS.iter().find_map(|(field, name)| {
            let version = self.field(field)?;
            Some(format!("{name} {version}"))
        })
    }
}

/// The text of a reply that is one.
pub(crate) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Verbatim { text, .. } => {
            Some(String::from_utf8_lossy(text).into_owned())
        }
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_called_by_their_own_names() {
        let info = |text: &str| Info(text.replace('\n', "\r\n"));
        let redis = info("# Server\nredis_version:7.0.15\nprocess_id:12\n");
        assert_eq!(redis.version().as_deref(), Some("Redis 7.0.15"));
        assert_eq!(redis.field("process_id"), Some("12"));
        let valkey = info("redis_version:7.2.4\nvalkey_version:8.1.0\n");
        assert_eq!(valkey.version().as_deref(), Some("Valkey 8.1.0"));
        assert_eq!(info("").version(), None);
    }
}
