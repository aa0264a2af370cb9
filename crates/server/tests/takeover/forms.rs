//! The forms that an append-only file has, and what is beside it.

use super::*;

/// Changes of all kinds, in several databases.
const WORK: &str = "
    SET v new
    SELECT 3
    MSET a 1 b 2 c 3
    INCRBYFLOAT a 1.5
    APPEND b xyz
    SETRANGE c 5 tail
    SETEX soon 100000 x
    SET later y PX 200000000
    GETEX later EX 300000
    EXPIRE a 500000
    PERSIST a
    SETBIT bits 1000 1
    BITFIELD bits SET u8 8 200 INCRBY i16 100 7
    BITOP NOT inverted bits
    COPY b d
    MOVE d 4
    RENAME c e
    MULTI
    INCR counter
    DECRBY counter 5
    SELECT 5
    SET five 5
    EXEC
    GETDEL five
    SET six 6
    SWAPDB 5 6
    SELECT 9
    SET gone 1
    FLUSHDB
    UNLINK six
    SETNX nx 1
    GETSET nx 2
";

/// Changes of groups and of libraries: their commands have subcommands.
#[test]
fn groups_and_libraries_are_taken_over_from_a_base_and_from_commands() {
    let code = |name: &str, result: &str| {
        format!(
            "#!lua name={name}\nredis.register_function('{name}', function() return {result} end)"
        )
    };
    let data = Data::new();
    let server = data.redis(&[]);
    let mut client = server.client();
    let load = |client: &mut Client, name: &str, result: &str| {
        let reply = client.call(&["FUNCTION", "LOAD", "REPLACE", &code(name, result)]);
        assert_eq!(reply.expect("a reply").text(), name);
    };
    for name in ["base", "replaced", "removed"] {
        load(&mut client, name, "'old'");
    }
    rewrite(&mut client);
    ask_all(
        &mut client,
        "XADD s 1-1 a b\nXADD s 1-2 a b\nXGROUP CREATE s g 0\nXREADGROUP GROUP g anna COUNT 1 STREAMS s >\n\
         XGROUP CREATECONSUMER s g bert\nXCLAIM s g bert 0 1-1\nXACK s g 1-1\nXGROUP CREATE s other $\n\
         XGROUP DESTROY s other\nXGROUP SETID s g 1-1",
    );
    load(&mut client, "replaced", "'new'");
    load(&mut client, "later", "'later'");
    ask_all(
        &mut client,
        "FUNCTION DELETE removed\nMULTI\nFUNCTION DELETE later\nSET v 1\nEXEC",
    );
    load(&mut client, "later", "'last'");
    let _ = client.call(&["SHUTDOWN", "NOSAVE"]);
    drop(server);
    let mut server = data.assert_taken_over(&[]);
    for signal in [Signal::KILL, Signal::TERM] {
        let mut client = server.client();
        for (name, result) in [("base", "old"), ("replaced", "new"), ("later", "last")] {
            assert_eq!(client.ask(&format!("FCALL {name} 0")).text(), result);
        }
        assert_eq!(
            client.ask("FCALL removed 0").text(),
            "ERR Function not found"
        );
        let groups = format!("{:?}", client.ask("XINFO GROUPS s"));
        assert!(
            groups.contains("\"g\"") && groups.contains("1-1"),
            "{groups}"
        );
        end(&mut server, signal);
        server = data.ferrite(&[]);
    }
}

#[test]
fn the_append_only_file_counts_and_not_the_older_snapshot() {
    let data = Data::new();
    let server = data.redis(&[]);
    let mut client = server.client();
    ask_all(&mut client, "SET v old\nSAVE\nSET v new\nSET n 1");
    let _ = client.call(&["SHUTDOWN", "NOSAVE"]);
    drop(server);
    let mut server = data.assert_taken_over(&[]);
    assert_eq!(server.client().ask("GET v").text(), "new");
    let said = server.output();
    for line in [
        "append-only file of redis-server, ",
        "The snapshot dump.rdb is not read, because the append-only file counts",
        "Taking over ./appendonlydir/appendonly.aof.manifest: 2 files, ",
        "Taken over ./appendonlydir/appendonly.aof.manifest: 0 keys of its base and 4 commands",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(data.path(OWN).join("log").is_dir());
    assert!(!data.path(REDIS).join("log").exists());
    let named = server.client().ask("CONFIG GET appenddirname");
    assert!(format!("{named:?}").contains("appendonlydir"));

    // From here on the log counts.
    server.client().ask("SET v newer");
    let expected = digest(&server);
    end(&mut server, Signal::KILL);
    let before = data.files();
    let server = data.ferrite(&[]);
    assert_eq!(digest(&server), expected);
    data.assert_untouched(&before, "");
    let said = server.output();
    for line in [
        "existing log, ",
        "appendonly.aof.manifest is an append-only file of redis-server and is not read, because the log in \
         ./appendonlydir.ferrite counts",
        "The snapshot dump.rdb, ",
        " is not read, because the log in ./appendonlydir.ferrite counts. To begin with what the snapshot \
         holds, stop",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    assert!(!said.contains("Taking over"), "{said}");
    drop(server);

    // Also without redis-server's directory.
    fs::remove_dir_all(data.path(REDIS)).expect("the directory is ours");
    assert_eq!(digest(&data.ferrite(&[])), expected);
    assert!(!data.path(REDIS).exists());
}

#[test]
fn all_forms_are_taken_over() {
    for preamble in ["yes", "no"] {
        for timestamps in ["yes", "no"] {
            let data = Data::new();
            let options = [
                "--aof-use-rdb-preamble",
                preamble,
                "--aof-timestamp-enabled",
                timestamps,
            ];
            let mut server = data.redis(&options);
            ask_all(&mut server.client(), WORK);
            rewrite(&mut server.client());
            ask_all(&mut server.client(), WORK);
            end(&mut server, Signal::KILL);
            let expiry = data.assert_taken_over(&[]).client().ask("PEXPIRETIME soon");
            assert_eq!(expiry, Value::Int(-2), "of another database");

            // As Redis 6 has it: base and increments in one file.
            let single: Vec<u8> = data
                .listed()
                .iter()
                .flat_map(|name| fs::read(data.path(name)).expect("it is listed"))
                .collect();
            let single = Data::of_redis_6(&single);
            let mut taken = single.assert_taken_over(&[]);
            assert!(single.path(OWN).join("log").is_dir());
            assert!(!single.path(REDIS).exists());
            let (before, mut client) = (digest(&taken), taken.client());
            client.ask("SELECT 3");
            let at = client.ask("PEXPIRETIME soon");
            assert!(
                matches!(at, Value::Int(at) if at > 1_700_000_000_000),
                "{at:?}"
            );
            end(&mut taken, Signal::KILL);
            assert_eq!(digest(&single.ferrite(&[])), before);
        }
    }
}

#[test]
fn a_rewrite_that_was_killed_leaves_several_increments() {
    let data = Data::new();
    let mut server = data.redis(&[]);
    let mut client = server.client();
    for round in 0..3 {
        ask_all(&mut client, WORK);
        ask_all(
            &mut client,
            "CONFIG SET rdb-key-save-delay 1000000\nBGREWRITEAOF",
        );
        eventually("the rewrite runs", || {
            crate::support::info(&mut client, "aof_rewrite_in_progress") == 1
        });
        ask_all(&mut client, WORK);
        end(&mut server, Signal::KILL);
        assert_eq!(data.listed().len(), round + 3);
        server = data.redis(&[]);
        client = server.client();
    }
    end(&mut server, Signal::TERM);
    data.assert_taken_over(&[]);
}

#[test]
fn a_key_whose_time_has_come_stays_until_the_file_removes_it() {
    let base =
        commands("SET early 1 PXAT 1000\nSET goes 1 PXAT 1000\nSET stays 5 PXAT 1000\nSET mixed 1");
    let rest = commands(
        "APPEND early 2\nINCR stays\nPERSIST stays\nSET goes x KEEPTTL\nDEL early\nSET early 3\n\
         PEXPIREAT mixed 2000\nINCR mixed\nPEXPIREAT mixed 99999999999999\nGETEX stays PXAT 99999999999999",
    );
    let data = Data::with_files(&[('b', &base), ('i', &rest)]);
    let server = data.ferrite(&[]);
    let mut client = server.client();
    let value = |client: &mut Client, key: &str| client.ask(&format!("GET {key}")).text();
    assert_eq!(value(&mut client, "early"), "3");
    assert_eq!(value(&mut client, "stays"), "6");
    assert_eq!(value(&mut client, "mixed"), "2");
    eventually("a key whose time has come is gone", || {
        client.ask("DBSIZE") == Value::Int(3)
    });
    let redis = data.copy();
    let redis = redis.redis(&[]);
    eventually("redis-server has the same", || {
        digest(&redis) == digest(&server)
    });
}

#[test]
fn a_torn_end_is_left_out_or_refused() {
    let whole = commands("SET a 1\nSET b 2\nINCR a");
    for (torn, what) in [
        (&b"*3\r\n$3\r\nSET\r\n$1\r\nc"[..], "a command"),
        (b"*", "its first byte"),
        (&commands("MULTI\nSET c 1\nSET a 9"), "a transaction"),
        (&commands("MULTI"), "a transaction without anything"),
        (
            &[&commands("MULTI\nSET c 1")[..], b"*1\r\n$4\r\nEX"].concat(),
            "its end",
        ),
    ] {
        let file = [&whole, torn].concat();
        let data = Data::with_files(&[('b', &commands("SET z 1")), ('i', &file)]);
        let said = data.refusal(&["--aof-load-truncated", "no"]);
        let place = format!(
            "appendonlydir/appendonly.aof.2.i cannot be taken over: it ends in the middle of a command or \
             a transaction, which begins at byte {}",
            whole.len()
        );
        assert!(said.contains(&place), "{what}: {said}");
        let server = data.assert_taken_over(&["--aof-load-truncated", "yes"]);
        let said = server.output();
        let left_out = format!(
            "the last {} bytes, from byte {} on",
            torn.len(),
            whole.len()
        );
        assert!(said.contains(&left_out), "{what}: {said}");
        assert_eq!(server.client().ask("DBSIZE"), Value::Int(3), "{what}");
    }
    // A note that is not whole is none.
    let file = [&whole[..], b"#TS:170"].concat();
    Data::with_files(&[('i', &file)]).assert_taken_over(&["--aof-load-truncated", "no"]);
}

#[test]
fn without_a_log_the_append_only_file_is_told_of() {
    let data = Data::new();
    let mut server = data.redis(&[]);
    ask_all(&mut server.client(), "SET v old\nSAVE\nSET v new");
    end(&mut server, Signal::KILL);
    let before = data.files();
    let cache = Target::Ferrite { threads: 1 };
    let server = Server::start(cache, &data.options(&[]));
    // Without a log it answers while the snapshot is loaded.
    eventually("the snapshot is loaded", || {
        server.client().ask("GET v").text() == "old"
    });
    let said = server.output();
    let line = "appendonly.aof.manifest is an append-only file of redis-server and is not read, because \
        appendonly is no";
    assert!(said.contains(line), "{said}");
    // A log that begins while the server runs has a place of its own, too.
    server.client().ask("SET v 3");
    server.client().ask("CONFIG SET appendonly yes");
    eventually("all data is in the log", || {
        server.output().contains("All data is in the log")
    });
    server.client().ask("CONFIG SET appendonly no");
    let mut client = server.client();
    eventually("it begins again", || {
        client.ask("CONFIG SET appendonly yes") == Value::Simple(b"OK".to_vec())
    });
    eventually("all data is in the log", || {
        server.output().matches("All data is in the log").count() == 2
    });
    data.assert_untouched(&before, "");
    drop(server);
    assert_eq!(data.ferrite(&[]).client().ask("GET v").text(), "3");
    data.assert_untouched(&before, "");
}

#[test]
fn a_log_stays_where_it_is() {
    // One that an earlier server has put among redis-server's files.
    let data = Data::new();
    let mut server = data.ferrite(&[]);
    server.client().ask("SET own 1");
    end(&mut server, Signal::TERM);
    assert!(data.path(REDIS).join("log").is_dir());
    let foreign = Data::with_files(&[('i', &commands("SET foreign 1"))]);
    for (name, bytes) in foreign.files() {
        data.write(&name, &bytes);
    }
    let server = data.ferrite(&[]);
    assert_eq!(server.client().ask("GET own").text(), "1");
    assert_eq!(server.client().ask("DBSIZE"), Value::Int(1));
    assert!(
        server
            .output()
            .contains("is not read, because the log in ./appendonlydir counts")
    );
    // It is not moved away with redis-server's files.
    server.client().ask("CONFIG SET appendonly no");
    let mut client = server.client();
    eventually("the log has ended", || {
        let reply = client.ask("CONFIG SET appendonly yes");
        format!("{reply:?}").contains("files of redis-server")
    });
    drop(server);
    assert!(foreign.files().keys().all(|name| data.path(name).exists()));

    // Two logs are one too many.
    let two = Data::new();
    for name in [REDIS, OWN] {
        fs::create_dir_all(two.path(name).join("log")).expect("the directory is ours");
    }
    let said = two.refusal(&[]);
    assert!(
        said.contains("there are two logs, ./appendonlydir and ./appendonlydir.ferrite"),
        "{said}"
    );
}

#[test]
fn other_names_are_found() {
    let data = Data::new();
    let options = ["--appendfilename", "my log.aof", "--appenddirname", "logs"];
    let mut server = data.redis(&options);
    ask_all(&mut server.client(), WORK);
    let expected = digest(&server);
    end(&mut server, Signal::KILL);
    let server = data.ferrite(&options);
    assert_eq!(digest(&server), expected);
    assert!(data.path("logs.ferrite/log").is_dir());
    drop(server);
    // Where only one name is there, nobody has to say it.
    fs::remove_dir_all(data.path("logs.ferrite")).expect("the directory is ours");
    assert_eq!(
        digest(&data.ferrite(&["--appenddirname", "logs/"])),
        expected
    );
}
