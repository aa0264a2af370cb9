//! Libraries of functions beside redis-server: files and payloads go both ways. Workers, and functions that
//! last.

use crate::support;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::Signal;
use support::{
    Client, PATIENCE, Server, Target, Value, bulk, eventually, free_port, fresh_dir, info_text,
    integer, items, ok,
};

const ONE: Target = Target::Ferrite { threads: 1 };
const TWO: Target = Target::Ferrite { threads: 2 };
const LOGGED: Target = Target::Logged { threads: 2 };

fn code(name: &str, function: &str, result: &str) -> String {
    format!(
        "#!lua name={name}\nredis.register_function('{function}', function(keys, args) {result} end)"
    )
}

fn load(client: &mut Client, code: &str) {
    let reply = client.call(&["FUNCTION", "LOAD", "REPLACE", code]);
    assert!(matches!(reply, Ok(Value::Bulk(_))), "{reply:?}");
}

/// All libraries, with their codes.
fn listed(server: &Server) -> String {
    let mut client = server.client();
    eventually("data is loaded", || {
        info_text(&mut client, "loading") == "0"
    });
    let Value::Array(mut libraries) = client.ask("FUNCTION LIST WITHCODE") else {
        panic!("not a list");
    };
    libraries.sort_by_key(|library| format!("{library:?}"));
    format!("{libraries:?}")
}

fn dumped(server: &Server) -> Vec<u8> {
    let payload = server.client().ask("FUNCTION DUMP");
    payload.bytes().expect("it is a payload").to_vec()
}

/// Loads some libraries, small and large.
fn fill(server: &Server) {
    let mut client = server.client();
    for number in 0..10 {
        let padding = "-- the same line\n".repeat(number * 700);
        let code = code(
            &format!("lib{number}"),
            &format!("f{number}"),
            &format!("return {number}"),
        );
        load(&mut client, &format!("{code}\n{padding}"));
    }
}

#[test]
fn payloads_and_snapshots_go_to_other_servers_and_back() {
    for other in [Target::Redis, Target::Redis8] {
        let (redis, ours) = (Server::start(other, &[]), Server::start(TWO, &[]));
        fill(&redis);
        let wanted = listed(&redis);
        let payload = dumped(&redis);
        let restore = |server: &Server, payload: &[u8]| {
            let request: [&[u8]; 4] = [b"FUNCTION", b"RESTORE", payload, b"FLUSH"];
            server.client().call(&request).expect("a reply")
        };
        assert_eq!(restore(&ours, &payload), ok(), "{other}");
        assert_eq!(listed(&ours), wanted);
        assert_eq!(ours.client().ask("FCALL f7 0"), Value::Int(7));
        let payload = dumped(&ours);
        assert_eq!(redis.client().ask("FUNCTION FLUSH"), ok());
        assert_eq!(restore(&redis, &payload), ok(), "{other}");
        assert_eq!(listed(&redis), wanted);
        // By files.
        for (from, to) in [(other, ONE), (TWO, other)] {
            let server = Server::start(from, &["--save", ""]);
            fill(&server);
            assert_eq!(server.client().ask("SET key value"), ok());
            assert_eq!(server.client().ask("SAVE"), ok());
            let directory = fresh_dir();
            let file = |directory: &Path| directory.join("dump.rdb");
            fs::copy(file(server.dir()), file(&directory)).expect("it was saved");
            let port = free_port();
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let second = Server::start_at(to, addr, directory, &["--save", ""])
                .unwrap_or_else(|failure| panic!("{from} to {to}: {failure}"));
            assert_eq!(listed(&second), wanted, "{from} to {to}");
            assert_eq!(second.client().ask("GET key"), bulk("value"));
        }
    }
}

/// Moves all records to new segments.
fn compact(client: &mut Client) {
    client.ask("BGREWRITEAOF");
    eventually("compaction", || {
        info_text(client, "aof_rewrite_in_progress") == "0"
    });
}

#[test]
fn compaction_keeps_what_is_there_and_forgets_what_is_not() {
    let options = ["--appendfsync", "always", "--log-segment-size", "2mb"];
    let mut server = Server::start(LOGGED, &options);
    let mut client = server.client();
    fill(&server);
    for number in 0..2000 {
        let value = format!("{number}").repeat(1000);
        client
            .call(&["SET", &format!("key:{}", number % 7), &value])
            .expect("a reply");
        if number % 3 == 0 {
            let name = format!("lib{}", number % 10);
            load(
                &mut client,
                &code(&name, &format!("f{}", number % 10), "return 'new'"),
            );
        }
        if number == 1900 {
            client.ask("FLUSHALL");
        }
    }
    client.ask("FUNCTION DELETE lib3");
    compact(&mut client);
    let before = listed(&server);
    assert!(
        !before.contains("lib3") && before.contains("lib4"),
        "{before}"
    );
    for signal in [Signal::KILL, Signal::TERM] {
        server.start_again(LOGGED, signal, &options);
        assert_eq!(listed(&server), before, "{signal:?}");
    }
    let mut client = server.client();
    assert_eq!(client.ask("FCALL f4 0"), bulk("new"));
    assert_eq!(client.ask("FCALL f3 0").text(), "ERR Function not found");
}

/// Every worker calls a function while its library is replaced: it is the old one or the new one as a whole,
/// and after the reply of FUNCTION LOAD the new one.
#[test]
fn a_library_is_replaced_for_all_workers_at_once() {
    let server = Server::start(Target::Ferrite { threads: 4 }, &[]);
    let both = |number: u32| {
        let pair = format!("return {{{number}, {number}}}");
        code("lib", "f", &pair)
    };
    let newest = AtomicU32::new(0);
    load(&mut server.client(), &both(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.client();
                let mut last = 0;
                while last < 300 {
                    let least = newest.load(Ordering::SeqCst);
                    let pair = items(client.ask("FCALL f 0"));
                    assert_eq!(pair[0], pair[1]);
                    let number = u32::try_from(integer(&pair[0])).expect("it is a version");
                    assert!(
                        number >= least.max(last),
                        "{number} after {least} and {last}"
                    );
                    last = number;
                }
            });
        }
        let mut client = server.client();
        for number in 1..=300 {
            load(&mut client, &both(number));
            newest.store(number, Ordering::SeqCst);
        }
    });
}

#[test]
fn a_function_that_lasts_is_shown_and_killed() {
    const BUSY: &str =
        "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
    for target in [Target::Redis, ONE, Target::Logged { threads: 3 }] {
        let server = Server::start(target, &["--busy-reply-threshold", "100"]);
        let mut client = server.client();
        load(&mut client, &code("lib", "Endless", "while true do end"));
        let writes = "redis.call('set', keys[1], args[1]) while true do end";
        load(&mut client, &code("lib2", "writes", writes));
        let mut other = server.client();
        other
            .send(&["FCALL", "endless", "1", "key", "argument"])
            .expect("the server reads");
        eventually("BUSY", || client.ask("PING").text() == BUSY);
        assert_eq!(client.ask("SCRIPT KILL").text(), BUSY, "{target}");
        assert_eq!(client.ask("FUNCTION LIST").text(), BUSY);
        let stats = format!("{:?}", client.ask("FUNCTION STATS"));
        let wanted = [
            "Endless",
            "FCALL",
            "endless",
            "key",
            "argument",
            "duration_ms",
        ];
        let words = wanted.map(|word| format!("{:?}", bulk(word)));
        assert!(
            words.iter().all(|word| stats.contains(word)),
            "{target}: {stats}"
        );
        assert_eq!(client.ask("FUNCTION KILL"), ok());
        let killed = other.read(PATIENCE).expect("a reply").text();
        assert_eq!(
            killed,
            "ERR Script killed by user with SCRIPT KILL... script: Endless, on @user_function:2."
        );
        assert_eq!(
            client.ask("FUNCTION KILL").text(),
            "NOTBUSY No scripts in execution right now."
        );
        // One that has changed data.
        other
            .send(&["FCALL", "writes", "1", "key", "argument"])
            .expect("the server reads");
        eventually("BUSY", || client.ask("PING").text() == BUSY);
        assert!(client.ask("FUNCTION KILL").text().starts_with("UNKILLABLE"));
    }
}

#[test]
fn a_script_is_no_function() {
    const BUSY: &str =
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
    for target in [Target::Redis, ONE, LOGGED] {
        let server = Server::start(target, &["--busy-reply-threshold", "100"]);
        let (mut client, mut other) = (server.client(), server.client());
        other
            .send(&["EVAL", "while true do end", "0"])
            .expect("the server reads");
        eventually("BUSY", || client.ask("PING").text() == BUSY);
        assert_eq!(client.ask("FUNCTION KILL").text(), BUSY, "{target}");
        assert_eq!(client.ask("SCRIPT KILL"), ok());
        assert!(
            other
                .read(PATIENCE)
                .expect("a reply")
                .text()
                .contains("killed")
        );
    }
}

#[test]
fn a_text_without_end_ends_and_others_are_served_meanwhile() {
    let server = Server::start(ONE, &[]);
    let (mut client, mut other) = (server.client(), server.client());
    let code = "#!lua name=x\nwhile true do end";
    client
        .send(&["FUNCTION", "LOAD", code])
        .expect("the server reads");
    assert_eq!(other.ask("PING").text(), "PONG");
    assert_eq!(
        client.read(PATIENCE).expect("a reply").text(),
        "ERR Error registering functions: ERR FUNCTION LOAD timeout"
    );
    assert_eq!(client.ask("FUNCTION LIST"), Value::Array(Vec::new()));
}

#[test]
fn a_text_takes_no_more_memory_than_there_is() {
    let server = Server::start(TWO, &["--maxmemory", "100mb"]);
    let mut client = server.client();
    let code = "#!lua name=x\nlocal s = 'x' while true do s = s .. s end";
    for _ in 0..10 {
        let reply = client.call(&["FUNCTION", "LOAD", code]).expect("a reply");
        assert!(reply.text().ends_with("not enough memory"), "{reply:?}");
    }
    let most = server.most_resident_bytes() >> 20;
    assert!(most < 100, "{most} MiB");
}

#[test]
fn a_payload_takes_no_more_memory_than_there_is() {
    let server = Server::start(TWO, &["--maxmemory", "100mb"]);
    let mut client = server.client();
    let text = |number: usize| {
        let register =
            format!("redis.register_function('f{number}', function() return {number} end)");
        let mut text = format!("#!lua name=l{number}\n{register}\n--").into_bytes();
        text.resize(15 << 20, b'x');
        text
    };
    let texts: Vec<_> = (0..4).map(text).collect();
    let mut restored = |texts: &[Vec<u8>]| {
        let payload = rdb::dump_libraries(texts.iter().map(Vec::as_slice), true);
        let request = [&b"FUNCTION"[..], b"RESTORE", &payload, b"REPLACE"];
        client.call(&request).expect("a reply")
    };
    let reply = restored(&texts);
    assert!(reply.text().starts_with("OOM "), "{reply:?}");
    for _ in 0..3 {
        assert_eq!(restored(&texts[..1]), ok());
    }
    assert_eq!(integer(&client.ask("FCALL f0 0")), 0);
    let most = server.most_resident_bytes() >> 20;
    assert!(most < 100, "{most} MiB");
}

#[test]
fn a_snapshot_has_the_libraries_of_its_moment() {
    let server = Server::start(TWO, &["--rdbcompression", "no"]);
    let mut client = server.client();
    for number in 0..20 {
        let name = format!("l{number}");
        load(&mut client, &code(&name, "f", "return 1"));
        let both = b"BGSAVE\r\nFUNCTION FLUSH\r\n";
        client.send_bytes(both).expect("the server reads");
        for _ in 0..2 {
            let reply = client.read(PATIENCE).expect("a reply");
            assert!(matches!(reply, Value::Simple(_)), "{reply:?}");
        }
        eventually("a snapshot", || {
            info_text(&mut client, "rdb_bgsave_in_progress") == "0"
        });
        let file = fs::read(server.dir().join("dump.rdb")).expect("it was saved");
        let title = format!("name={name}\n");
        let has_it = file
            .windows(title.len())
            .any(|part| part == title.as_bytes());
        assert!(has_it, "the library of snapshot {number} is missing");
    }
}

#[test]
fn the_client_of_redis_gets_a_file_of_the_libraries() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    load(&mut client, &code("mine", "f", "return 'here'"));
    client.ask("SET key value");
    let file = server.dir().join("functions.rdb");
    let told = Command::new("redis-cli")
        .args(["-p", &server.addr().port().to_string(), "--functions-rdb"])
        .arg(&file)
        .output()
        .expect("it is installed");
    assert!(told.status.success(), "{told:?}");
    // Servers are started in folders of their own.
    let redis = Server::start(Target::Redis, &[]);
    fs::copy(&file, redis.dir().join("dump.rdb")).expect("it is there");
    redis.client().ask("DEBUG RELOAD NOSAVE");
    let mut client = redis.client();
    assert_eq!(client.ask("FCALL f 0").text(), "here");
    assert_eq!(integer(&client.ask("DBSIZE")), 0);
}
