//! A server to be loaded: where it is, who we are to it, and what is said to it before the load.

use super::map::Map;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use sys::socket::{Endpoint, resolve};

/// A server and how to talk to it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// What it is called in reports; its address unless it was given a name.
    pub(crate) name: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) greeting: Greeting,
    /// Its process, if it is known and on this machine.
    pub(crate) pid: Option<u32>,
    /// The nodes, if it is the cluster that is to be loaded.
    pub(crate) nodes: Option<Arc<Map>>,
}

/// What a connection says first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// The user's name; the default user's if there is only a password.
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// Ask for the third version of the protocol.
    pub(crate) is_resp3: bool,
    pub(crate) database: u32,
    /// Ask the server to remember what was read, for its invalidation messages.
    pub(crate) has_tracking: bool,
}

impl Greeting {
    /// The requests, and how many replies they will have.
    pub(crate) fn encode(&self) -> (Vec<u8>, u32) {
        let mut bytes = Vec::new();
        let mut count = 0;
        let mut say = |words: &[&str]| {
            let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
            resp::write_request(&mut bytes, &words);
            count += 1;
        };
        if let Some(password) = &self.password {
            match &self.user {
                Some(user) => say(&["AUTH", user, password]),
                None => say(&["AUTH", password]),
            }
        }
        if self.is_resp3 {
            say(&["HELLO", "3"]);
        }
        if self.database != 0 {
            say(&["SELECT", &self.database.to_string()]);
        }
        if self.has_tracking {
            say(&["CLIENT", "TRACKING", "on"]);
        }
        (bytes, count)
    }
}

/// Where a server is, before its name was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// A machine and port.
    Tcp(String, u16),
    /// A socket file.
    Unix(PathBuf),
}

impl Address {
    /// As people write it: `127.0.0.1:6379`, or the path.
    pub(crate) fn text(&self) -> String {
        match self {
            Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
            Address::Tcp(host, port) => format!("{host}:{port}"),
            Address::Unix(path) => path.display().to_string(),
        }
    }

    /// Looks the name up.
    ///
    /// # Errors
    /// There is no such machine.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, String> {
        match self {
            Address::Unix(path) => Ok(Endpoint::Unix(path.clone())),
            Address::Tcp(host, port) => first_that_answers(host, *port)
                .map_err(|error| format!("Could not connect to Redis at {}: {error}", self.text())),
        }
    }
}

/// A name may stand for several addresses of which one answers: `localhost` is `::1` as well.
fn first_that_answers(host: &str, port: u16) -> io::Result<Endpoint> {
    let addresses = resolve(host, port)?;
    let answers = |endpoint: &Endpoint| super::link::probe(endpoint).is_ok();
    let mut endpoints = addresses.into_iter().map(Endpoint::Tcp);
    let first = endpoints.next().ok_or(io::ErrorKind::NotFound)?;
    if answers(&first) {
        return Ok(first);
    }
    // If none answers, the first will say why.
    Ok(endpoints.find(answers).unwrap_or(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(greeting: &Greeting) -> (String, u32) {
        let (bytes, count) = greeting.encode();
        let mut rest = &bytes[..];
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let (value, len) = resp::parse_value(rest).expect("valid").expect("whole");
            let resp::Value::Array(words) = value else {
                panic!("a request is an array");
            };
            let words: Vec<_> = words
                .iter()
                .map(|word| match word {
                    resp::Value::Bulk(word) => String::from_utf8_lossy(word).into_owned(),
                    other => panic!("{other:?} is no word"),
                })
                .collect();
            lines.push(words.join(" "));
            rest = &rest[len..];
        }
        (lines.join(", "), count)
    }

    #[test]
    fn a_greeting_says_what_is_needed_and_no_more() {
        assert_eq!(encoded(&Greeting::default()), (String::new(), 0));
        let all = Greeting {
            user: Some("me".into()),
            password: Some("secret".into()),
            is_resp3: true,
            database: 3,
            has_tracking: true,
        };
        let expected = "AUTH me secret, HELLO 3, SELECT 3, CLIENT TRACKING on";
        assert_eq!(encoded(&all), (expected.into(), 4));
        let password = Greeting {
            password: Some("p".into()),
            ..Greeting::default()
        };
        assert_eq!(encoded(&password), ("AUTH p".into(), 1));
    }

    #[test]
    fn addresses_are_written_as_people_do() {
        assert_eq!(Address::Tcp("::1".into(), 1).text(), "[::1]:1");
        assert_eq!(Address::Tcp("h".into(), 6379).text(), "h:6379");
        assert_eq!(Address::Unix("/tmp/s".into()).text(), "/tmp/s");
    }
}
