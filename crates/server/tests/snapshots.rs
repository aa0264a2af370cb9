//! Snapshots and restarts: what one server saves, it or another program loads; files that are wrong are
//! refused; what clients are told while data is loaded; what is saved while others write.
//!
//! Replies of single commands are in the golden scripts.

use crate::support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rustix::process::Signal;
use support::{Client, Server, Target, Value, eventually, info_text as info, ok};

const TWO: Target = Target::Ferrite { threads: 2 };

/// A directory that outlives servers.
struct Data(PathBuf);

impl Data {
    fn new() -> Data {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-snapshots-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        Data(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("dump.rdb")
    }

    /// Starts a server that works here.
    fn start(&self, target: Target, options: &[&str]) -> Server {
        let mut all = vec!["--dir", self.0.to_str().expect("a path of UTF-8")];
        all.extend(options);
        Server::start(target, &all)
    }

    /// The names in it.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        let names = entries.map(|entry| entry.expect("it can be listed").file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        crate::support::remove_data(&self.0);
    }
}

/// Waits until a server is done with loading.
fn loaded(server: &Server) -> Client {
    let mut client = server.client();
    eventually("loading", || client.ask("PING").text() == "PONG");
    client
}

/// Keys of every shape, in several databases.
fn fill(client: &mut Client) {
    let mut random = fastrand::Rng::with_seed(4);
    for db in [0, 1, 9, 15] {
        client.ask(&format!("SELECT {db}"));
        for number in 0..300 {
            let len = match number % 50 {
                0 => 0,
                1 => 20_000,
                2 => 300_000,
                _ => random.usize(..100),
            };
            let value: Vec<u8> = match number % 3 {
                0 => (0..len).map(|_| random.u8(..)).collect(),
                1 => vec![b'x'; len],
                _ => (number * 1_000_000 - 9_000_000).to_string().into_bytes(),
            };
            let key: Vec<u8> = (0..number % 40).map(|_| random.u8(..)).collect();
            let set = [b"SET".to_vec(), key.clone(), value];
            assert_eq!(client.call(&set).expect("a reply"), ok());
            if number % 7 == 0 {
                let expire = [b"PEXPIREAT".to_vec(), key, b"4000000000000".to_vec()];
                client.call(&expire).expect("a reply");
            }
        }
        fill_hashes(client, &mut random);
    }
    client.ask("SELECT 0");
}

/// Hashes, sets, sorted sets and lists that are packed, those that just are not, and large ones.
fn fill_hashes(client: &mut Client, random: &mut fastrand::Rng) {
    let text = |random: &mut fastrand::Rng, most: usize| match random.u8(..3) {
        0 => random.i64(-50..100_000).to_string().into_bytes(),
        1 => random.i64(..).to_string().into_bytes(),
        _ => (0..random.usize(..most)).map(|_| random.u8(..)).collect(),
    };
    for (number, count) in [1, 2, 100, 512, 513, 600, 3000].into_iter().enumerate() {
        for most in [10, 65, 66, 400] {
            let mut request = vec![b"HSET".to_vec(), format!("hash:{number}:{most}").into()];
            for field in 0..count {
                request.extend([[text(random, most), vec![b'0'; field % 2]].concat()]);
                request.extend([text(random, most)]);
            }
            client.call(&request).expect("a reply");
        }
    }
    client.ask("PEXPIREAT hash:1:10 4000000000000");
    // Sets of integers of every width, and of anything; lists.
    for count in [1, 2, 128, 129, 512, 513, 3000] {
        for range in [100, 1 << 20, i64::MAX, 0] {
            let mut request = vec![b"SADD".to_vec(), format!("set:{count}:{range}").into()];
            request.extend((0..count).map(|_| match range {
                0 => text(random, 100),
                _ => random.i64(-range..range).to_string().into(),
            }));
            client.call(&request).expect("a reply");
        }
        let mut request = vec![b"RPUSH".to_vec(), format!("list:{count}").into()];
        request.extend((0..count).map(|_| text(random, 300)));
        client.call(&request).expect("a reply");
    }
    client.ask("PEXPIREAT set:512:100 4000000000000");
    // Sorted sets: scores that are integers, fractions, infinite.
    for count in [1, 2, 128, 129, 3000] {
        let mut request = vec![b"ZADD".to_vec(), format!("scores:{count}").into()];
        for number in 0..count {
            let score = match number % 3 {
                0 => random.i64(..).to_string(),
                1 => (random.f64() * 1000.0).to_string(),
                _ => "-inf".to_owned(),
            };
            request.extend([score.into(), format!("{number}").into()]);
        }
        client.call(&request).expect("a reply");
    }
}

fn end(mut server: Server, words: &str) {
    // The reply is the end of the connection.
    let _ = server.client().send(&words.split(' ').collect::<Vec<_>>());
    let status = server.wait_for_exit().expect("it ends");
    assert!(status.success(), "{words}: {status}\n{}", server.output());
}

#[test]
fn what_one_server_saves_it_and_redis_load() {
    for (first, second) in [(TWO, TWO), (TWO, Target::Redis), (Target::Redis, TWO)] {
        let data = Data::new();
        let server = data.start(first, &["--save", "3600 1"]);
        let mut client = server.client();
        fill(&mut client);
        let digest = client.ask("DEBUG DIGEST");
        let size = client.ask("DBSIZE");
        end(server, "SHUTDOWN");
        assert_eq!(data.files(), ["dump.rdb"]);
        let check = Command::new("redis-check-rdb").arg(data.file()).output();
        let check = check.expect("redis-check-rdb is installed (make setup does it)");
        assert!(check.status.success(), "{check:?}");

        let server = data.start(second, &["--save", "3600 1"]);
        let mut client = loaded(&server);
        assert_eq!(client.ask("DBSIZE"), size, "{first} {second}");
        assert_eq!(client.ask("DEBUG DIGEST"), digest, "{first} {second}");
        assert_eq!(info(&mut client, "rdb_changes_since_last_save"), "0");
    }
}

#[test]
fn the_end_saves_if_it_shall() {
    let data = Data::new();
    let count = |client: &mut Client| client.ask("DBSIZE");
    // A signal, with save points.
    let mut server = data.start(TWO, &["--save", "3600 1"]);
    server.client().ask("SET one 1");
    server.signal(Signal::TERM);
    assert!(
        server
            .wait_for_exit()
            .is_some_and(|status| status.success())
    );
    drop(server);
    let server = data.start(TWO, &["--save", "3600 1"]);
    assert_eq!(count(&mut loaded(&server)), Value::Int(1));
    // Not if told so, and not without save points.
    loaded(&server).ask("SET two 2");
    end(server, "SHUTDOWN NOSAVE");
    let server = data.start(TWO, &[]);
    assert_eq!(count(&mut loaded(&server)), Value::Int(1));
    loaded(&server).ask("SET two 2");
    end(server, "SHUTDOWN");
    // But if told so, also without them.
    let server = data.start(TWO, &[]);
    assert_eq!(count(&mut loaded(&server)), Value::Int(1));
    loaded(&server).ask("SET two 2");
    end(server, "SHUTDOWN SAVE");
    let server = data.start(TWO, &[]);
    assert_eq!(count(&mut loaded(&server)), Value::Int(2));
    // Who is killed leaves what was saved last.
    loaded(&server).ask("SET three 3");
    drop(server);
    let server = data.start(TWO, &[]);
    assert_eq!(count(&mut loaded(&server)), Value::Int(2));
}

#[test]
fn a_file_that_is_wrong_stops_the_start_and_stays_as_it_is() {
    let data = Data::new();
    let module = b"REDIS0010\x07\x06events\0\0\xff\0\0\0\0\0\0\0\0".to_vec();
    let server = data.start(TWO, &["--dbfilename", "good.rdb"]);
    let mut client = server.client();
    client.ask("SELECT 5");
    for number in 0..100 {
        client.ask(&format!("SET key:{number} value"));
    }
    client.ask("SAVE");
    drop(server);
    let good = fs::read(data.0.join("good.rdb")).expect("it was saved");
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 0x10;
    for (file, options, text) in [
        (
            module,
            &[][..],
            "key \"events\": the file holds data of the module",
        ),
        (good[..good.len() - 20].to_vec(), &[], "the file ends where"),
        (flipped, &[], "at byte "),
        (
            b"hello, this is no snapshot".to_vec(),
            &[],
            "this is no RDB file",
        ),
        (
            good,
            &["--databases", "4"],
            "database 5, but 'databases' is 4",
        ),
    ] {
        fs::write(data.file(), &file).expect("the directory is ours");
        let mut all = vec![
            "--dir",
            data.0.to_str().expect("a path of UTF-8"),
            "--save",
            "1 1",
        ];
        all.extend(options);
        let mut ended = None;
        match Server::try_start(TWO, &[], &all) {
            Err(failure) => ended = Some((failure.status, failure.output)),
            // It answers before it has seen all of the file.
            Ok(mut server) => {
                server.wait_for_exit();
                ended.replace((server.has_ended(), server.output()));
            }
        }
        let (status, output) = ended.expect("one of the two");
        assert!(status.is_some_and(|status| !status.success()), "{output}");
        assert!(output.contains(text), "{output}\n  has no\n{text}");
        assert!(output.contains("dump.rdb"), "{output}");
        assert_eq!(fs::read(data.file()).expect("it is there"), file);
    }
}

#[test]
fn clients_are_told_that_data_is_being_loaded() {
    let data = Data::new();
    let server = data.start(TWO, &[]);
    for number in 0..1000 {
        server.client().ask(&format!("SET key:{number} value"));
    }
    server.client().ask("SET gone x PX 1");
    server.client().ask("CONFIG SET save 3600\\ 1");
    end(server, "SHUTDOWN SAVE");
    let file = fs::read(data.file()).expect("it was saved");

    let options = ["--key-load-delay", "200000", "--save", "3600 1"];
    let server = data.start(TWO, &options);
    let mut client = server.client();
    let refusal = Value::Error(b"LOADING Redis is loading the dataset in memory".to_vec());
    for request in [
        "PING", "GET a", "SET a b", "SAVE", "BGSAVE", "FLUSHALL", "DBSIZE", "WAIT 0 0",
    ] {
        assert_eq!(client.ask(request), refusal, "{request}");
    }
    assert_eq!(client.ask("ECHO x").text(), "x");
    assert_eq!(client.ask("SELECT 1"), ok());
    assert!(client.ask("INFO server").text().contains("redis_version"));
    assert_eq!(info(&mut client, "loading"), "1");
    assert_eq!(
        info(&mut client, "loading_total_bytes"),
        file.len().to_string()
    );
    assert!(
        info(&mut client, "loading_loaded_perc")
            .parse::<f64>()
            .is_ok_and(|done| done < 100.0)
    );
    // What is loaded half is not saved.
    end(server, "SHUTDOWN");
    assert_eq!(fs::read(data.file()).expect("it is there"), file);
    let mut server = data.start(TWO, &options);
    server.signal(Signal::TERM);
    assert!(server.wait_for_exit().is_some());
    assert_eq!(fs::read(data.file()).expect("it is there"), file);

    let server = data.start(TWO, &[]);
    let mut client = loaded(&server);
    assert_eq!(client.ask("DBSIZE"), Value::Int(1000));
    assert_eq!(info(&mut client, "loading"), "0");
    assert_eq!(info(&mut client, "rdb_last_load_keys_loaded"), "1000");
}

#[test]
fn a_large_file_is_loaded_by_several_threads() {
    let data = Data::new();
    let server = data.start(TWO, &["--rdbcompression", "no"]);
    let mut client = server.client();
    let value = "v".repeat(80);
    for first in (0..60_000).step_by(1000) {
        let mut request = vec!["MSET".to_owned()];
        for number in first..first + 1000 {
            request.extend([format!("key:{number}"), format!("{number}{value}")]);
        }
        assert_eq!(client.call(&request).expect("a reply"), ok());
    }
    let digest = client.ask("DEBUG DIGEST");
    end(server, "SHUTDOWN SAVE");
    let len = fs::metadata(data.file()).expect("it was saved").len();
    assert!(len > 4 << 20, "{len}");
    let server = data.start(TWO, &[]);
    let mut client = loaded(&server);
    assert_eq!(client.ask("DEBUG DIGEST"), digest);
    assert_eq!(info(&mut client, "rdb_last_load_keys_loaded"), "60000");
}

/// What a file holds.
fn keys_of(path: &Path) -> std::collections::HashMap<Vec<u8>, Vec<u8>> {
    let file = fs::File::open(path).expect("it was saved");
    let mut reader = rdb::Reader::new(file, true).expect("it is a snapshot");
    let mut keys = std::collections::HashMap::new();
    while let Some(item) = reader.next().unwrap_or_else(|error| panic!("{error}")) {
        if let rdb::Item::Entry(entry) = item {
            let before = keys.insert(entry.key.to_vec(), entry.value.clone());
            assert!(before.is_none(), "{:?} is there twice", entry.key);
        }
    }
    keys
}

#[test]
fn a_snapshot_beside_writers_is_of_the_moment_it_was_asked_for() {
    let data = Data::new();
    let server = data.start(TWO, &[]);
    let mut client = server.client();
    for first in (0..50_000).step_by(1000) {
        let mut request = vec!["MSET".to_owned()];
        (first..first + 1000)
            .for_each(|number| request.extend([format!("key:{number}"), "old".into()]));
        assert_eq!(client.call(&request).expect("a reply"), ok());
    }
    let stop = AtomicBool::new(false);
    let counted: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        for (writer, counted) in counted.iter().enumerate() {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || {
                let mut client = server.client();
                while !stop.load(Ordering::SeqCst) {
                    let number = counted.load(Ordering::SeqCst) + 1;
                    // One command over many shards: all of it is in a snapshot or nothing.
                    let mut request = vec!["MSET".to_owned()];
                    for part in 0..10 {
                        request.extend([format!("part:{writer}:{part}"), number.to_string()]);
                    }
                    request.extend([format!("key:{}", number * 7919 % 50_000), "new".into()]);
                    assert_eq!(client.call(&request).expect("a reply"), ok());
                    counted.store(number, Ordering::SeqCst);
                }
            });
        }
        for _ in 0..8 {
            let target = counted[0].load(Ordering::SeqCst) + 50;
            eventually("writing", || counted[0].load(Ordering::SeqCst) >= target);
            let before: Vec<usize> = counted
                .iter()
                .map(|counted| counted.load(Ordering::SeqCst))
                .collect();
            assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
            let after: Vec<usize> = counted
                .iter()
                .map(|counted| counted.load(Ordering::SeqCst))
                .collect();
            eventually("saving", || {
                info(&mut client, "rdb_bgsave_in_progress") == "0"
            });
            assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
            let keys = keys_of(&data.file());
            assert_eq!(
                keys.keys().filter(|key| key.starts_with(b"key:")).count(),
                50_000
            );
            for writer in 0..3 {
                let part = |part: usize| {
                    let value = &keys[format!("part:{writer}:{part}").as_bytes()];
                    let text = str::from_utf8(value).expect("digits");
                    text.parse::<usize>().expect("a number")
                };
                let number = part(0);
                assert!((1..10).all(|other| part(other) == number));
                // One more may have been done than its writer had noted.
                assert!(before[writer] <= number && number <= after[writer] + 1);
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn writes_stop_when_snapshots_fail_and_go_on_when_they_do_not() {
    let data = Data::new();
    let server = data.start(TWO, &["--save", "3600 1"]);
    let mut client = server.client();
    fs::remove_dir_all(&data.0).expect("it is ours");
    let failed = |client: &mut Client| {
        assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
        eventually("failing", || {
            info(client, "rdb_last_bgsave_status") == "err"
        });
    };
    client.ask("SET a b");
    assert_eq!(client.ask("SAVE"), Value::Error(b"ERR".to_vec()));
    assert_eq!(client.ask("SET a b"), ok());
    failed(&mut client);
    for request in ["SET a b", "PING", "FLUSHALL", "INCR x"] {
        let reply = client.ask(request).text();
        assert!(
            reply.starts_with(
                "MISCONF Redis is configured to save RDB snapshots, but it's currently"
            ),
            "{reply}"
        );
    }
    assert_eq!(client.ask("GET a").text(), "b");
    let refusal = Value::Error(b"ERR Errors trying to SHUTDOWN. Check logs.".to_vec());
    assert_eq!(client.ask("SHUTDOWN"), refusal);
    assert_eq!(client.ask("SHUTDOWN SAVE"), refusal);
    server.signal(Signal::TERM);
    eventually("the signal", || {
        server.output().contains("errors trying to shut down")
    });
    assert_eq!(
        client.ask("CONFIG SET stop-writes-on-bgsave-error no"),
        ok()
    );
    assert_eq!(client.ask("SET a c"), ok());
    assert_eq!(
        client.ask("CONFIG SET stop-writes-on-bgsave-error yes"),
        ok()
    );
    assert!(client.ask("SET a c").text().starts_with("MISCONF"));
    fs::create_dir_all(&data.0).expect("it was ours");
    assert_eq!(client.ask("SAVE"), ok());
    assert_eq!(client.ask("SET a d"), ok());
    assert_eq!(info(&mut client, "rdb_last_bgsave_status"), "ok");
    fs::remove_dir_all(&data.0).expect("it is ours");
    end(server, "SHUTDOWN FORCE");
    fs::create_dir_all(&data.0).expect("it was ours");
}

#[test]
fn a_save_point_saves_by_itself() {
    let data = Data::new();
    let server = data.start(TWO, &["--save", "1 2"]);
    let mut client = server.client();
    client.ask("SET a 1");
    client.ask("SET b 2");
    eventually("saving", || info(&mut client, "rdb_saves") == "1");
    eventually("the end of it", || {
        info(&mut client, "rdb_changes_since_last_save") == "0"
    });
    assert_eq!(keys_of(&data.file()).len(), 2);
    assert_eq!(data.files(), ["dump.rdb"]);
}

/// Runs requests as one transaction.
fn transact(client: &mut Client, requests: &[&str]) -> Value {
    assert_eq!(client.ask("MULTI"), ok());
    for request in requests {
        assert_eq!(client.ask(request).text(), "QUEUED", "{request}");
    }
    client.ask("EXEC")
}

#[test]
fn a_transaction_beside_a_snapshot_is_not_in_it() {
    let data = Data::new();
    let server = data.start(TWO, &["--save", ""]);
    let mut client = server.client();
    for db in 0..3 {
        client.ask(&format!("SELECT {db}"));
        for number in 0..60 {
            client.ask(&format!("SET {db}:{number} old"));
        }
    }
    client.ask("SELECT 0");
    client.ask("SAVE");
    let before = keys_of(&data.file());
    assert_eq!(before.len(), 180);
    // Some hold the locks of their keys, others keep everybody else out.
    for others in [
        &["DEL 0:5 0:6", "SELECT 2", "APPEND 2:7 x"][..],
        &["SELECT 1", "FLUSHDB", "SET 1:1 again"],
        &[
            "SWAPDB 1 2",
            "SELECT 2",
            "SET 2:3 new",
            "SELECT 1",
            "SET 1:3 new",
        ],
        &["DBSIZE", "RENAME 0:7 0:8", "COPY 0:9 0:10 REPLACE"],
    ] {
        assert_eq!(client.ask("CONFIG SET rdb-key-save-delay 5000"), ok());
        assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
        let sets: Vec<String> = (0..60)
            .map(|number| format!("SET 0:{number} new"))
            .collect();
        let mut requests = vec!["SELECT 0"];
        requests.extend(sets.iter().map(String::as_str));
        requests.extend(others);
        let replies = transact(&mut client, &requests);
        assert!(matches!(&replies, Value::Array(all) if all.len() == requests.len()));
        assert_eq!(
            info(&mut client, "rdb_bgsave_in_progress"),
            "1",
            "{others:?}"
        );
        eventually("saving", || {
            info(&mut client, "rdb_bgsave_in_progress") == "0"
        });
        assert!(keys_of(&data.file()) == before, "{others:?}");
        // As it was.
        assert_eq!(client.ask("DEBUG RELOAD NOSAVE"), ok());
    }
}

#[test]
fn flushall_in_a_transaction_breaks_a_snapshot_off() {
    for points in ["", "3600 1"] {
        let data = Data::new();
        let server = data.start(TWO, &["--save", points]);
        let mut client = server.client();
        for number in 0..100 {
            client.ask(&format!("SET key:{number} old"));
        }
        client.ask("SAVE");
        assert_eq!(client.ask("CONFIG SET rdb-key-save-delay 10000000"), ok());
        assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
        let replies = transact(&mut client, &["SET a 1", "FLUSHALL", "SET b 2"]);
        assert_eq!(replies, Value::Array(vec![ok(), ok(), ok()]));
        eventually("the end of it", || {
            info(&mut client, "rdb_bgsave_in_progress") == "0"
        });
        // With save points the file is emptied at once, so that nothing comes back that was thrown away.
        let expected = if points.is_empty() { 100 } else { 0 };
        assert_eq!(keys_of(&data.file()).len(), expected, "'{points}'");
        assert_eq!(client.ask("CONFIG SET rdb-key-save-delay 0"), ok());
        assert_eq!(client.ask("BGSAVE").text(), "Background saving started");
        eventually("the next one", || {
            info(&mut client, "rdb_bgsave_in_progress") == "0"
        });
        let keys = keys_of(&data.file());
        assert_eq!(
            keys.into_iter().collect::<Vec<_>>(),
            [(b"b".to_vec(), b"2".to_vec())]
        );
    }
}
