//! Whole files, files that are cut at every byte, files that are damaged, and no files at all.

use std::io::{self, Read};

use crate::{Listed, Manifest, Problem, Reader};

const LIMIT: u64 = 1 << 20;

/// A file that comes a few bytes at a time.
struct Slow<'f>(&'f [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(self.1);
        self.0.read(&mut buffer[..most])
    }
}

/// A command as a file has it.
fn encode(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).bytes());
        bytes.extend(*argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// Where a command begins, and its arguments.
type Command = (u64, Vec<Vec<u8>>);

/// The commands, and how the reading ended.
fn read(mut reader: Reader<impl Read>) -> (Vec<Command>, Result<u64, crate::Error>) {
    let mut commands = Vec::new();
    loop {
        match reader.advance() {
            Ok(Some(at)) => {
                let of = |span: &resp::request::Span| span.of(reader.bytes()).to_vec();
                commands.push((at, reader.spans().iter().map(of).collect()));
            }
            Ok(None) => return (commands, Ok(reader.offset())),
            Err(error) => return (commands, Err(error)),
        }
    }
}

/// A file of some commands, and where each of them ends.
fn file() -> (Vec<u8>, Vec<usize>) {
    let long = vec![b'x'; 3000];
    let commands: [&[&[u8]]; 5] = [
        &[b"SELECT", b"0"],
        &[b"SET", b"key", b"*1\r\n$1\r\n"],
        &[b"APPEND", b"", b""],
        &[b"SET", b"long", &long],
        &[b"DEL", b"key"],
    ];
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for (at, command) in commands.into_iter().enumerate() {
        if at == 2 {
            bytes.extend(b"#TS:1700000000\r\n# and more\n");
        }
        bytes.extend(encode(command));
        ends.push(bytes.len());
    }
    (bytes, ends)
}

#[test]
fn commands_are_read_however_they_come() {
    let (bytes, ends) = file();
    for piece in [1, 2, 7, 1000, 1 << 20] {
        let (commands, end) = read(Reader::new(Slow(&bytes, piece), 0, LIMIT));
        assert_eq!(end.expect("it is whole"), bytes.len() as u64);
        assert_eq!(commands.len(), ends.len());
        assert_eq!(commands[1].0, ends[0] as u64);
        assert_eq!(commands[1].1[2], b"*1\r\n$1\r\n");
        assert_eq!(commands[3].1[2].len(), 3000);
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_torn_where_its_last_command_begins() {
    let (bytes, ends) = file();
    for cut in 0..bytes.len() {
        let (commands, end) = read(Reader::new(Slow(&bytes[..cut], 50), 100, LIMIT));
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(commands.len(), whole, "cut at {cut}");
        let last = ends[..whole].last().copied().unwrap_or(0);
        let is_note = bytes[last..cut].first().is_none_or(|&byte| byte == b'#');
        match end {
            Ok(_) => assert!(is_note && !bytes[last..cut].contains(&b'*'), "cut at {cut}"),
            Err(error) => {
                assert!(error.is_torn(), "cut at {cut}: {error}");
                assert_eq!(error.offset, 100 + cut as u64);
                let begins = bytes[last..cut].iter().position(|&byte| byte == b'*');
                let begins = begins.expect("it is a command that is torn");
                assert_eq!(error.command, (100 + last + begins) as u64, "cut at {cut}");
            }
        }
    }
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (bytes, offset, said) in [
        (
            &b"x"[..],
            0,
            "the '*' of a command should be here, but it is 'x'",
        ),
        (
            b"\r\n",
            0,
            "the '*' of a command should be here, but it is '\\r'",
        ),
        (
            b"\0\0",
            0,
            "the '*' of a command should be here, but it is '\\x00'",
        ),
        (
            b"*0\r\n",
            1,
            "the number of arguments should be here, but it is '0'",
        ),
        (b"*-1\r\n", 1, "a digit should be here, but it is '-'"),
        (b"*1\n", 2, "a digit should be here, but it is '\\n'"),
        (
            b"*1\rx",
            3,
            "the end of the line should be here, but it is 'x'",
        ),
        (
            b"*1\r\n*",
            4,
            "the '$' of an argument should be here, but it is '*'",
        ),
        (
            b"*1\r\n$2\r\nabc\r\n",
            10,
            "the end of an argument should be here, but it is 'c'",
        ),
        (
            b"*1\r\n$2\r\nab\r\r",
            11,
            "the end of an argument should be here, but it is '\\r'",
        ),
        (
            b"*99999999999999999999\r\n",
            19,
            "the count or the length is too large a number",
        ),
        (
            b"*1\r\n$1048576\r\n",
            14,
            "the command is longer than 1048576 bytes",
        ),
    ] {
        let (_, end) = read(Reader::new(bytes, 7, LIMIT));
        let error = end.expect_err("it is wrong");
        let expected = format!("at byte {}: {said}", offset + 7);
        assert_eq!(error.to_string(), expected, "{}", bytes.escape_ascii());
        assert!(!error.is_torn());
    }
}

#[test]
fn a_length_that_is_only_claimed_takes_no_memory() {
    let mut reader = Reader::new(&b"*1\r\n$4000000000\r\nabc"[..], 0, u64::MAX);
    assert!(reader.advance().expect_err("it is cut").is_torn());
    assert!(reader.take_bytes().capacity() < 1 << 20);
}

#[test]
fn what_is_taken_is_not_copied_and_what_follows_stays() {
    let long = vec![b'x'; 200_000];
    let bytes = [encode(&[b"SET", b"k", &long]), encode(&[b"DEL", b"k"])].concat();
    let mut reader = Reader::new(&bytes[..], 0, LIMIT);
    assert_eq!(reader.advance().expect("it is whole"), Some(0));
    let spans = reader.spans().to_vec();
    let taken = reader.take_bytes();
    assert_eq!(spans[2].of(&taken), long);
    assert_eq!(
        reader.advance().expect("it is whole"),
        Some(taken.len() as u64)
    );
    assert_eq!(reader.spans()[1].of(reader.bytes()), b"k");
    assert_eq!(reader.advance().expect("it is whole"), None);
    assert_eq!(reader.offset(), bytes.len() as u64);
}

/// Whatever is done to a file, what is read of it is read again the same way, and the place that is named is
/// in the file.
#[test]
fn damaged_files_are_read_as_far_as_they_are_right() {
    let (bytes, _) = file();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..4_000 {
        let mut bytes = bytes.clone();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] = b"*$\r\n0123456789#"[random.usize(..15)],
                2 => drop(bytes.drain(at..bytes.len().min(at + random.usize(..9)))),
                _ => bytes.insert(at, random.u8(..)),
            }
        }
        let (commands, end) = read(Reader::new(&bytes[..], 0, LIMIT));
        let until = match end {
            Ok(until) => until,
            Err(error) => {
                assert!(error.command <= error.offset && error.offset <= bytes.len() as u64);
                assert!(!matches!(error.problem, Problem::Io(_)));
                error.command
            }
        };
        let (again, end) = read(Reader::new(Slow(&bytes[..until as usize], 99), 0, LIMIT));
        assert_eq!(again, commands);
        assert_eq!(end.expect("it was right so far"), until);
    }
}

fn listed(name: &str, seq: u64) -> Listed {
    let name = name.as_bytes().to_vec();
    Listed { name, seq }
}

#[test]
fn a_manifest_lists_what_is_read() {
    let text = b"# a note\nfile a.2.base.rdb seq 2 type b\nfile a.1.incr.aof seq 1 type h\n\
        file a.3.incr.aof seq 3 type i\nfile \"a 4\\x2e\" SEQ 4 more words type i\n";
    let manifest = Manifest::parse(text).expect("it is one");
    assert_eq!(manifest.base, Some(listed("a.2.base.rdb", 2)));
    let increments = [listed("a.3.incr.aof", 3), listed("a 4.", 4)];
    assert_eq!(manifest.increments, increments);
    assert_eq!(manifest.files().count(), 3);
}

#[test]
fn a_manifest_that_is_wrong_is_refused_by_line() {
    let long = format!("file {} seq 1 type i\n", "x".repeat(1010));
    for (text, line) in [
        ("", 1),
        ("file a seq 1 type b", 1),
        ("#\n\n", 2),
        ("file a seq 1\n", 1),
        ("file a seq 1 type\n", 1),
        ("file a seq 0 type b\n", 1),
        ("file a seq -1 type b\n", 1),
        ("file a seq 1 type x\n", 1),
        ("file a/b seq 1 type b\n", 1),
        ("file .. seq 1 type b\n", 1),
        ("file \"\" seq 1 type b\n", 1),
        ("file \"a seq 1 type b\n", 1),
        ("file a seq 1 kind b\n", 1),
        ("file a seq 1 type b\nfile b seq 2 type b\n", 2),
        ("file a seq 2 type i\nfile b seq 2 type i\n", 2),
        (&long, 1),
    ] {
        let error = Manifest::parse(text.as_bytes()).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

#[test]
fn no_text_makes_a_manifest_that_points_elsewhere() {
    let whole =
        b"file a.1.base.rdb seq 1 type b\nfile \"b\\n\" seq 1 type i\nfile c seq 2 type i\n";
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..20_000 {
        let mut text = whole.to_vec();
        for _ in 0..random.usize(..4) {
            let at = random.usize(..text.len());
            text[at] = random.u8(..);
        }
        text.truncate(random.usize(..=text.len()));
        if let Ok(manifest) = Manifest::parse(&text) {
            assert!(manifest.files().all(|file| !file.name.contains(&b'/')));
            assert!(
                manifest
                    .increments
                    .is_sorted_by(|one, two| one.seq < two.seq)
            );
        }
    }
}
