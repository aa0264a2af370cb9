//! A host with few commands, and short ways to run a script.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use lua::{Arguments, Call, Called, Captured, Ended, Function, Host, Interrupt, Level, State};
use resp::reply::{Protocol, Writer};
use resp::request::Span;

/// The limit of memory of most tests, bytes.
pub(crate) const LIMIT: usize = 64 << 20;

/// The version that scripts see.
pub(crate) const VERSION: [u8; 3] = [7, 0, 15];

/// A host that keeps strings, and stops scripts.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) values: HashMap<Vec<u8>, Vec<u8>>,
    /// Lines of `redis.log`.
    pub(crate) lines: Vec<Vec<u8>>,
    /// When a run has to end.
    pub(crate) deadline: Option<Instant>,
    /// The host has stopped a run, and has been asked so often since.
    pub(crate) asked_after_stop: u32,
    is_stopped: bool,
    /// Places of arguments among the keys, of the last command.
    pub(crate) known: Vec<Option<usize>>,
}

impl Fake {
    /// A host that stops after a time.
    pub(crate) fn with_time(time: Duration) -> Fake {
        Fake {
            deadline: Some(Instant::now() + time),
            ..Fake::default()
        }
    }
}

const UNKNOWN: &str = "ERR Unknown Redis command called from script";
const ARITY: &str = "ERR Wrong number of args calling Redis command from script";
const NOT_ALLOWED: &str = "ERR This Redis command is not allowed from script";

impl Host for Fake {
    fn call(&mut self, arguments: &Arguments<'_>, reply: &mut Captured) -> Called {
        self.known = (0..arguments.len()).map(|at| arguments.key(at)).collect();
        let name = arguments.get(0).to_ascii_lowercase();
        let mut writer = Writer::new(&mut reply.bytes, reply.protocol);
        let given = arguments.len();
        match (&name[..], given) {
            (b"ping", 1) => writer.simple("PONG"),
            (b"echo", 2) => writer.bulk(arguments.get(1)),
            (b"set", 3) => {
                let value = arguments.get(2).to_vec();
                self.values.insert(arguments.get(1).to_vec(), value);
                writer.ok();
            }
            (b"get", 2) => match self.values.get(arguments.get(1)) {
                Some(value) => writer.bulk(value),
                None => writer.null(),
            },
            (b"mget", 2..) => {
                writer.array(given - 1);
                for at in 1..given {
                    match self.values.get(arguments.get(at)) {
                        Some(value) => writer.bulk(value),
                        None => writer.null(),
                    }
                }
            }
            (b"incr", 2) => {
                let value = self.values.entry(arguments.get(1).to_vec()).or_default();
                let text = if value.is_empty() { b"0" } else { &value[..] };
                match resp::number::parse_i64(text) {
                    Some(number) => {
                        *value = (number + 1).to_string().into_bytes();
                        writer.integer(number + 1);
                    }
                    None => writer.error("ERR value is not an integer or out of range"),
                }
            }
            // The argument is the reply.
            (b"raw", 2) => reply.bytes.extend_from_slice(arguments.get(1)),
            (b"stop", 1) => return Called::Stop,
            (b"ping" | b"echo" | b"set" | b"get" | b"mget" | b"incr", _) => writer.error(ARITY),
            (b"eval" | b"blpop", _) => writer.error(NOT_ALLOWED),
            _ => writer.error(UNKNOWN),
        }
        Called::Replied
    }

    fn interrupt(&mut self) -> Interrupt {
        if self.is_stopped {
            self.asked_after_stop += 1;
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => {
                self.is_stopped = true;
                Interrupt::Stop
            }
            _ => Interrupt::Continue,
        }
    }

    fn log(&mut self, _: Level, text: &[u8]) {
        self.lines.push(text.to_vec());
    }

    fn may_call(&mut self, arguments: &Arguments<'_>) -> Option<bool> {
        (arguments.get(0) != b"nope").then_some(true)
    }
}

/// A state like the server's.
pub(crate) fn state() -> State {
    State::new(LIMIT, VERSION)
}

/// Arguments with the buffer that they need.
pub(crate) struct List {
    input: Vec<u8>,
    spans: Vec<Span>,
}

impl List {
    pub(crate) fn of(items: &[&[u8]]) -> List {
        let mut list = List {
            input: Vec::new(),
            spans: Vec::new(),
        };
        for item in items {
            list.spans.push(Span {
                start: list.input.len(),
                len: item.len(),
            });
            list.input.extend_from_slice(item);
        }
        list
    }

    pub(crate) fn arguments(&self) -> Arguments<'_> {
        Arguments::new(&self.input, &self.spans)
    }
}

/// Runs a function with KEYS = {'k'} and ARGV = {'v'}.
pub(crate) fn run(
    state: &mut State,
    host: &mut Fake,
    function: &Function,
    protocol: Protocol,
) -> (Ended, Vec<u8>) {
    run_with(state, host, function, protocol, [&[b"k"], &[b"v"]])
}

/// Runs a function with these KEYS and ARGV.
pub(crate) fn run_with(
    state: &mut State,
    host: &mut Fake,
    function: &Function,
    protocol: Protocol,
    lists: [&[&[u8]]; 2],
) -> (Ended, Vec<u8>) {
    let [keys, argv] = lists.map(List::of);
    let call = Call {
        name: "SHA",
        keys: keys.arguments(),
        argv: argv.arguments(),
        protocol,
        reply_most: 512 << 20,
        memory_most: usize::MAX,
    };
    let mut reply = Vec::new();
    let ended = state.run(host, function, call, &mut reply);
    (ended, reply)
}

/// Runs a text as EVAL does. Returns the reply as RESP2; nothing if the host has stopped it.
pub(crate) fn eval(state: &mut State, host: &mut Fake, text: &[u8]) -> Vec<u8> {
    match state.compile("@user_script", text) {
        Ok(function) => {
            let (_, reply) = run(state, host, &function, Protocol::Resp2);
            state.forget(function);
            reply
        }
        Err(message) => {
            let mut reply = b"-ERR Error compiling script (new function): ".to_vec();
            reply.extend(message);
            reply.extend(b"\r\n");
            reply
        }
    }
}
