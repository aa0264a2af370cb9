//! Connections at work until the server dies.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::crash::change::{CONNECTIONS, Change, DATABASES, Entry, Sizes, State, parse_name};
use crate::crash::process::Process;
use crate::support::{Client, PATIENCE, Value};

/// One life of a server.
#[derive(Debug)]
pub(crate) struct Life {
    /// Whether what was not synced is lost with the process.
    pub(crate) is_volatile: bool,
    /// Whether snapshots are taken meanwhile, and everything is written again.
    pub(crate) has_snapshots: bool,
    /// Whether it ends in good order.
    pub(crate) is_stopped: bool,
    pub(crate) sizes: Sizes,
    pub(crate) lasts: Duration,
    pub(crate) seed: u64,
}

/// A change that was asked for, and when, in the order of all connections.
pub(crate) struct Step {
    pub(crate) change: Change,
    pub(crate) sent: u64,
    pub(crate) acked: Option<(u64, Instant)>,
}

/// What there is to say at the end of a life.
pub(crate) struct End {
    /// What each connection did.
    pub(crate) histories: Vec<Vec<Step>>,
    pub(crate) killed: Instant,
    pub(crate) is_volatile: bool,
    pub(crate) is_stopped: bool,
}

impl Life {
    /// Lives it. `base` is what each connection's keys are at its beginning; empty if there is nothing.
    pub(crate) fn run(&self, process: &mut Process, base: &[State]) -> End {
        if base.is_empty() {
            process.start();
        }
        let mut random = fastrand::Rng::with_seed(self.seed);
        if self.is_volatile {
            let reply = process.client().ask("DEBUG DISK VOLATILE");
            assert_eq!(reply, Value::Simple(b"OK".to_vec()));
        }
        let (clock, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let (mut histories, mut killed) = (Vec::new(), Instant::now());
        let clients: Vec<Client> = (0..CONNECTIONS).map(|_| process.client()).collect();
        let operator = process.client();
        thread::scope(|scope| {
            let clock = &clock;
            let threads: Vec<_> = (0..CONNECTIONS)
                .zip(clients)
                .map(|(number, client)| {
                    let state = base.get(usize::from(number)).cloned().unwrap_or_default();
                    let (random, sizes) = (random.fork(), self.sizes);
                    let connection = Connection::new(number, client, state);
                    scope.spawn(move || connection.work(random, sizes, clock))
                })
                .collect();
            if self.has_snapshots {
                scope.spawn(|| operate(operator, &is_over, random.fork()));
            }
            sleep(self.lasts);
            if self.is_stopped {
                process.stop();
            } else {
                process.kill();
            }
            killed = Instant::now();
            is_over.store(true, Ordering::Relaxed);
            let join = |thread: thread::ScopedJoinHandle<'_, Vec<Step>>| {
                thread.join().expect("a connection says what is wrong")
            };
            histories = threads.into_iter().map(join).collect();
        });
        End {
            histories,
            killed,
            is_volatile: self.is_volatile,
            is_stopped: self.is_stopped,
        }
    }
}

/// One of the connections.
struct Connection {
    number: u16,
    client: Client,
    /// What its keys are after everything that was asked for.
    state: State,
    db: u16,
    steps: Vec<Step>,
}

impl Connection {
    fn new(number: u16, client: Client, state: State) -> Connection {
        Connection {
            number,
            client,
            state,
            db: 0,
            steps: Vec::new(),
        }
    }

    /// Works until the connection breaks.
    fn work(mut self, mut random: fastrand::Rng, sizes: Sizes, clock: &AtomicU64) -> Vec<Step> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let depth = if random.bool() { 1 } else { random.usize(2..8) };
            let first = self.steps.len();
            let mut replies = Vec::new();
            for _ in 0..depth {
                let change = Change::random(&mut random, self.number, &self.state, sizes);
                replies.push(change.encode(self.number, &mut self.db, &mut bytes));
                change.apply(&mut self.state, &mut |_| {});
                self.steps.push(Step {
                    change,
                    sent: clock.fetch_add(1, Ordering::SeqCst),
                    acked: None,
                });
            }
            if self.client.send_bytes(&bytes).is_err() {
                return self.steps;
            }
            for (index, count) in (first..).zip(replies) {
                for _ in 0..count {
                    match self.client.read(PATIENCE) {
                        Ok(reply) => check_reply(&reply, &self.steps[index].change),
                        Err(_) => return self.steps,
                    }
                }
                let now = (clock.fetch_add(1, Ordering::SeqCst), Instant::now());
                self.steps[index].acked = Some(now);
            }
        }
    }
}

/// No change is one that a server refuses.
fn check_reply(reply: &Value, change: &Change) {
    match reply {
        Value::Error(text) => {
            panic!("{}: {change:?}", String::from_utf8_lossy(text));
        }
        Value::Array(replies) => replies.iter().for_each(|reply| check_reply(reply, change)),
        _ => {}
    }
}

/// Asks for snapshots and the like until the life is over.
fn operate(mut client: Client, is_over: &AtomicBool, mut random: fastrand::Rng) {
    while !is_over.load(Ordering::Relaxed) {
        let backup = format!("BACKUP backup-{:08x}", random.u32(..));
        let requests = [
            "BGSAVE",
            "BGREWRITEAOF",
            "BGREWRITEAOF",
            "INFO",
            "SAVE",
            &backup,
        ];
        let words: Vec<&str> = requests[random.usize(..6)].split(' ').collect();
        if client.call(&words).is_err() {
            return;
        }
        sleep(Duration::from_millis(random.u64(..60)));
    }
}

/// All keys of each connection.
pub(crate) fn read_everything(process: &Process) -> Vec<State> {
    let mut states = vec![State::new(); usize::from(CONNECTIONS)];
    let mut client = process.client();
    for db in 0..DATABASES {
        client.ask(&format!("SELECT {db}"));
        let Value::Array(names) = client.ask("KEYS *") else {
            panic!("KEYS answers an array");
        };
        let names: Vec<Vec<u8>> = names
            .into_iter()
            .map(|name| match name {
                Value::Bulk(name) => name,
                other => panic!("a name is {other:?}"),
            })
            .collect();
        let mut found = HashMap::new();
        // Few at a time: nobody is read from who does not read what is sent to it.
        for names in names.chunks(16) {
            for name in names {
                client.send(&[&b"GET"[..], name]).expect("a connection");
                client.send(&[&b"TTL"[..], name]).expect("a connection");
            }
            for name in names {
                let value = client.read(PATIENCE).expect("a reply");
                let ttl = client.read(PATIENCE).expect("a reply");
                let (Value::Bulk(value), Value::Int(ttl)) = (value, ttl) else {
                    panic!("a key has a value and a time to live");
                };
                let entry = Entry {
                    value,
                    expires: ttl >= 0,
                };
                found.insert(name.clone(), entry);
            }
        }
        for (name, entry) in found {
            let Some((connection, key)) = parse_name(&name) else {
                panic!("nobody wrote {}", name.escape_ascii());
            };
            states[usize::from(connection)].insert((db, key), entry);
        }
    }
    states
}
