//! What cannot be taken over, and how that is said.

use super::*;

/// The file is refused wherever it is: as an increment, and as the one file there is.
fn assert_refused(file: &[u8], place: &str) {
    for (data, name) in [
        (
            Data::with_files(&[('b', b""), ('i', file)]),
            "./appendonlydir/appendonly.aof.2.i",
        ),
        (Data::of_redis_6(file), "./appendonly.aof"),
    ] {
        let refused = data.refusal(&[]);
        let line = format!("{name} cannot be taken over: {place}");
        assert!(refused.contains(&line), "{line}\n{refused}");
        assert!(refused.contains("Nothing was changed"), "{refused}");
    }
}

#[test]
fn what_cannot_be_taken_over_is_named() {
    let unknown = "this server does not have the command";
    let foreign = "no such command is in an append-only file";
    let misplaced = "it is not where it may be in a transaction";
    for (before, line, behind, reason) in [
        (
            "",
            "BF.ADD visits monday",
            "",
            format!("BF.ADD, key \"visits\": {unknown}"),
        ),
        (
            "MULTI\nSET b 1",
            "JSON.SET h $ 1",
            "EXEC",
            format!("JSON.SET, key \"h\": {unknown}"),
        ),
        (
            "",
            "FCALL script 0",
            "",
            "FCALL: scripts of an append-only file are not run yet".into(),
        ),
        (
            "",
            "SELECT 16",
            "",
            "SELECT: ERR DB index is out of range".into(),
        ),
        (
            "",
            "INCR a b",
            "",
            "INCR, key \"a\": ERR wrong number of arguments".into(),
        ),
        (
            "SET b x",
            "INCR b",
            "",
            "INCR, key \"b\": ERR value is not an integer".into(),
        ),
        (
            "MULTI\nSET b x",
            "INCR b",
            "EXEC",
            "INCR, key \"b\": ERR value is not".into(),
        ),
        ("", "GET a", "", format!("GET, key \"a\": {foreign}")),
        ("", "SHUTDOWN", "", format!("SHUTDOWN: {foreign}")),
        ("", "EXEC", "", format!("EXEC: {misplaced}")),
        ("MULTI", "MULTI", "EXEC", format!("MULTI: {misplaced}")),
    ] {
        let before = [commands("SET a 1"), commands(before)].concat();
        let file = [&before[..], &commands(line), &commands(behind)].concat();
        let at = before.len();
        assert_refused(&file, &format!("at byte {at}, command {reason}"));
    }
}

#[test]
fn what_is_no_command_is_named() {
    let before = commands("SET a 1");
    for (bytes, at, reason) in [
        (
            &b"SET b 1\r\n"[..],
            0,
            "the '*' of a command should be here, but it is 'S'",
        ),
        (
            b"\0\0\0\0",
            0,
            "the '*' of a command should be here, but it is '\\x00'",
        ),
        (b"*1\r\n$x", 5, "a digit should be here, but it is 'x'"),
        (
            b"*1\r\n$3\r\nDEL!!",
            11,
            "the end of an argument should be here, but it is '!'",
        ),
    ] {
        let place = format!("at byte {}: {reason}", before.len() + at);
        assert_refused(&[&before[..], bytes].concat(), &place);
    }
}

/// A file in which a place has other bytes of the same length.
fn changed(file: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let at = file.windows(from.len()).position(|bytes| bytes == from);
    let at = at.expect("the file has them");
    [&file[..at], to, &file[at + from.len()..]].concat()
}

#[test]
fn other_types_in_the_base_are_named() {
    for (preamble, name, from, to, reason) in [
        (
            "yes",
            "appendonly.aof.2.base.rdb",
            &b"\x00\x06events"[..],
            &b"\x07\x06events"[..],
            ", key \"events\": the file holds data of the module",
        ),
        (
            "no",
            "appendonly.aof.2.base.aof",
            b"SET\r\n$6\r\nevents",
            b"XYZ\r\n$6\r\nevents",
            ", command XYZ, key \"events\": this server",
        ),
    ] {
        let data = Data::new();
        let mut server = data.redis(&["--aof-use-rdb-preamble", preamble]);
        ask_all(&mut server.client(), "SET a 1\nSET events v");
        rewrite(&mut server.client());
        end(&mut server, Signal::KILL);
        let path = data.path(&format!("{REDIS}/{name}"));
        let file = fs::read(&path).expect("it was rewritten");
        fs::write(&path, changed(&file, from, to)).expect("the directory is ours");
        let said = data.refusal(&[]);
        let line = format!("./appendonlydir/{name} cannot be taken over: at byte ");
        assert!(said.contains(&line) && said.contains(reason), "{said}");
        // When it is gone, the next start takes the directory over.
        fs::write(&path, &file).expect("the directory is ours");
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
