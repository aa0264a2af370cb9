//! What cannot be taken over, and how that is said.

use super::*;

#[test]
fn what_cannot_be_taken_over_is_named() {
    let set = commands("SET a 1");
    let at = set.len();
    let of = |lines: &str| [&set[..], &commands(lines)].concat();
    for (file, said) in [
        (
            of("RPUSH list x"),
            format!(
                "at byte {at}, command RPUSH, key \"list\": this server does not have the command"
            ),
        ),
        (
            of("MULTI\nSET b 1\nHSET h f v\nEXEC"),
            format!(
                "at byte {}, command HSET, key \"h\"",
                at + commands("MULTI\nSET b 1").len()
            ),
        ),
        (
            of("EVAL return 0"),
            format!(
                "at byte {at}, command EVAL, key \"return\": this server does not have the command"
            ),
        ),
        (
            of("SELECT 16"),
            format!("at byte {at}, command SELECT: ERR DB index is out of range"),
        ),
        (
            of("INCR a b"),
            format!("at byte {at}, command INCR, key \"a\": ERR wrong number of arguments"),
        ),
        (
            of("SET b x\nINCR b"),
            format!(
                "at byte {}, command INCR, key \"b\": ERR value is not an integer",
                at + commands("SET b x").len()
            ),
        ),
        (
            of("MULTI\nSET b x\nINCR b\nEXEC"),
            format!(
                "at byte {}, command INCR, key \"b\": ERR value is not an integer",
                at + commands("MULTI\nSET b x").len()
            ),
        ),
        (
            of("GET a"),
            format!(
                "at byte {at}, command GET, key \"a\": no such command is in an append-only file"
            ),
        ),
        (
            of("SHUTDOWN"),
            format!("at byte {at}, command SHUTDOWN: no such command is in an append-only file"),
        ),
        (
            of("EXEC"),
            format!("at byte {at}, command EXEC: it is not where it may be in a transaction"),
        ),
        (
            of("MULTI\nMULTI\nEXEC"),
            format!(
                "at byte {}, command MULTI: it is not",
                at + commands("MULTI").len()
            ),
        ),
        (
            [&set[..], b"SET b 1\r\n"].concat(),
            format!("at byte {at}: the '*' of a command should be here, but it is 'S'"),
        ),
        (
            [&set[..], b"\0\0\0\0"].concat(),
            format!("at byte {at}: the '*' of a command should be here, but it is '\\x00'"),
        ),
        (
            [&set[..], b"*1\r\n$x"].concat(),
            format!("at byte {}: a digit should be here, but it is 'x'", at + 5),
        ),
    ] {
        for (data, name) in [
            (
                Data::with_files(&[('b', b""), ('i', &file)]),
                "./appendonlydir/appendonly.aof.2.i",
            ),
            (Data::of_redis_6(&file), "./appendonly.aof"),
        ] {
            let refused = data.refusal(&[]);
            let line = format!("{name} cannot be taken over: {said}");
            assert!(refused.contains(&line), "{line}\n{refused}");
            assert!(refused.contains("Nothing was changed"), "{refused}");
        }
    }
}

#[test]
fn other_types_in_the_base_are_named() {
    for preamble in ["yes", "no"] {
        let data = Data::new();
        let mut server = data.redis(&["--aof-use-rdb-preamble", preamble]);
        ask_all(&mut server.client(), "SET a 1\nRPUSH list x");
        rewrite(&mut server.client());
        end(&mut server, Signal::KILL);
        let said = data.refusal(&[]);
        let (name, what) = match preamble {
            "yes" => (
                "appendonly.aof.2.base.rdb",
                ", key \"list\": the value is a list",
            ),
            _ => (
                "appendonly.aof.2.base.aof",
                ", command RPUSH, key \"list\": this server",
            ),
        };
        let line = format!("./appendonlydir/{name} cannot be taken over: at byte ");
        assert!(said.contains(&line) && said.contains(what), "{said}");
        // When it is gone, the next start takes the directory over.
        let mut server = data.redis(&[]);
        server.client().ask("DEL list");
        rewrite(&mut server.client());
        end(&mut server, Signal::KILL);
        data.assert_taken_over(&[]);
    }
}

#[test]
fn a_directory_that_is_not_whole_is_refused() {
    let (set, torn) = (commands("SET a 1"), &commands("SET b 1")[..20]);
    let middle = Data::with_files(&[('b', &set), ('i', torn), ('i', &set)]);
    let said = middle.refusal(&[]);
    let line = "appendonly.aof.2.i cannot be taken over: it ends in the middle of a command or a \
        transaction, which begins at byte 0, and is not the last file";
    assert!(said.contains(line), "{said}");
    assert_eq!(middle.redis_digest(&[]), None);

    let lacking = Data::with_files(&[('b', &set), ('i', &set)]);
    fs::remove_file(lacking.path(REDIS).join("appendonly.aof.1.b")).expect("it was written");
    let said = lacking.refusal(&[]);
    assert!(said.contains("appendonly.aof.1.b: No such file"), "{said}");
    assert_eq!(lacking.redis_digest(&[]), None);

    let manifest = format!("{REDIS}/appendonly.aof.manifest");
    for (text, wrong) in [
        ("", "line 1: the manifest is empty"),
        (
            "file a seq 1 type b\nfile b seq 1 type",
            "line 2: it has no end",
        ),
        (
            "file ../dump.rdb seq 1 type b\n",
            "line 1: the file is not beside the manifest",
        ),
    ] {
        let data = Data::new();
        data.write(&manifest, text.as_bytes());
        let said = data.refusal(&[]);
        let line = format!("{manifest} cannot be taken over: {wrong}");
        assert!(said.contains(&line), "{said}");
        assert_eq!(data.redis_digest(&[]), None);
    }

    let without = Data::with_files(&[('b', &set)]);
    fs::rename(without.path(&manifest), without.path("kept")).expect("it was written");
    without.write(&format!("{REDIS}/appendonly.aof.1.base.aof"), &set);
    let said = without.refusal(&[]);
    assert!(
        said.contains("appendonlydir has files of redis-server, but no manifest"),
        "{said}"
    );
    let two = Data::with_files(&[('b', &set)]);
    fs::rename(
        two.path(&manifest),
        two.path(&format!("{REDIS}/one.manifest")),
    )
    .expect("it is ours");
    two.write(&format!("{REDIS}/two.manifest"), b"file a seq 1 type b\n");
    let said = two.refusal(&[]);
    assert!(
        said.contains("manifests of several append-only files"),
        "{said}"
    );
}

/// Cut, or with a byte changed, anywhere: what redis-server finds, or a refusal that names the place.
#[test]
fn a_damaged_file_is_refused_by_place() {
    let whole = commands("SET a 1\nMULTI\nINCR a\nSET b 2\nEXEC\nDEL a");
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..12 {
        let mut file = whole.clone();
        let at = random.usize(..file.len());
        match random.bool() {
            true => file[at] = random.u8(..),
            false => drop(file.drain(at..(at + 3).min(whole.len()))),
        }
        let data = Data::with_files(&[('b', &commands("SET z 1")), ('i', &file)]);
        random::assert_same_or_refused(&data, &[], &format!("damaged at byte {at}"));
    }
}
