//! Tests of the command line: what is set, what is refused, and where the command begins.

use super::*;
use crate::connection::Place;
use crate::flags::{Input, Mode};
use std::time::Duration;

fn parse_with(args: &[&str], environment: &[(&str, &str)]) -> Result<Request, String> {
    let variable = |name: &str| {
        let found = environment.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    };
    read(args.iter().map(OsString::from), variable)
}

fn options(args: &[&str]) -> (Options, Vec<String>) {
    match parse_with(args, &[]) {
        Ok(Request::Run {
            options, command, ..
        }) => {
            let text = |word: Vec<u8>| String::from_utf8(word).expect("text");
            (*options, command.into_iter().map(text).collect())
        }
        Ok(_) => panic!("{args:?}: asks for help or a version"),
        Err(error) => panic!("{args:?}: {error}"),
    }
}

fn error(args: &[&str]) -> String {
    match parse_with(args, &[]) {
        Ok(_) => panic!("{args:?} is accepted"),
        Err(error) => error,
    }
}

#[test]
fn nothing_is_fine() {
    let (options, command) = options(&[]);
    assert!(command.is_empty());
    assert_eq!(options.access.place.to_string(), "127.0.0.1:6379");
    assert_eq!(options.mode, Mode::Commands);
    assert_eq!(
        (options.repeat, options.format, options.access.protocol),
        (None, None, None)
    );
}

#[test]
fn flags_end_where_the_command_begins() {
    let (options, command) = options(&["-h", "::1", "-p", "7", "-n", "3", "incrby", "-k", "-1"]);
    assert_eq!(options.access.place.to_string(), "[::1]:7");
    assert_eq!(options.access.database, 3);
    assert_eq!(command, ["incrby", "-k", "-1"]);
}

#[test]
fn a_word_belongs_to_its_flag_whatever_it_looks_like() {
    let (options, command) = options(&["-a", "-h", "-D", "", "-d", "--raw", "-r", "-1", "ping"]);
    assert_eq!(options.access.password.as_deref(), Some(&b"-h"[..]));
    assert_eq!(options.reply_delimiter, b"");
    assert_eq!(options.element_delimiter, b"--raw");
    assert_eq!(options.repeat, Some(-1));
    assert_eq!((options.format, command), (None, vec!["ping".to_owned()]));
}

#[test]
fn every_kind_of_value_is_set() {
    let (options, _) = options(&[
        "-s",
        "/x",
        "-i",
        "0.25",
        "-t",
        "1.5",
        "-x",
        "-e",
        "--csv",
        "--show-pushes",
        "Yes",
        "--pipe-timeout",
        "0",
        "--top",
        "3",
        "--quoted-pattern",
        "\"a\\x00\"",
    ]);
    assert_eq!(options.access.place, Place::Socket("/x".into()));
    assert_eq!(options.interval, Duration::from_millis(250));
    assert_eq!(
        options.access.approach.timeout,
        Some(Duration::from_millis(1500))
    );
    assert_eq!(options.input, Input::LastArgument);
    assert!(options.ends_at_errors);
    assert_eq!(options.format, Some(Format::Csv));
    assert_eq!(options.shows_pushes, Some(true));
    assert_eq!(options.pipe_timeout, Duration::ZERO);
    assert_eq!(options.keys.top, 3);
    assert_eq!(options.keys.pattern.as_deref(), Some(&b"a\0"[..]));
}

#[test]
fn json_wants_types_unless_told_otherwise() {
    assert_eq!(
        options(&["--json"]).0.access.protocol,
        Some(Protocol::Resp3IfPossible)
    );
    assert_eq!(
        options(&["--json", "-2"]).0.access.protocol,
        Some(Protocol::Resp2)
    );
    assert_eq!(
        options(&["-3", "--quoted-json"]).0.access.protocol,
        Some(Protocol::Resp3)
    );
}

#[test]
fn modes_exclude_each_other_except_latency_and_its_history() {
    let history = Mode::Latency { is_history: true };
    assert_eq!(options(&["--latency", "--latency-history"]).0.mode, history);
    assert_eq!(options(&["--latency-history", "--latency"]).0.mode, history);
    assert!(error(&["--stat", "--scan"]).contains("only one can run"));
    let (options, _) = options(&["--memkeys", "--memkeys-samples", "7"]);
    assert_eq!(
        (options.mode, options.keys.samples),
        (Mode::MemoryKeys, Some(7))
    );
}

#[test]
fn what_is_wrong_is_named() {
    for (args, wrong) in [
        (
            &["--nonsense"][..],
            "Unrecognized option or bad number of args for: '--nonsense'",
        ),
        (&["--jsno"], "(did you mean --json?)"),
        (
            &["-p"],
            "Unrecognized option or bad number of args for: '-p'",
        ),
        (&["-p", "x"], "-p: 'x' is no port"),
        (&["-p", "65536"], "-p: '65536' is no port"),
        (&["-n", "-1"], "-n: '-1' is no database number"),
        (&["-i", "-1"], "-i: -1 is no number of seconds"),
        (&["-u", "http://x"], "Invalid URI scheme"),
        (
            &["-x", "-X", "tag"],
            "Options -x and -X are mutually exclusive.",
        ),
        (&["-2", "-3"], "Options -2 and -3 are mutually exclusive."),
        (
            &["-c", "-s", "/x"],
            "Options -c and -s are mutually exclusive.",
        ),
        (&["--show-pushes", "maybe"], "neither yes nor no"),
        (&["--quoted-pattern", "\"x"], "Invalid quoted string"),
        (
            &["--config", "/nonexistent/file"],
            "/nonexistent/file: No such file",
        ),
        (&["--raw=yes"], "--raw"),
    ] {
        let error = error(args);
        assert!(error.contains(wrong), "{args:?}: {error}");
    }
}

#[test]
fn help_and_version_are_requests() {
    for args in [&["--help"][..], &["-h"], &["-p", "7", "--help", "get"]] {
        assert!(matches!(parse_with(args, &[]), Ok(Request::Help)));
    }
    for args in [&["--version"][..], &["-v"]] {
        assert!(matches!(parse_with(args, &[]), Ok(Request::Version)));
    }
}

#[test]
fn passwords_come_from_the_environment_too_and_flags_count_more() {
    let password = |args: &[&str], environment: &[(&str, &str)]| match parse_with(args, environment)
    {
        Ok(Request::Run {
            options,
            warns_of_password,
            ..
        }) => {
            let password = options
                .access
                .password
                .map(|bytes| String::from_utf8(bytes).expect("text"));
            (password, warns_of_password)
        }
        _ => panic!("{args:?} is refused"),
    };
    let both = [("REDISCLI_AUTH", "theirs"), ("FERRITECLI_AUTH", "ours")];
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(password(&[], &[]), (None, false));
    assert_eq!(password(&[], &both[..1]), (some("theirs"), false));
    assert_eq!(password(&[], &both), (some("ours"), false));
    assert_eq!(password(&["-a", "typed"], &both), (some("typed"), true));
    assert_eq!(
        password(&["-u", "redis://typed@"], &[]),
        (some("typed"), true)
    );
    assert_eq!(
        password(&["--pass", "typed", "--no-auth-warning"], &[]),
        (some("typed"), false)
    );
}

#[test]
fn a_file_sets_what_the_command_line_does_not() {
    let path = std::env::temp_dir().join(format!("ferrite-cli-flags-{}", std::process::id()));
    let given = |content: &str, more: &[&str]| {
        fs::write(&path, content).expect("the temporary directory is writable");
        let mut args = vec!["--config", path.to_str().expect("text")];
        args.extend(more);
        parse_with(&args, &[])
    };
    let content = "# a comment\n\nport 7000\npass \"two words\"\n  csv\n";
    let Ok(Request::Run {
        options,
        warns_of_password,
        ..
    }) = given(content, &["-p", "8"])
    else {
        panic!("the file is well formed");
    };
    assert_eq!(options.access.place.to_string(), "127.0.0.1:8");
    assert_eq!(options.access.password.as_deref(), Some(&b"two words"[..]));
    assert_eq!(options.format, Some(Format::Csv));
    assert!(!warns_of_password);
    for (content, wrong) in [
        ("port", ":1: 'port' takes one value"),
        ("\ncsv yes", ":2: 'csv' takes no value"),
        ("nonsense", ":1: there is no flag 'nonsense'"),
        ("config x", ":1: there is no flag 'config'"),
        ("pass \"x", ":1: a quote is not closed properly"),
        ("port x", ":1: port: 'x' is no port"),
    ] {
        let Err(error) = given(content, &[]) else {
            panic!("{content:?} is accepted");
        };
        assert!(error.contains(wrong), "{content:?}: {error}");
    }
    fs::remove_file(&path).expect("it is ours");
}
