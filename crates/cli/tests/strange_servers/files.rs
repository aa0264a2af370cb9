//! Loading from files and saving to files, where the server is old, refuses, repeats itself or goes away.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rdb::{Attributes, Collection, Element, Item, Options, Reader, StreamId, StreamState, Writer};

use super::{answering, outcome, run, server};

/// A directory of a test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-cli-strange-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        Scratch(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("text").to_owned()
    }

    /// Names of the files in it.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("it is there");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).into_string().expect("text"))
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The bytes of a file with keys `key:0` and so on, of which every third expires.
fn file(keys: usize) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), Options::default()).expect("there is room");
    for number in 0..keys {
        let attributes = Attributes {
            expiry_ms: (number % 3 == 2).then_some(32_503_680_000_000),
            ..Attributes::default()
        };
        let key = format!("key:{number}");
        let put = writer.key(key.as_bytes(), b"value", attributes);
        put.expect("there is room");
    }
    writer.finish().expect("there is room")
}

#[test]
fn an_old_server_is_told_spans_instead_of_times() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    fs::write(&path, file(6)).expect("the directory is ours");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let port = {
        let heard = Arc::clone(&heard);
        answering(move |words| {
            heard.lock().expect("no panic").push(words.join(" "));
            Some(match words.get(3).map(String::as_str) {
                Some("PXAT") => "-ERR syntax error\r\n".to_owned(),
                _ => "+OK\r\n".to_owned(),
            })
        })
    };
    let (text, told, code) = outcome(&run(port, &["import", &path], ""));
    assert_eq!(
        (&text[..], &told[..], code),
        ("6 keys written to 1 database\n", "", Some(0))
    );
    let heard = heard.lock().expect("no panic");
    assert_eq!(heard[1], "SET key:0 value");
    assert_eq!(heard[3], "SET key:2 value PXAT 32503680000000");
    let span = heard[4].strip_prefix("SET key:2 value PX ").expect("again");
    let span: i64 = span.parse().expect("a number");
    assert!((1..32_503_680_000_000 - 1_700_000_000_000).contains(&span));
    assert!(heard[7].starts_with("SET key:5 value PX "), "{}", heard[7]);
    assert_eq!(heard.len(), 8);
}

#[test]
fn keys_that_are_refused_are_named_and_the_end() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    fs::write(&path, file(5000)).expect("the directory is ours");
    let port = answering(|words| {
        let number = words[1].strip_prefix("key:");
        let number: usize = number.and_then(|digits| digits.parse().ok()).unwrap_or(0);
        Some(if number >= 700 {
            "-OOM command not allowed when used memory > 'maxmemory'.\r\n".to_owned()
        } else {
            "+OK\r\n".to_owned()
        })
    });
    let (text, told, code) = outcome(&run(port, &["import", &path], ""));
    assert_eq!((&text[..], code), ("", Some(1)));
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(
        lines[0],
        "key \"key:700\" in database 0: OOM command not allowed when used memory > 'maxmemory'."
    );
    assert_eq!(lines.len(), 7, "{told}");
    assert!(lines[5].starts_with("... and "), "{told}");
    assert_eq!(lines[6], "700 of 5000 keys were written");
}

#[test]
fn a_server_that_goes_away_is_told_with_the_key() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    fs::write(&path, file(2)).expect("the directory is ours");
    let port = answering(|words| (words[1] != "key:1").then(|| "+OK\r\n".to_owned()));
    let (_, told, code) = outcome(&run(port, &["import", &path], ""));
    assert_eq!(code, Some(1));
    assert_eq!(
        told,
        "key \"key:1\" in database 0: Error: Server closed the connection\n\
         1 of 2 keys were written, 1 other may be\n"
    );
}

#[test]
fn a_file_that_is_damaged_is_not_imported_in_part() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    let whole = file(1000);
    let mut flipped = whole.clone();
    flipped[5000] ^= 1;
    for (bytes, wrong) in [
        (&whole[..whole.len() - 9], "the file ends where"),
        (&flipped, "wrong checksum"),
        (b"REDIS9999", "RDB version 9999 is not supported"),
        (b"nothing of the kind", "this is no RDB file"),
    ] {
        fs::write(&path, bytes).expect("the directory is ours");
        // Nobody listens there, and nobody is asked.
        let (_, told, code) = outcome(&run(1, &["import", &path], ""));
        assert_eq!(code, Some(1));
        assert!(told.starts_with(&path) && told.contains(wrong), "{told}");
    }
}

#[test]
fn a_stream_with_groups_that_do_not_match_is_not_imported() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    let written = || {
        let mut writer = Writer::new(Vec::new(), Options::default())?;
        writer.key(b"before", b"value", Attributes::default())?;
        writer.begin_stream(b"stream", 0, Attributes::default())?;
        writer.stream_state(&StreamState::default(), 1)?;
        writer.stream_group(b"group", StreamId::default(), None, 0)?;
        writer.stream_consumers(1)?;
        writer.stream_consumer(b"anna", 0, 1)?;
        // It is pending in no group.
        writer.stream_owned(StreamId { ms: 5, seq: 1 })?;
        writer.finish()
    };
    fs::write(&path, written().expect("there is room")).expect("the directory is ours");
    let (_, told, code) = outcome(&run(1, &["import", &path], ""));
    assert_eq!(code, Some(1));
    assert!(told.starts_with(&path), "{told}");
    let problem =
        "a pending entry of the group that no other consumer has should be here, but it is 5-1";
    assert!(told.contains(problem), "{told}");
}

#[test]
fn a_hash_that_is_refused_is_named_and_the_end() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    let mut writer = Writer::new(Vec::new(), Options::default()).expect("there is room");
    for key in [&b"first"[..], b"second"] {
        let begun = writer.begin(key, Collection::Hash, 100_000, Attributes::default());
        begun.expect("there is room");
        for number in 0..100_000 {
            let field = format!("field:{number}");
            let element = Element::Field {
                field: field.as_bytes(),
                value: b"value",
                expiry_ms: None,
            };
            writer.element(element).expect("there is room");
        }
        writer.end().expect("there is room");
    }
    fs::write(&path, writer.finish().expect("there is room")).expect("the directory is ours");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let port = {
        let heard = Arc::clone(&heard);
        answering(move |words| {
            let mut heard = heard.lock().expect("no panic");
            heard.push(words[..2].join(" "));
            let is_full = heard.iter().filter(|line| *line == "HSET first").count() > 3;
            Some(match is_full {
                true => "-OOM command not allowed when used memory > 'maxmemory'.\r\n".to_owned(),
                false => ":1\r\n".to_owned(),
            })
        })
    };
    let (text, told, code) = outcome(&run(port, &["import", "-n", "0", &path], ""));
    assert_eq!((&text[..], code), ("", Some(1)));
    assert_eq!(
        told,
        "key \"first\" in database 0: OOM command not allowed when used memory > 'maxmemory'.\n\
         0 of 2 keys were written\n"
    );
    let heard = heard.lock().expect("no panic");
    assert_eq!(heard[..3], ["SELECT 0", "DEL first", "HSET first"]);
    // Not all of the file is sent to a server that has refused a part of it.
    assert!(heard.len() < 20, "{heard:?}");
}

/// A server that knows little and says everything twice.
fn simple(words: &[String]) -> Option<String> {
    Some(match words[0].as_str() {
        "INFO" => "$24\r\ndb7:keys=2,expires=1\r\n\r\n\r\n".to_owned(),
        "SELECT" => "+OK\r\n".to_owned(),
        "DBSIZE" => ":2\r\n".to_owned(),
        "SCAN" if words[1] == "0" => {
            "*2\r\n$1\r\n9\r\n*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\na\r\n".to_owned()
        }
        "SCAN" => "*2\r\n$1\r\n0\r\n*2\r\n$1\r\nb\r\n$4\r\ngone\r\n".to_owned(),
        "STRLEN" => ":3\r\n".to_owned(),
        "GET" if words[1] == "gone" => "$-1\r\n".to_owned(),
        "GET" => "$3\r\n1.5\r\n".to_owned(),
        "PTTL" if words[1] == "b" => ":100000\r\n".to_owned(),
        "PTTL" => ":-1\r\n".to_owned(),
        other => format!("-ERR unknown command '{other}'\r\n"),
    })
}

#[test]
fn a_simple_server_can_be_exported() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    let before = sys::clock::realtime_ms();
    let (text, told, code) = outcome(&run(answering(simple), &["export", &path], ""));
    assert_eq!((&told[..], code), ("", Some(0)));
    assert!(text.starts_with("2 keys of 1 database saved to "), "{text}");
    let bytes = fs::read(&path).expect("it was saved");
    let mut reader = Reader::new(&bytes[..], true).expect("it is one");
    let (mut database, mut keys) = (0, Vec::new());
    while let Some(item) = reader.next().expect("it is whole") {
        match item {
            Item::Database(number) => database = number,
            Item::Entry(entry) => {
                assert_eq!((database, &entry.value[..]), (7, &b"1.5"[..]));
                keys.push((entry.key.to_vec(), entry.attributes.expiry_ms));
            }
            _ => {}
        }
    }
    assert_eq!(keys.len(), 2);
    assert_eq!(keys[0], (b"a".to_vec(), None));
    assert_eq!(keys[1].0, b"b");
    let span = keys[1].1.expect("it expires") - before;
    assert!((100_000..10_000_000).contains(&span), "{span}");
}

#[test]
fn a_key_of_another_type_is_named_or_left_out() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    let odd = |words: &[String]| match words[0].as_str() {
        "STRLEN" | "HLEN" | "XLEN" if words[1] == "b" => Some("-WRONGTYPE of value\r\n".to_owned()),
        "TYPE" => Some("+ReJSON-RL\r\n".to_owned()),
        _ => simple(words),
    };
    let (_, told, code) = outcome(&run(answering(odd), &["export", &path], ""));
    assert_eq!(code, Some(1));
    assert_eq!(
        told,
        "key \"b\" in database 7 is a ReJSON-RL, and only strings, hashes, sets, sorted sets, lists and \
         streams are supported. Nothing was saved; --skip-unsupported leaves out what cannot be.\n"
    );
    assert_eq!(scratch.files(), [""; 0]);
    let arguments = ["export", "--skip-unsupported", &path];
    let (text, told, code) = outcome(&run(answering(odd), &arguments, ""));
    assert_eq!((&told[..], code), ("", Some(0)));
    assert!(text.starts_with("1 key of 1 database saved to "), "{text}");
    assert!(
        text.ends_with("1 left out that are not supported\n"),
        "{text}"
    );
}

#[test]
fn a_stream_that_the_server_gives_damaged_is_named() {
    for (dump, problem) in [
        ("$-1\r\n", None),
        (
            "$5\r\nabcde\r\n",
            Some("what DUMP gave is damaged, or of a version that is not known"),
        ),
        ("-NOPERM no\r\n", Some("NOPERM no")),
        (":1\r\n", Some("the server answered Integer(1)")),
    ] {
        let scratch = Scratch::new();
        let path = scratch.path("dump.rdb");
        let port = answering(move |words| match words[0].as_str() {
            "STRLEN" if words[1] == "b" => Some("-WRONGTYPE of value\r\n".to_owned()),
            "XLEN" => Some(":1\r\n".to_owned()),
            "DUMP" => Some(dump.to_owned()),
            _ => simple(words),
        });
        let (text, told, code) = outcome(&run(port, &["export", &path], ""));
        let Some(problem) = problem else {
            assert!(
                text.starts_with("1 key of 1 database saved to "),
                "{text}{told}"
            );
            continue;
        };
        assert_eq!(code, Some(1), "{text}");
        assert_eq!(told, format!("key \"b\" in database 7: {problem}\n"));
        assert_eq!(scratch.files(), [""; 0]);
    }
}

#[test]
fn an_export_that_fails_leaves_nothing() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    for (command, reply) in [
        ("SCAN", None),
        ("GET", None),
        ("GET", Some("-ERR no\r\n")),
        ("STRLEN", Some("-WRONGTYPE of value\r\n")),
    ] {
        let port = answering(move |words| match words[0] == command {
            true => reply.map(str::to_owned),
            false => simple(words),
        });
        let (_, told, code) = outcome(&run(port, &["export", &path], ""));
        assert_eq!(code, Some(1));
        assert!(!told.is_empty());
        assert_eq!(scratch.files(), [""; 0], "{command} {reply:?}");
    }
}

/// A server that says OK to everything but SYNC, which it answers with these bytes, one by one; then it hangs
/// up, or waits for the client to do so.
fn sending(bytes: &'static [u8], stays: bool) -> u16 {
    server(move |mut stream| {
        let mut chunk = [0; 1024];
        while let Ok(count @ 1..) = stream.read(&mut chunk) {
            if !chunk[..count].windows(4).any(|window| window == b"SYNC") {
                stream.write_all(b"+OK\r\n").expect("the client waits");
                continue;
            }
            for byte in bytes {
                if stream.write_all(&[*byte]).is_err() {
                    break;
                }
            }
            if stays {
                let _ = stream.read_to_end(&mut Vec::new());
            }
            return;
        }
    })
}

#[test]
fn a_file_comes_in_any_pieces_or_not_at_all() {
    let scratch = Scratch::new();
    let path = scratch.path("dump.rdb");
    for sent in [
        &b"\n\r\n$5\r\nREDIS"[..],
        b"$EOF:0123456789abcdef0123456789abcdef01234567\r\nREDIS0123456789abcdef0123456789abcdef01234567",
    ] {
        let (text, told, code) = outcome(&run(sending(sent, false), &["--rdb", &path], ""));
        assert_eq!((&text[..], code), ("", Some(0)), "{told}");
        assert!(told.contains("Transfer finished with success"), "{told}");
        assert_eq!(fs::read(&path).expect("it was saved"), b"REDIS");
        assert_eq!(scratch.files(), ["dump.rdb"]);
        fs::remove_file(&path).expect("it is ours");
    }
    for sent in [
        &b"$6\r\nREDIS"[..],
        b"\n\n",
        b"$EOF:0123456789abcdef0123456789abcdef01234567\r\nREDIS0123456789abcdef",
        b"$EOF:012345\r\n",
        b"-ERR unknown command 'SYNC'\r\n",
        b"nonsense\r\n",
    ] {
        let (_, told, code) = outcome(&run(sending(sent, false), &["--rdb", &path], ""));
        assert_eq!(code, Some(1), "{told}");
        assert_eq!(scratch.files(), [""; 0], "{told}");
        assert_eq!(
            told.contains("export FILE"),
            sent.starts_with(b"-"),
            "{told}"
        );
    }
}

#[test]
fn changes_are_shown_as_replicas_are_told() {
    for sent in [
        &b"\n$5\r\nREDIS*1\r\n$4\r\nping\r\n*3\r\n$3\r\nset\r\n$1\r\na\r\n$3\r\nx\"y\r\n"[..],
        b"$EOF:0123456789abcdef0123456789abcdef01234567\r\nREDIS0123456789abcdef0123456789abcdef01234567\
          *1\r\n$4\r\nping\r\n*3\r\n$3\r\nset\r\n$1\r\na\r\n$3\r\nx\"y\r\n",
    ] {
        let port = sending(sent, true);
        let (text, told, code) = outcome(&run(port, &["--replica", "-r", "2"], ""));
        assert_eq!(text, "\"ping\"\n\"set\",\"a\",\"x\\\"y\"\n", "{told}");
        assert!(told.contains("Logging commands from master."), "{told}");
        assert_eq!(code, Some(0));
    }
}
