//! Scripts that mean harm: they don't end, take all memory, go deep, or try to change the things that
//! others see.

use std::time::{Duration, Instant};

use lua::{Ended, State};
use resp::reply::Protocol;

use crate::support::{Fake, VERSION, eval, run, state};

/// The scripts of a file: `> script`, and perhaps `< a part of its reply`.
fn scripts(text: &str) -> Vec<(String, String)> {
    let mut scripts: Vec<(String, String)> = Vec::new();
    let plain = |line: &str| {
        line.replace("\\\\", "\0")
            .replace("\\n", "\n")
            .replace('\0', "\\")
    };
    for line in text.lines() {
        if let Some(script) = line.strip_prefix("> ") {
            scripts.push((plain(script), String::new()));
        } else if let Some(part) = line.strip_prefix("< ") {
            scripts.last_mut().expect("a script is in front").1 = part.to_owned();
        }
    }
    scripts
}

/// Scripts without an end. The host stops each of them.
const ENDLESS: &str = include_str!("../hostile/endless.txt");

#[test]
fn endless_scripts_are_stopped() {
    let mut state = state();
    let mut wrong = Vec::new();
    for (text, _) in scripts(ENDLESS) {
        let started = Instant::now();
        let mut host = Fake::with_time(Duration::from_millis(20));
        let Ok(function) = state.compile("@user_script", text.as_bytes()) else {
            wrong.push(format!("no text of Lua: {text}"));
            continue;
        };
        let (ended, reply) = run(&mut state, &mut host, &function, Protocol::Resp2);
        state.forget(function);
        // Much more than it takes, and much less than such scripts do.
        let is_late = started.elapsed() > Duration::from_secs(20);
        if ended != Ended::Stopped || !reply.is_empty() || host.asked_after_stop > 0 || is_late {
            let reply = String::from_utf8_lossy(&reply).into_owned();
            wrong.push(format!(
                "{text}: {ended:?} {:?} {reply:.200}",
                started.elapsed()
            ));
        }
        if !state.rest() {
            state = self::state();
        }
        let reply = eval(&mut state, &mut Fake::default(), b"return 1");
        assert_eq!(reply, b":1\r\n", "after {text}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The limit of memory that they meet, bytes.
const SMALL: usize = 16 << 20;

/// Scripts that take all memory. Each ends with an error, or catches it.
const GREEDY: &str = include_str!("../hostile/greedy.txt");

#[test]
fn memory_has_a_limit() {
    for (text, _) in scripts(GREEDY) {
        let started = Instant::now();
        let mut state = State::new(SMALL, VERSION);
        let mut host = Fake::default();
        let reply = eval(&mut state, &mut host, text.as_bytes());
        let shown = String::from_utf8_lossy(&reply[..reply.len().min(200)]).into_owned();
        assert!(reply.starts_with(b"-ERR "), "{text}: {shown}");
        assert!(shown.contains("not enough memory"), "{text}: {shown}");
        assert!(state.memory().taken <= SMALL, "{text}");
        assert!(!state.rest(), "{text}");
        // Catchable, as other errors.
        let caught = format!("local ok, e = pcall(function() {text} end) return e");
        let mut state = State::new(SMALL, VERSION);
        let reply = eval(&mut state, &mut host, caught.as_bytes());
        let shown = String::from_utf8_lossy(&reply[..reply.len().min(200)]).into_owned();
        assert!(shown.contains("not enough memory"), "{text}: {shown}");
        println!("{:?} {text}", started.elapsed());
    }
}

/// Scripts that go deep, and a part of their replies.
const DEEP: &str = include_str!("../hostile/deep.txt");

#[test]
fn deep_scripts_have_an_end() {
    let mut state = state();
    let mut wrong = Vec::new();
    for (text, part) in scripts(DEEP) {
        let text = &text;
        let mut host = Fake::with_time(Duration::from_secs(20));
        let reply = eval(&mut state, &mut host, text.as_bytes());
        let shown = String::from_utf8_lossy(&reply);
        if !shown.contains(&part) {
            wrong.push(format!("{text}: {shown:.200}"));
        }
        if !state.rest() {
            state = self::state();
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Ways out of the sandbox. Each returns 1 if it has found something to change.
const ESCAPES: &str = include_str!("../hostile/escapes.txt");

#[test]
fn nothing_leads_out() {
    let mut state = state();
    let mut host = Fake::default();
    let count = eval(&mut state, &mut host, COUNT);
    for (text, _) in scripts(ESCAPES) {
        let text = &text;
        let reply = eval(&mut state, &mut host, text.as_bytes());
        let shown = String::from_utf8_lossy(&reply);
        assert!(!shown.starts_with(":1"), "{text}");
        assert_eq!(eval(&mut state, &mut host, COUNT), count, "{text}");
    }
}

/// All that scripts share, as a number.
const COUNT: &[u8] = b"local n = 0
    for name, value in pairs(_G) do
        n = n + #name
        if type(value) == 'table' and name ~= '_G' and name ~= 'KEYS' and name ~= 'ARGV' then
            for key, item in pairs(value) do n = n + #key * 1000 + #type(item) end
        end
    end
    return n";

#[test]
fn states_are_independent() {
    let mut states: Vec<State> = (0..4).map(|_| state()).collect();
    std::thread::scope(|scope| {
        for state in &mut states {
            scope.spawn(move || {
                for _ in 0..50 {
                    let mut host = Fake::default();
                    let text = b"local t = {}
                        for i = 1, 1000 do t[i] = tostring(i):rep(10) end
                        return #table.concat(t)";
                    assert_eq!(eval(state, &mut host, text), b":28930\r\n");
                }
            });
        }
    });
}
