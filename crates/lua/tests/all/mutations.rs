//! Scripts of the other tests, mixed and changed at random: no state panics, outlives its limit, or loses its
//! globals. The C sources check their own stack in this build. `FERRITE_BESIDE=5000` compares so many
//! replies with those of redis-server, and prints the scripts with another one; they are for a reader, not
//! for a machine. `FERRITE_SCRIPTS=100000` for a long run, `FERRITE_SEED=n` for other scripts.

use std::time::Duration;

use lua::{Ended, State};
use resp::reply::Protocol;

use crate::support::{Fake, VERSION, eval, run, state};
use crate::vectors::Server;

const LIMIT: usize = 4 << 20;
const SCRIPTS: u64 = 2000;
const TEXTS: [&str; 9] = [
    include_str!("../hostile/endless.txt"),
    include_str!("../hostile/deep.txt"),
    include_str!("../hostile/escapes.txt"),
    include_str!("../vectors/base.txt"),
    include_str!("../vectors/language.txt"),
    include_str!("../vectors/struct.txt"),
    include_str!("../vectors/bit.txt"),
    include_str!("../vectors/cjson.txt"),
    include_str!("../vectors/cmsgpack.txt"),
];
const PIECES: [&str; 24] = [
    " 1 ",
    " nil ",
    " {} ",
    " '' ",
    " -1 ",
    " 2^31 ",
    " 1e300 ",
    " 0/0 ",
    "(",
    ")",
    ",",
    " .. ",
    " # ",
    " _G ",
    " string ",
    " pcall(",
    " KEYS ",
    " function() end ",
    " coroutine.wrap(",
    " error(",
    " setmetatable({}, ",
    " collectgarbage() ",
    " redis.call(",
    " unpack({}, 1, 7000) ",
];

#[test]
fn changed_scripts_do_no_harm() {
    let number = |name: &str, otherwise| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("it is a number"))
    };
    let texts: Vec<&str> = TEXTS
        .iter()
        .flat_map(|text| text.lines().filter_map(|line| line.strip_prefix("> ")))
        .collect();
    let mut random = fastrand::Rng::with_seed(number("FERRITE_SEED", 1));
    let mut state = State::new(LIMIT, VERSION);
    let shared = eval(&mut state, &mut Fake::default(), SHARED);
    let (mut compiled, mut done) = (0, 0);
    for _ in 0..number("FERRITE_SCRIPTS", SCRIPTS) {
        let text = changed(&texts, &mut random);
        let Ok(function) = state.compile("@user_script", &text) else {
            continue;
        };
        compiled += 1;
        let mut host = Fake::with_time(Duration::from_millis(3));
        let (ended, reply) = run(&mut state, &mut host, &function, Protocol::Resp3);
        state.forget(function);
        done += u32::from(ended == Ended::Done);
        let shown = String::from_utf8_lossy(&text).into_owned();
        assert_eq!(ended == Ended::Stopped, reply.is_empty(), "{shown}");
        assert_eq!(host.asked_after_stop, 0, "{shown}");
        assert!(state.memory().taken <= LIMIT, "{shown}");
        if !state.rest() {
            state = State::new(LIMIT, VERSION);
        }
        let after = eval(&mut state, &mut Fake::default(), SHARED);
        assert_eq!(after, shared, "{shown}");
    }
    assert!(done > 0, "{compiled} scripts");
}

/// Words of scripts with replies that depend on the runs before, or on the process.
const LASTING: [&str; 11] = [
    "random",
    "collectgarbage",
    "gcinfo",
    "redis.c",
    "pcall()",
    "_max_depth",
    "_sparse",
    "_precision",
    "_invalid",
    "reader",
    "load(",
];

#[test]
fn changed_scripts_answer_as_redis_server() {
    let Ok(count) = std::env::var("FERRITE_BESIDE") else {
        return;
    };
    let count: u32 = count.parse().expect("FERRITE_BESIDE is a number");
    let seed =
        std::env::var("FERRITE_SEED").map_or(1, |text| text.parse().expect("it is a number"));
    let mut random = fastrand::Rng::with_seed(seed);
    let texts: Vec<&str> = TEXTS[3..]
        .iter()
        .flat_map(|text| text.lines().filter_map(|line| line.strip_prefix("> ")))
        .collect();
    let mut server = Server::start();
    let mut state = state();
    let mut host = Fake::default();
    for _ in 0..count {
        let text = changed(&texts, &mut random);
        let shown = String::from_utf8_lossy(&text).into_owned();
        // Addresses, and all that goes on from run to run there.
        if LASTING.iter().any(|word| shown.contains(word)) {
            continue;
        }
        host.deadline = Some(std::time::Instant::now() + Duration::from_secs(1));
        let ours = eval(&mut state, &mut host, &text);
        if ours.is_empty() {
            host = Fake::default();
            continue;
        }
        let Some(theirs) = server.try_eval(&text) else {
            println!("no answer: {shown}");
            server = Server::start();
            continue;
        };
        if !ours.windows(2).any(|part| part == b"0x") && ours != theirs {
            let [ours, theirs] = [ours, theirs].map(|reply| reply.escape_ascii().to_string());
            println!("> {shown}\n< {theirs:.300}\n= {ours:.300}");
        }
    }
}

/// One of the texts with a part of another, or with a few pieces in the place of others.
fn changed(texts: &[&str], random: &mut fastrand::Rng) -> Vec<u8> {
    let pick = |random: &mut fastrand::Rng| texts[random.usize(..texts.len())].as_bytes();
    let mut text = pick(random).to_vec();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..=text.len());
        let until = (at + random.usize(..12)).min(text.len());
        match random.u8(..4) {
            0 => {
                let other = pick(random);
                let from = random.usize(..=other.len());
                text.splice(at..until, other[from..].iter().copied());
            }
            1 => {
                text.splice(at..until, []);
            }
            2 => {
                // A whole argument.
                let piece = PIECES[random.usize(..PIECES.len())];
                let is_end = |byte: &u8| matches!(byte, b',' | b')' | b' ');
                let end = text[at..]
                    .iter()
                    .position(is_end)
                    .map_or(at, |len| at + len);
                text.splice(at..end, piece.bytes());
            }
            _ => {
                let mut other = b"pcall(function() ".to_vec();
                other.extend_from_slice(pick(random));
                other.extend_from_slice(b" end) ");
                text.splice(0..0, other);
            }
        }
    }
    text
}

/// All that scripts share, as a number.
const SHARED: &[u8] = b"local n = 0
    for name, value in pairs(_G) do
        n = n + #name
        if type(value) == 'table' and name ~= '_G' and name ~= 'KEYS' and name ~= 'ARGV' then
            for key, item in pairs(value) do n = n + #key * 1000 + #type(item) end
        end
    end
    return n";
