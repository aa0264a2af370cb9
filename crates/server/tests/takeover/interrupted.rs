//! Kills while a directory is taken over, and limits of memory.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, kill_process};

use super::*;

#[test]
fn who_is_killed_meanwhile_begins_again() {
    let data = Data::new();
    let mut server = data.redis(&[]);
    let mut client = server.client();
    let mut fill = |from: u32| {
        for number in from..from + 100 {
            client.ask(&format!("SET key:{number} value:{number}"));
            client.ask("INCR counter");
        }
    };
    fill(0);
    let mut other = server.client();
    rewrite(&mut other);
    fill(50);
    let expected = digest(&server);
    end(&mut server, Signal::KILL);
    let before = data.files();
    let mark = data.path(OWN).join("INCOMPLETE");
    for (wait_ms, signal) in [
        (0, Signal::KILL),
        (50, Signal::TERM),
        (150, Signal::KILL),
        (400, Signal::TERM),
        (800, Signal::KILL),
    ] {
        // The start before has left one.
        let made = || fs::metadata(&mark).and_then(|mark| mark.modified()).ok();
        let before = made();
        let mut command = Command::new(env!("CARGO_BIN_EXE_ferrite-server"));
        command
            .args(["--port", "0", "--appendonly", "yes", "--dir", data.text()])
            .args(["--unixsocket", "takeover.sock", "--key-load-delay", "20000"])
            // Half of the data is no snapshot.
            .args(["--save", "1 1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = command.spawn().expect("cargo has built it");
        eventually("the takeover begins", || {
            made().is_some_and(|made| Some(made) != before)
        });
        sleep(Duration::from_millis(wait_ms));
        kill_process(Pid::from_child(&child), signal).expect("it is ours");
        child.wait().expect("it is ours");
        let _ = fs::remove_file(data.path("takeover.sock"));
        assert!(mark.exists(), "{wait_ms} ms are too short for all of it");
        assert!(!data.path("dump.rdb").exists());
    }
    let mut server = data.ferrite(&[]);
    assert_eq!(digest(&server), expected);
    assert!(!mark.exists());
    data.assert_untouched(&before, "");
    end(&mut server, Signal::KILL);
    let server = data.ferrite(&[]);
    assert_eq!(digest(&server), expected);
    assert!(!server.output().contains("Taking over"));
}

#[test]
fn what_is_larger_than_memory_is_taken_over_within_the_limit() {
    const KEYS: u32 = 500;
    const MOST: u64 = 64 << 20;
    let data = Data::new();
    let mut server = data.redis(&[]);
    let mut client = server.client();
    let mut random = fastrand::Rng::with_seed(1);
    for number in 0..2 * KEYS {
        let value: Vec<u8> = (0..200_000).map(|_| random.u8(..)).collect();
        let key = format!("key:{}", number % KEYS);
        let reply = client.call(&[b"SET", key.as_bytes(), &value]);
        assert_eq!(reply.expect("it answers"), Value::Simple(b"OK".to_vec()));
        if number == KEYS {
            rewrite(&mut client);
        }
    }
    // Of values that have left memory by then.
    for number in (0..KEYS).step_by(7) {
        client.ask(&format!("APPEND key:{number} tail"));
        client.ask("MULTI");
        client.ask(&format!("RENAME key:{number} moved:{number}"));
        client.ask(&format!("COPY moved:{number} key:{number} DB 1"));
        client.ask("EXEC");
    }
    // Some that keep all others out.
    ask_all(
        &mut client,
        "SELECT 2\nMSET a 1 b 2\nSWAPDB 1 2\nFLUSHDB\nSET c 3\nSELECT 3\nSET d 4\nFLUSHDB ASYNC",
    );
    let expected = digest(&server);
    end(&mut server, Signal::KILL);
    let limit = ["--maxmemory", "64mb", "--shards", "16"];
    let mut server = data.ferrite(&limit);
    assert_eq!(digest(&server), expected);
    let most = server.most_resident_bytes();
    assert!(most <= MOST + MOST / 10 + (16 << 20), "{most} bytes");
    end(&mut server, Signal::KILL);
    assert_eq!(digest(&data.ferrite(&limit)), expected);
}

#[test]
fn a_server_that_goes_on_writing_is_noticed() {
    let data = Data::new();
    let redis = data.redis(&[]);
    let mut client = redis.client();
    for number in 0..200 {
        client.ask(&format!("SET key:{number} value:{number}"));
    }
    let mark = data.path(OWN).join("INCOMPLETE");
    let refused = std::thread::scope(|scope| {
        let start = || data.try_ferrite(&["--key-load-delay", "5000"]);
        let starting = scope.spawn(start);
        eventually("the takeover begins", || mark.exists());
        // A few changes are enough; the takeover reads them, too, and has to come to their end.
        for _ in 0..50 {
            client.ask("INCR counter");
            sleep(Duration::from_millis(5));
        }
        starting.join().expect("it does not panic").err()
    });
    let refused = refused.expect("it does not start").output;
    assert!(refused.contains("it has changed meanwhile"), "{refused}");
    let expected = digest(&redis);
    drop((client, redis));
    assert_eq!(digest(&data.ferrite(&[])), expected);
}

#[test]
fn large_values_are_taken_over() {
    let data = Data::new();
    let mut server = data.redis(&[]);
    let mut client = server.client();
    for (key, len) in [("one", 300_000), ("two", 5_000_000), ("three", 70_000)] {
        let value = vec![b'x'; len];
        let reply = client.call(&[b"SET", key.as_bytes(), &value]);
        assert_eq!(reply.expect("it answers"), Value::Simple(b"OK".to_vec()));
    }
    ask_all(
        &mut client,
        "APPEND one y\nCOPY two four\nSETRANGE four 10 z\nRENAME three five\nMULTI\nAPPEND two a\nEXEC",
    );
    end(&mut server, Signal::KILL);
    let mut server = data.assert_taken_over(&[]);
    let before = digest(&server);
    end(&mut server, Signal::KILL);
    assert_eq!(digest(&data.ferrite(&[])), before);
}
