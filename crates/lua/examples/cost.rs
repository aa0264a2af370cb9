//! Time of one run of a script, without a server: the least of many rounds. Run it optimised, on a quiet
//! machine:
//!
//! ```text
//!   cargo run --release -p ferrite-lua --example cost [one script's name]
//! ```

use std::time::Instant;

use lua::{Arguments, Call, Called, Captured, Ended, Host, Interrupt, Level, State};
use resp::reply::{Protocol, Writer};
use resp::request::Span;

/// A host of three commands, as fast as it can be.
struct Quick {
    asked: u64,
}

impl Host for Quick {
    fn call(&mut self, arguments: &Arguments<'_>, reply: &mut Captured) -> Called {
        let mut writer = Writer::new(&mut reply.bytes, reply.protocol);
        match arguments.get(0) {
            b"get" | b"GET" => writer.bulk(b"12345678"),
            b"hmget" => {
                writer.array(2);
                writer.bulk(b"7");
                writer.bulk(b"1700000000");
            }
            _ => writer.ok(),
        }
        Called::Replied
    }

    fn interrupt(&mut self) -> Interrupt {
        self.asked += 1;
        Interrupt::Continue
    }

    fn log(&mut self, _: Level, _: &[u8]) {}
}

const SCRIPTS: [(&str, &str); 9] = [
    ("return 1", "return 1"),
    ("GET", "return redis.call('get', KEYS[1])"),
    (
        "bucket",
        "local rate, now = tonumber(ARGV[1]), tonumber(ARGV[2])
         local have = redis.call('hmget', KEYS[1], 'tokens', 'time')
         local tokens, time = tonumber(have[1]) or 0, tonumber(have[2]) or now
         tokens = math.min(rate, tokens + math.max(0, now - time) * rate)
         if tokens < 1 then return {0, tostring(tokens)} end
         redis.call('hset', KEYS[1], 'tokens', tostring(tokens - 1), 'time', tostring(now))
         redis.call('pexpire', KEYS[1], 60000)
         return {1, tostring(tokens - 1)}",
    ),
    (
        "ten GETs",
        "for i = 1, 10 do redis.call('get', KEYS[1]) end return 1",
    ),
    (
        "loop of 1,000",
        "local n = 0 for i = 1, 1000 do n = n + i end return n",
    ),
    ("find", "return (('key:{user}:12345'):find('{(%w+)}'))"),
    ("gsub", "return (('a,b,c,d,e,f,g,h'):gsub(',', ';'))"),
    (
        "cjson",
        "return cjson.encode(cjson.decode('{\"a\":[1,2,3],\"b\":{\"c\":\"text\"}}'))",
    ),
    (
        "sort of 100",
        "local t = {} for i = 1, 100 do t[i] = i * 37 % 101 end table.sort(t) return t[1]",
    ),
];

fn main() {
    let mut state = State::new(256 << 20, [7, 4, 0]);
    let mut host = Quick { asked: 0 };
    let input = b"user:1234101700000001";
    let span = |start, len| Span { start, len };
    let (keys, argv) = ([span(0, 9)], [span(9, 2), span(11, 10)]);
    let mut reply = Vec::new();
    let only = std::env::args().nth(1);
    for (name, text) in SCRIPTS {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let function = state
            .compile("@user_script", text.as_bytes())
            .expect("it is a text of Lua");
        let mut least = f64::INFINITY;
        for _ in 0..200 {
            let started = Instant::now();
            for _ in 0..ROUND {
                reply.clear();
                let call = Call {
                    name: "SHA",
                    keys: Arguments::new(input, &keys),
                    argv: Arguments::new(input, &argv),
                    protocol: Protocol::Resp2,
                    reply_most: 512 << 20,
                    memory_most: usize::MAX,
                };
                let ended = state.run(&mut host, &function, call, &mut reply);
                assert_eq!(ended, Ended::Done, "{}", String::from_utf8_lossy(&reply));
            }
            least = least.min(started.elapsed().as_nanos() as f64 / f64::from(ROUND));
        }
        println!("{name:16} {least:8.0} ns");
    }
}

/// Runs of a round.
const ROUND: u32 = 1000;
