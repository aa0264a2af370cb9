//! Scripts that take long: the answers to others meanwhile, SCRIPT KILL, and SHUTDOWN.
//!
//! The texts are those of redis-server, which runs the same test.

use crate::support;

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use support::{Client, PATIENCE, Server, Target, Value, encode_request, eventually};

const QUICK_TO_REFUSE: [&str; 2] = ["--busy-reply-threshold", "100"];
const SLOW_TO_REFUSE: [&str; 2] = ["--busy-reply-threshold", "60000"];

const BUSY: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

/// Scripts without an end.
const CLEAN: [&str; 5] = [
    "while true do end",
    "while true do redis.call('get', 'a') end",
    "while true do pcall(function() while true do end end) end",
    // It begins on its worker: no word of a loop is in its text.
    "loadstring('wh' .. 'ile true do end')()",
    "local t = {} for i = 1, 200 do t[i] = i end while true do table.sort(t) end",
];

const WRITING: &str = "redis.call('set', 'a', 'half') repeat redis.call('incr', 'b') until false";

const TARGETS: [Target; 4] = [
    Target::Redis,
    Target::Ferrite { threads: 1 },
    Target::Logged { threads: 1 },
    Target::Logged { threads: 3 },
];

/// A client whose script runs, and does not end by itself.
fn begin(server: &Server, script: &str) -> Client {
    let mut client = server.client();
    let bytes = encode_request(&["EVAL", script, "0"]);
    client.send_bytes(&bytes).expect("the server reads");
    client
}

fn answer(client: &mut Client) -> String {
    client.read(PATIENCE).expect("a reply").text()
}

/// Waits until a request is answered BUSY.
fn wait_until_busy(client: &mut Client, script: &str) {
    eventually(&format!("BUSY beside {script}"), || {
        client.ask("PING").text() == BUSY
    });
}

#[test]
fn others_are_told_that_a_script_lasts_and_may_end_it() {
    for target in TARGETS {
        let server = Server::start(target, &QUICK_TO_REFUSE);
        let (mut one, mut two) = (server.client(), server.client());
        one.ask("SET a 1");
        // In redis-server `pcall` catches the kill.
        let scripts = match target.is_redis() {
            true => &CLEAN[..2],
            false => &CLEAN,
        };
        for script in scripts {
            let mut runner = begin(&server, script);
            sleep(Duration::from_millis(30));
            // Sent before the script has lasted long.
            two.send_bytes(&encode_request(&["GET", "a"]))
                .expect("sent");
            wait_until_busy(&mut one, script);
            // On a slow machine it was sooner than the script.
            let early = answer(&mut two);
            assert!(early == BUSY || early == "1", "{target}: {early}");
            for (request, wanted) in [
                ("GET a", BUSY),
                ("SET a 2", BUSY),
                ("SHUTDOWN", BUSY),
                ("SHUTDOWN SAVE", BUSY),
                ("MULTI", "OK"),
                ("GET a", BUSY),
                ("DISCARD", "OK"),
                ("SCRIPT LOAD x", BUSY),
                ("MULTI", "OK"),
            ] {
                assert_eq!(one.ask(request).text(), wanted, "{target}: {request}");
            }
            let aborted = format!("EXECABORT Transaction discarded because of: {BUSY}");
            assert_eq!(one.ask("EXEC").text(), aborted, "{target}");
            let mut new = server.client();
            assert_eq!(new.ask("GET a").text(), BUSY, "{target}");
            assert_eq!(new.ask("SCRIPT KILL").text(), "OK", "{target}");
            let killed = answer(&mut runner);
            let text = "ERR Script killed by user with SCRIPT KILL... script: ";
            assert!(killed.starts_with(text), "{target}: {killed}");
            assert!(killed.contains(", on @user_script:"), "{target}: {killed}");
            eventually("the end", || one.ask("GET a").text() == "1");
            let none = "NOTBUSY No scripts in execution right now.";
            assert_eq!(one.ask("SCRIPT KILL").text(), none, "{target}");
        }
    }
}

#[test]
fn of_a_script_that_has_written_nothing_is_left() {
    for target in TARGETS {
        let mut server = Server::start(target, &QUICK_TO_REFUSE);
        let mut client = server.client();
        client.ask("SET kept 1");
        let _runner = begin(&server, WRITING);
        wait_until_busy(&mut client, WRITING);
        let refused = client.ask("SCRIPT KILL").text();
        assert!(
            refused.starts_with("UNKILLABLE Sorry the script"),
            "{refused}"
        );
        assert_eq!(client.ask("SHUTDOWN").text(), BUSY);
        let bytes = encode_request(&["SHUTDOWN", "NOSAVE"]);
        client.send_bytes(&bytes).expect("the server reads");
        assert!(client.is_closed(PATIENCE), "{target}");
        let status = server.wait_for_exit().expect("it has ended");
        assert!(status.success(), "{target}: {status:?}");
        if let Target::Logged { .. } = target {
            server.start_again(target, Signal::KILL, &QUICK_TO_REFUSE);
            let mut client = server.client();
            assert_eq!(client.ask("GET kept").text(), "1");
            assert_eq!(client.ask("EXISTS a b"), Value::Int(0));
        }
    }
}

/// A pattern that takes about 2^N steps, in a text without a word of a loop.
fn searching(steps: u32) -> String {
    format!(
        "string.find(string.rep('a', {steps}), string.rep('a?', {steps}) .. string.rep('a', {steps}) .. 'b')"
    )
}

/// A script that begins on its worker, has an effect, and then takes long goes on there: it runs once.
#[test]
fn a_script_with_an_effect_does_not_begin_again() {
    for target in TARGETS {
        let server = Server::start(target, &SLOW_TO_REFUSE);
        let (mut client, mut listener) = (server.client(), server.client());
        listener.ask("SUBSCRIBE channel");
        let search = searching(15);
        for key in ["'a'", "KEYS[1]"] {
            let script = format!("local n = redis.call('incr', {key}) {search} return n");
            for run in 1..=3 {
                let reply = client.call(&["EVAL", &script, "1", "b"]);
                assert_eq!(reply.expect("a reply"), Value::Int(run), "{target} {key}");
            }
        }
        let script = format!("redis.call('publish', 'channel', ARGV[1]) {search}");
        for said in ["one", "two"] {
            client.call(&["EVAL", &script, "0", said]).expect("a reply");
            let heard = answer(&mut listener);
            assert!(heard.contains(said), "{target}: {heard}");
        }
    }
}

/// A script that holds its keys alone, and is in a pattern without an end after a write, keeps others waiting
/// for a second. Its changes stay, as those of a script with an error do.
#[test]
fn a_script_that_holds_its_keys_ends() {
    let target = Target::Logged { threads: 3 };
    let server = Server::start(target, &QUICK_TO_REFUSE);
    let search = searching(60);
    let script = format!("redis.call('set', KEYS[1], 1) {search} {search}");
    let mut runner = server.client();
    let request = ["EVAL", &script, "1", "a"];
    runner.send(&request).expect("the server reads");
    let mut others: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for other in &mut others {
        assert!(matches!(other.ask("INCR b"), Value::Int(_)));
        other.ask("GET a");
    }
    let ended = answer(&mut runner);
    assert_eq!(others[0].ask("GET a").text(), "1");
    assert!(
        ended.starts_with("ERR Error running script: it took"),
        "{ended}"
    );
}

/// The server ends while a script that has begun on its worker lasts and has changed data.
#[test]
fn of_a_script_without_a_loop_nothing_is_left_either() {
    for (target, keys) in [
        (Target::Logged { threads: 1 }, 1),
        (Target::Logged { threads: 3 }, 2),
    ] {
        let mut server = Server::start(target, &SLOW_TO_REFUSE);
        let search = searching(60);
        let script =
            format!("redis.call('set', KEYS[1], 1) redis.call('set', KEYS[{keys}], 2) {search}");
        let mut runner = server.client();
        let request = ["EVAL", &script, "2", "a", "b"];
        runner.send(&request).expect("the server reads");
        sleep(Duration::from_millis(300));
        server.start_again(target, Signal::KILL, &SLOW_TO_REFUSE);
        assert_eq!(server.client().ask("EXISTS a b"), Value::Int(0), "{target}");
    }
}

/// Takes so many milliseconds, and then writes.
fn lasting(ms: u32) -> String {
    format!(
        "local function now() local t = redis.call('time') return t[1] * 1000000 + t[2] end \
         local from = now() repeat until now() > from + {ms}000 \
         redis.call('lpush', 'list', 'one', 'two') redis.call('publish', 'channel', 'told') \
         return redis.call('incr', 'a')"
    )
}

#[test]
fn before_that_they_wait_and_see_all_that_the_script_has_done() {
    for target in TARGETS {
        let server = Server::start(target, &SLOW_TO_REFUSE);
        let (mut reader, mut waiter, mut listener) =
            (server.client(), server.client(), server.client());
        listener.ask("SUBSCRIBE channel");
        waiter
            .send_bytes(&encode_request(&["BLPOP", "list", "0"]))
            .expect("sent");
        for round in 1..=3 {
            let mut runner = begin(&server, &lasting(800));
            sleep(Duration::from_millis(60));
            let closing = server.client();
            drop(closing);
            reader
                .send_bytes(&encode_request(&["INCR", "a"]))
                .expect("sent");
            let mut new = server.client();
            if target.is_ferrite() {
                // Nothing that needs no data waits.
                assert_eq!(new.ask("PING").text(), "PONG", "{target}");
                assert!(runner.read(Duration::from_millis(1)).is_err(), "{target}");
            }
            if round == 3 {
                // The end of the server waits, too.
                let mut last = server.client();
                let bytes = encode_request(&["SHUTDOWN", "NOSAVE", "ABORT"]);
                last.send_bytes(&bytes).expect("sent");
                assert!(last.read(Duration::from_millis(1)).is_err(), "{target}");
            }
            let mine: i64 = 2 * round - 1;
            assert_eq!(
                runner.read(PATIENCE).ok(),
                Some(Value::Int(mine)),
                "{target}"
            );
            assert_eq!(reader.read(PATIENCE).ok(), Some(Value::Int(mine + 1)));
            assert_eq!(answer_of(&mut listener, 2), "told", "{target}");
            if round == 1 {
                assert_eq!(answer_of(&mut waiter, 1), "two", "{target}");
            }
        }
        eventually("the ends", || {
            let clients = reader.ask("CLIENT LIST").text();
            clients.lines().count() == 3
        });
    }
}

/// An item of the next reply or message.
fn answer_of(client: &mut Client, at: usize) -> String {
    match client.read(PATIENCE).expect("a reply") {
        Value::Array(items) | Value::Push(items) => items[at].text(),
        other => panic!("not an array: {other:?}"),
    }
}

#[test]
fn a_script_in_a_transaction_is_ended_from_another_worker() {
    let server = Server::start(Target::Logged { threads: 2 }, &QUICK_TO_REFUSE);
    let (mut runner, mut other) = (server.client(), server.client());
    runner.ask("MULTI");
    for words in [&["EVAL", CLEAN[0], "0"][..], &["SET", "a", "1"], &["EXEC"]] {
        runner.send_bytes(&encode_request(words)).expect("sent");
    }
    wait_until_busy(&mut other, CLEAN[0]);
    assert_eq!(other.ask("SCRIPT KILL").text(), "OK");
    assert_eq!(answer(&mut runner), "QUEUED");
    assert_eq!(answer(&mut runner), "QUEUED");
    let Ok(Value::Array(answers)) = runner.read(PATIENCE) else {
        panic!("EXEC has no answer");
    };
    assert!(answers[0].text().starts_with("ERR Script killed by user"));
    assert_eq!(answers[1].text(), "OK");
    assert_eq!(other.ask("GET a").text(), "1");
}

/// One script after the other from many clients, beside requests of others: all are answered, none twice.
#[test]
fn slow_scripts_queue_up() {
    for target in [Target::Logged { threads: 1 }, Target::Synced { threads: 3 }] {
        let server = Server::start(target, &SLOW_TO_REFUSE);
        let mut runners: Vec<Client> = (0..8).map(|_| begin(&server, &lasting(15))).collect();
        let mut others: Vec<Client> = (0..8).map(|_| server.client()).collect();
        for other in &mut others {
            for _ in 0..5 {
                other
                    .send_bytes(&encode_request(&["INCR", "a"]))
                    .expect("sent");
            }
        }
        let mut seen = Vec::new();
        let all = runners.iter_mut().map(|client| (client, 1));
        for (client, count) in all.chain(others.iter_mut().map(|client| (client, 5))) {
            for _ in 0..count {
                match client.read(PATIENCE) {
                    Ok(Value::Int(number)) => seen.push(number),
                    other => panic!("{target}: {other:?}"),
                }
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (1..=48).collect::<Vec<i64>>(), "{target}");
    }
}

/// Two scripts at once on two workers: the time of the second begins when the first has ended. Inside of a
/// script time stands still.
#[test]
fn a_script_that_has_waited_has_the_time_of_its_beginning() {
    let server = Server::start(Target::Ferrite { threads: 2 }, &SLOW_TO_REFUSE);
    let mut client = server.client();
    let mut runners = [server.client(), server.client()];
    let expiring = "return redis.call('set', KEYS[1], 1, 'px', 2500)";
    let script = lasting(1500).replace("return redis.call('incr', 'a')", expiring);
    for (runner, key) in runners.iter_mut().zip(["one", "two"]) {
        let request = ["EVAL", &script, "1", key];
        runner.send(&request).expect("the server reads");
    }
    for runner in &mut runners {
        assert_eq!(answer(runner), "OK");
    }
    // The first key has expired while the second script ran.
    let left = ["PTTL one", "PTTL two"].map(|request| client.ask(request));
    let is_left = |left: &Value| matches!(left, Value::Int(1..));
    assert!(left.iter().any(is_left), "{left:?}");
}

/// Scripts are killed at any moment: each has done all, or nothing.
#[test]
fn a_killed_script_has_done_nothing() {
    const RUNS: usize = 40;
    let target = Target::Logged { threads: 3 };
    let mut server = Server::start(target, &SLOW_TO_REFUSE);
    let addr = server.addr();
    let runners: Vec<_> = (0..4)
        .map(|runner| {
            std::thread::spawn(move || {
                let mut client = Client::connect(addr).expect("the server listens");
                let mut done = 0;
                for run in 0..RUNS {
                    let rounds = (run * 7919 + runner * 104_729) % 150_000;
                    let script = format!(
                        "for i = 1, {rounds} do redis.sha1hex('') end \
                         redis.call('incr', 'a') redis.call('incr', 'b') return 'done'"
                    );
                    match client.call(&["EVAL", &script, "0"]).expect("a reply") {
                        Value::Bulk(text) if text == b"done" => done += 1,
                        Value::Error(text) => assert!(text.starts_with(b"ERR Script killed")),
                        other => panic!("{other:?}"),
                    }
                }
                done
            })
        })
        .collect();
    let mut killer = server.client();
    let mut killed = 0;
    while runners.iter().any(|runner| !runner.is_finished()) {
        let answer = killer.ask("SCRIPT KILL").text();
        killed += usize::from(answer == "OK");
        sleep(Duration::from_millis(3));
    }
    let done: usize = runners
        .into_iter()
        .map(|runner| runner.join().expect("it is well"))
        .sum();
    assert!(
        killed > 0 && done > 0 && done + killed >= 4 * RUNS,
        "{killed} {done}"
    );
    for _ in 0..2 {
        let mut client = server.client();
        for key in ["a", "b"] {
            assert_eq!(client.ask(&format!("GET {key}")).text(), done.to_string());
        }
        server.start_again(target, Signal::KILL, &SLOW_TO_REFUSE);
    }
}

/// Slow scripts of many clients, one after the other: after each of them the others have their turn.
#[test]
fn others_come_in_between_slow_scripts() {
    for target in [Target::Logged { threads: 1 }, Target::Logged { threads: 4 }] {
        let server = Server::start(target, &SLOW_TO_REFUSE);
        let addr = server.addr();
        let runners: Vec<_> = (0..6)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut client = Client::connect(addr).expect("the server listens");
                    for _ in 0..40 {
                        let reply = client.call(&["EVAL", &lasting(10), "0"]);
                        assert!(matches!(reply, Ok(Value::Int(_))), "{reply:?}");
                    }
                })
            })
            .collect();
        let mut others: Vec<Client> = (0..4).map(|_| server.client()).collect();
        for _ in 0..5 {
            for other in &mut others {
                other.ask("GET a");
            }
        }
        let is_running = runners.iter().any(|runner| !runner.is_finished());
        assert!(is_running, "{target}: they have waited for the last script");
        for runner in runners {
            runner.join().expect("it is well");
        }
        assert_eq!(server.client().ask("GET a").text(), "240", "{target}");
    }
}
