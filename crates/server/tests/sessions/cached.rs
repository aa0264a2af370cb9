//! Clients that keep copies of keys (CLIENT TRACKING) while others change the keys.
//!
//! Every key has one writer, and its values ascend. A writer notes a value once it was acknowledged. A reader
//! that finds a key in its cache looks at what was noted before, sends PING and reads up to the answer: by
//! then every invalidation that was due has come, so a copy that is still there is at least as new as what
//! was noted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

use fastrand::Rng;

use super::{ONE, TWO, id_of, listed, ok, read};
use crate::support::{Client, Proto, Server, Target, Value, encode_request};

const KEYS: usize = 48;
const WRITERS: usize = 3;
const ROUNDS: usize = 1200;

/// How a reader tracks.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Default,
    OptIn,
    Broadcast,
}

/// A client with a cache.
struct Reader {
    client: Client,
    mode: Mode,
    copies: HashMap<String, u64>,
}

impl Reader {
    fn new(server: &Server, mode: Mode) -> Reader {
        let mut client = server.client_with(Proto::Resp3);
        client.ask(match mode {
            Mode::Default => "CLIENT TRACKING ON",
            Mode::OptIn => "CLIENT TRACKING ON OPTIN NOLOOP",
            Mode::Broadcast => "CLIENT TRACKING ON BCAST PREFIX k",
        });
        Reader {
            client,
            mode,
            copies: HashMap::new(),
        }
    }

    /// The next reply. Invalidations before it take effect.
    fn reply(&mut self) -> Value {
        loop {
            let message = match read(&mut self.client) {
                Value::Push(message) => message,
                reply => return reply,
            };
            assert_eq!(message[0].text(), "invalidate");
            match &message[1] {
                Value::Array(keys) => keys.iter().for_each(|key| {
                    self.copies.remove(&key.text());
                }),
                _ => self.copies.clear(),
            }
        }
    }

    fn send(&mut self, requests: &[&[&str]]) {
        let bytes: Vec<u8> = requests
            .iter()
            .flat_map(|args| encode_request(args))
            .collect();
        self.client.send_bytes(&bytes).expect("the server reads");
    }

    /// Reads some keys, each with a request of its own, and keeps copies.
    fn fetch(&mut self, keys: &[String]) {
        let in_transaction = keys.len() > 2;
        let mut requests: Vec<Vec<&str>> = Vec::new();
        if in_transaction {
            if self.mode == Mode::OptIn {
                requests.push(vec!["CLIENT", "CACHING", "YES"]);
            }
            requests.push(vec!["MULTI"]);
        }
        for key in keys {
            if !in_transaction && self.mode == Mode::OptIn {
                requests.push(vec!["CLIENT", "CACHING", "YES"]);
            }
            requests.push(vec!["GET", key]);
        }
        if in_transaction {
            requests.push(vec!["EXEC"]);
        }
        let requests: Vec<&[&str]> = requests.iter().map(Vec::as_slice).collect();
        self.send(&requests);
        let mut values = keys.iter();
        for request in &requests {
            let reply = self.reply();
            match (request[0], reply) {
                ("GET", Value::Simple(_)) | ("CLIENT" | "MULTI", _) => {}
                ("EXEC", Value::Array(replies)) => {
                    for (key, value) in keys.iter().zip(replies) {
                        self.keep(key, &value);
                    }
                }
                (_, value) => {
                    let key = values.next().expect("one for each GET");
                    self.keep(key, &value);
                }
            }
        }
    }

    fn keep(&mut self, key: &str, value: &Value) {
        // What is missing is kept as well: it is older than any value.
        let version = match value {
            Value::Null => 0,
            value => value.text().parse().expect("values are numbers"),
        };
        self.copies.insert(key.to_owned(), version);
    }

    /// Reads up to the answer of a PING.
    fn catch_up(&mut self) {
        self.send(&[&["PING"]]);
        assert_eq!(self.reply().text(), "PONG");
    }
}

fn name(number: usize) -> String {
    format!("k{number}")
}

/// Writes own keys until told to stop: in every way in which a key changes.
fn write(server: &Server, writer: usize, noted: &[AtomicU64], stop: &AtomicBool) {
    let (mut client, mut random) = (server.client(), Rng::with_seed(writer as u64));
    let own: Vec<usize> = (writer..KEYS).step_by(WRITERS).collect();
    let mut version = 0;
    while !stop.load(SeqCst) {
        version += 1;
        let (one, two) = (random.choice(&own).copied(), random.choice(&own).copied());
        let (one, two) = (one.expect("it has keys"), two.expect("it has keys"));
        let (first, second) = (name(one), name(two));
        match random.u32(..5) {
            0 => client.ask(&format!("SET {first} {version}")),
            1 => client.ask(&format!("MSET {first} {version} {second} {version}")),
            2 => {
                client.ask("MULTI");
                client.ask(&format!("SET {first} {version}"));
                client.ask(&format!("SET {second} {version}"));
                client.ask("EXEC")
            }
            // It comes back with the next value: that a copy is older than that is noted then.
            3 => client.ask(&format!("SET {first} {version} PX 1")),
            _ => {
                client.ask(&format!("DEL {first} {second}"));
                client.ask(&format!("MSET {first} {version} {second} {version}"))
            }
        };
        noted[one].store(version, SeqCst);
        if random.bool() {
            thread::yield_now();
        }
    }
}

fn read_and_check(server: &Server, mode: Mode, seed: u64, noted: &[AtomicU64]) -> Reader {
    let (mut reader, mut random) = (Reader::new(server, mode), Rng::with_seed(seed));
    for _ in 0..ROUNDS {
        let number = random.usize(..KEYS);
        let key = name(number);
        if reader.copies.contains_key(&key) {
            let due = noted[number].load(SeqCst);
            reader.catch_up();
            if let Some(&copy) = reader.copies.get(&key) {
                // A key that has expired is missing, and so is its copy: only a value can be too old.
                assert!(copy == 0 || copy >= due, "{key}: {copy} after {due}");
            }
        } else {
            let more = (0..random.usize(..4)).map(|_| name(random.usize(..KEYS)));
            let keys: Vec<String> = [key].into_iter().chain(more).collect();
            reader.fetch(&keys);
        }
    }
    reader
}

/// Keys of a kilobyte each, more than sockets and the server's patience hold.
const UNREAD: usize = 20_000;

#[test]
fn who_does_not_read_what_has_changed_is_told_in_the_end_that_everything_has() {
    let server = Server::start(TWO, &[]);
    let mut reader = server.client_with(Proto::Resp3);
    reader.ask("CLIENT TRACKING ON BCAST");
    let id = id_of(&mut reader);
    let mut writer = server.client();
    let padding = "k".repeat(1000);
    for batch in 0..UNREAD / 100 {
        let keys = (0..100).map(|at| format!("{padding}{}", batch * 100 + at));
        let requests: Vec<u8> = keys
            .flat_map(|key| encode_request(&["SET", &key, "v"]))
            .collect();
        writer.send_bytes(&requests).expect("the server reads");
        (0..100).for_each(|_| assert_eq!(read(&mut writer), ok()));
    }
    let unread: usize = listed(&mut writer, id, "omem")
        .and_then(|bytes| bytes.parse().ok())
        .expect("it is listed");
    assert!((1 << 20..4 << 20).contains(&unread), "{unread}");
    // All that it was told, then that the rest has changed too, then the answer to what it asks.
    reader.send(&["PING"]).expect("the server reads");
    let (mut told, mut has_all) = (0, false);
    loop {
        match read(&mut reader) {
            Value::Push(message) => match &message[1] {
                Value::Array(keys) => {
                    assert!(!has_all);
                    told += keys.len();
                }
                _ => has_all = true,
            },
            reply => {
                assert_eq!(reply.text(), "PONG");
                break;
            }
        }
    }
    assert!(has_all && told < UNREAD, "{told}");
    writer.ask("SET one 1");
    let message = read(&mut reader);
    assert!(matches!(message, Value::Push(_)), "{message:?}");
}

#[test]
fn no_copy_is_older_than_what_was_acknowledged_before() {
    let modes = [Mode::Default, Mode::OptIn, Mode::Broadcast, Mode::Default];
    for (target, limit) in [
        (ONE, "0"),
        (TWO, "0"),
        (TWO, "20"),
        (Target::Ferrite { threads: 4 }, "0"),
    ] {
        let server = Server::start(target, &["--tracking-table-max-keys", limit]);
        let noted: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        let mut readers: Vec<Reader> = thread::scope(|scope| {
            let (server, noted, stop) = (&server, &noted[..], &stop);
            for writer in 0..WRITERS {
                scope.spawn(move || write(server, writer, noted, stop));
            }
            let readers: Vec<_> = modes
                .into_iter()
                .zip(0..)
                .map(|(mode, seed)| scope.spawn(move || read_and_check(server, mode, seed, noted)))
                .collect();
            let readers = readers
                .into_iter()
                .map(|reader| reader.join())
                .collect::<Vec<_>>();
            stop.store(true, SeqCst);
            readers
                .into_iter()
                .map(|reader| reader.unwrap_or_else(|cause| std::panic::resume_unwind(cause)))
                .collect()
        });
        // Nobody writes any more: every copy is what is there.
        let mut client = server.client();
        for reader in &mut readers {
            reader.catch_up();
            for (key, &copy) in &reader.copies {
                let value = client.ask(&format!("GET {key}"));
                let value = value.text().parse().unwrap_or(0);
                // One that expires at this moment may go between the two looks.
                assert!(
                    copy == value || value == 0,
                    "{target}: {key}: {copy}, {value}"
                );
            }
        }
        client.ask("FLUSHALL");
        for reader in &mut readers {
            reader.catch_up();
            assert!(reader.copies.is_empty(), "{target}");
        }
    }
}
