//! Directives as typed, second half: from the command line.
//!
//! ```text
//!   ferrite-server [FILE | -] [--NAME WORD...]... [--NAME=WORD]... [-p PORT]... [-]
//!   ferrite-server --check-config FILE [--NAME WORD...]...
//!   ferrite-server --check-log DIR | --repair-log DIR
//!   ferrite-server --health [[FILE] [--NAME WORD...]...]
//! ```
//!
//! The flags are those of redis-server: `--NAME` and all words up to the next flag make one directive. The
//! first word belongs to its flag even if it begins with a dash: a script may pass on any password. The
//! number of words of a setting is not known here; only the letters of short flags are looked up.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use lexopt::{Arg, Parser};

use super::file::{Directive, Place, Problem, read_line};
use super::table::{Kind, Row, TABLE};

/// A command line, taken apart.
#[derive(Default)]
pub(super) struct Typed {
    pub(super) request: Option<Request>,
    pub(super) file: Option<PathBuf>,
    /// Whether the standard input is a configuration file, too.
    pub(super) reads_standard_input: bool,
    pub(super) directives: Vec<Directive>,
    pub(super) problems: Vec<Problem>,
}

/// A flag that asks for something else than a running server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Request {
    Help,
    Version,
    /// Prints the report of a start on the typed configuration.
    CheckConfig,
    CheckLog(PathBuf),
    RepairLog(PathBuf),
    /// Whether the server that was started with these arguments answers.
    Health,
}

/// Takes the arguments behind the program's name apart.
pub(super) fn read(args: impl Iterator<Item = OsString>) -> Typed {
    let mut parser = Parser::from_args(args);
    let mut typed = Typed::default();
    typed.take_file(&mut parser);
    loop {
        // The only error of `next` is an unused value, and every flag takes the value after `=`.
        match parser.next() {
            Ok(Some(Arg::Long("help") | Arg::Short('h'))) => {
                typed.request.get_or_insert(Request::Help);
            }
            Ok(Some(Arg::Long("version") | Arg::Short('v'))) => {
                typed.request.get_or_insert(Request::Version);
            }
            Ok(Some(Arg::Long("check-config"))) => typed.take_checked_file(&mut parser),
            Ok(Some(Arg::Long("health"))) => {
                typed.request.get_or_insert(Request::Health);
                typed.take_file(&mut parser);
            }
            Ok(Some(Arg::Long("check-log"))) => {
                typed.take_directory("check-log", Request::CheckLog, &mut parser);
            }
            Ok(Some(Arg::Long("repair-log"))) => {
                typed.take_directory("repair-log", Request::RepairLog, &mut parser);
            }
            Ok(Some(Arg::Long(name))) => {
                let name = name.to_owned();
                typed.take_long(name, &mut parser);
            }
            Ok(Some(Arg::Short(letter))) => typed.take_short(letter, &mut parser),
            Ok(Some(Arg::Value(value))) => typed.take_value(&value),
            Ok(None) => return typed,
            Err(error) => {
                typed.refuse("", &error.to_string());
                return typed;
            }
        }
    }
}

impl Typed {
    /// Whether nothing says what a server would be started with.
    pub(super) fn is_bare(&self) -> bool {
        self.file.is_none() && !self.reads_standard_input && self.directives.is_empty()
    }

    /// A configuration file is the first argument or none.
    fn take_file(&mut self, parser: &mut Parser) {
        if let Some(mut words) = parser.try_raw_args()
            && let Some(path) = words.next_if(|word| !begins_with(word, "-"))
        {
            self.file = Some(path.into());
        }
    }

    fn take_value(&mut self, value: &OsStr) {
        if value == "-" {
            self.reads_standard_input = true;
        } else {
            let wrong = "belongs to no flag; a configuration file has to come first";
            self.refuse(&value.to_string_lossy(), wrong);
        }
    }

    /// Takes the file that `--check-config` is about; `-` is the standard input.
    fn take_checked_file(&mut self, parser: &mut Parser) {
        match parser.value() {
            Ok(file) if file == "-" => self.reads_standard_input = true,
            Ok(file) if !file.is_empty() && self.file.is_none() => self.file = Some(file.into()),
            _ => return self.refuse("--check-config", "one configuration file has to follow"),
        }
        self.request.get_or_insert(Request::CheckConfig);
    }

    /// Takes the directory behind a flag that asks for something else than a server.
    fn take_directory(&mut self, name: &str, request: fn(PathBuf) -> Request, parser: &mut Parser) {
        match parser.value() {
            Ok(directory) if !directory.is_empty() => {
                self.request.get_or_insert(request(directory.into()));
            }
            _ => self.refuse(&format!("--{name}"), "the directory of a log has to follow"),
        }
    }

    fn take_long(&mut self, name: String, parser: &mut Parser) {
        let mut words: Vec<OsString> = parser.optional_value().into_iter().collect();
        if name.contains(char::is_whitespace) {
            return self.take_line(name, words.pop());
        }
        if words.is_empty()
            && let Some(mut rest) = parser.try_raw_args()
        {
            let ends_at_once =
                is_save(&name) && rest.peek().is_none_or(|word| begins_with(word, "--"));
            if ends_at_once {
                // An empty list of save points once was passed as no word at all, and some tools still do.
                words.push(OsString::new());
            } else {
                words.extend(rest.next());
                while let Some(word) = rest.next_if(|word| !is_flag(word)) {
                    words.push(word);
                }
            }
        }
        self.push(name, words);
    }

    /// Takes a flag that came with its words in one argument, as in `'--port 6379'`.
    fn take_line(&mut self, mut line: String, rest: Option<OsString>) {
        if let Some(rest) = rest {
            line.push('=');
            line.push_str(&rest.to_string_lossy());
        }
        match read_line(line.as_bytes(), Place::CommandLine) {
            Ok(directive) => self.directives.extend(directive),
            Err(problem) => self.problems.push(problem),
        }
    }

    fn take_short(&mut self, letter: char, parser: &mut Parser) {
        let Some(row) = TABLE.iter().find(|row| row.short == Some(letter)) else {
            let _ = parser.optional_value();
            return self.refuse(
                &format!("-{letter}"),
                "unknown flag; --help lists all of them",
            );
        };
        match parser.value() {
            Ok(word) => self.push(row.name.to_owned(), vec![in_short_unit(row, word)]),
            Err(_) => self.refuse(&format!("-{letter}"), "a value has to follow"),
        }
    }

    fn push(&mut self, name: String, words: Vec<OsString>) {
        let words: Result<Vec<String>, OsString> =
            words.into_iter().map(OsString::into_string).collect();
        match words {
            Ok(words) => self.directives.push(Directive {
                name,
                words,
                place: Place::CommandLine,
            }),
            Err(_) => self.refuse(&format!("--{name}"), "text must be valid UTF-8"),
        }
    }

    fn refuse(&mut self, argument: &str, wrong: &str) {
        self.problems.push(Problem {
            place: Place::CommandLine.to_string(),
            typed: argument.to_owned(),
            wrong: wrong.to_owned(),
        });
    }
}

fn begins_with(word: &OsStr, beginning: &str) -> bool {
    word.as_encoded_bytes().starts_with(beginning.as_bytes())
}

fn is_save(name: &str) -> bool {
    name.eq_ignore_ascii_case("save")
}

/// Whether a word ends the words of a flag. An address to bind to may begin with a dash as well, but then no
/// letter of a flag follows, except in an IPv6 address, which has colons.
fn is_flag(word: &OsStr) -> bool {
    match word.as_encoded_bytes() {
        b"-" | [b'-', b'-', ..] => true,
        [b'-', letter, rest @ ..] => {
            is_letter_of_flag(char::from(*letter)) && !rest.contains(&b':')
        }
        _ => false,
    }
}

fn is_letter_of_flag(letter: char) -> bool {
    matches!(letter, 'h' | 'v') || TABLE.iter().any(|row| row.short == Some(letter))
}

/// The word of a short flag: a size without a unit counts in megabytes there, as people type it.
fn in_short_unit(row: &Row, mut word: OsString) -> OsString {
    let bytes = word.as_encoded_bytes();
    if matches!(row.kind, Kind::Memory { .. } | Kind::MemoryOrShare(_))
        && !bytes.is_empty()
        && bytes.iter().all(u8::is_ascii_digit)
    {
        word.push("mb");
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn typed(args: &[&str]) -> Typed {
        read(args.iter().map(OsString::from))
    }

    /// Directives as lines of a file.
    fn lines(args: &[&str]) -> Vec<String> {
        let typed = typed(args);
        assert!(typed.problems.is_empty(), "{:?}", typed.problems);
        typed
            .directives
            .iter()
            .map(|directive| directive.to_string()[2..].to_owned())
            .collect()
    }

    #[test]
    fn flags_take_words_up_to_the_next_flag() {
        for (args, expected) in [
            (&[][..], &[][..]),
            (&["--port", "7000"], &["port 7000"]),
            (
                &["--port", "7000", "--timeout", "5"],
                &["port 7000", "timeout 5"],
            ),
            (&["--port"], &["port"]),
            (&["--port", "1", "2"], &["port 1 2"]),
            (&["--PORT=7000", "--dir=/a=b"], &["PORT 7000", "dir /a=b"]),
            (&["--dir="], &["dir \"\""]),
            (&["--save", "", "--dir", "/"], &["save \"\"", "dir /"]),
            (&["--save", "--dir", "/"], &["save \"\"", "dir /"]),
            (&["--save"], &["save \"\""]),
            (
                &["--save", "1", "2", "--save", "3", "4"],
                &["save 1 2", "save 3 4"],
            ),
            (
                &["--port 7000", "--timeout", "5"],
                &["port 7000", "timeout 5"],
            ),
            (&["--unixsocket '/a=b c'"], &["unixsocket \"/a=b c\""]),
            (
                &["--bind", "127.0.0.1", "-::1", "--port", "1"],
                &["bind 127.0.0.1 -::1", "port 1"],
            ),
            (
                &["--bind", "-::1", "-dead::1", "*"],
                &["bind -::1 -dead::1 *"],
            ),
            (
                &["--bind", "127.0.0.1", "-p", "1"],
                &["bind 127.0.0.1", "port 1"],
            ),
            (
                &["--bind", "127.0.0.1", "-p1", "-d", "/"],
                &["bind 127.0.0.1", "port 1", "dir /"],
            ),
            (
                &["--slowlog-log-slower-than", "-1"],
                &["slowlog-log-slower-than -1"],
            ),
            (&["--nosuch", "--port", "1"], &["nosuch --port 1"]),
        ] {
            assert_eq!(lines(args), expected, "{args:?}");
        }
    }

    #[test]
    fn the_first_word_belongs_to_its_flag_whatever_it_is() {
        for word in ["--port", "-", "-p", "--", "--help"] {
            let typed = typed(&["--requirepass", word, "--port", "1"]);
            assert_eq!(typed.request, None);
            assert_eq!(typed.directives.len(), 2, "{word}");
            assert_eq!(typed.directives[0].words, [word]);
        }
    }

    #[test]
    fn letters_stand_for_flags() {
        for (args, expected) in [
            (&["-p", "7000"][..], &["port 7000"][..]),
            (&["-p7000", "-w", "2"], &["port 7000", "threads 2"]),
            (&["-m", "100"], &["maxmemory 100mb"]),
            (&["-m1gb", "-m", "0"], &["maxmemory 1gb", "maxmemory 0mb"]),
            (
                &["-d", "/tmp", "--maxmemory", "100"],
                &["dir /tmp", "maxmemory 100"],
            ),
        ] {
            assert_eq!(lines(args), expected, "{args:?}");
        }
    }

    #[test]
    fn a_file_comes_first_and_standard_input_anywhere() {
        let read = typed(&["a.conf", "--port", "1"]);
        assert_eq!(read.file, Some(PathBuf::from("a.conf")));
        assert!(!read.reads_standard_input);
        for args in [
            &["-"][..],
            &["-", "--port", "1"],
            &["--port", "1", "-"],
            &["--port", "1", "-", "--timeout", "2"],
        ] {
            let read = typed(args);
            assert!(read.reads_standard_input && read.file.is_none(), "{args:?}");
            assert!(read.problems.is_empty());
        }
        let read = typed(&["a.conf", "-", "-p1"]);
        assert!(read.reads_standard_input && read.file.is_some());
        assert_eq!(read.directives.len(), 1);
    }

    #[test]
    fn help_and_version_are_asked_for() {
        for (args, request) in [
            (&["--help"][..], Some(Request::Help)),
            (&["-h"], Some(Request::Help)),
            (&["--version"], Some(Request::Version)),
            (&["-v"], Some(Request::Version)),
            (&["-p", "1", "-v", "-h"], Some(Request::Version)),
            (&["--bind", "::1", "--help"], Some(Request::Help)),
            (&["--port", "1"], None),
            (&["--check-log", "d"], Some(Request::CheckLog("d".into()))),
            (&["--check-log=d"], Some(Request::CheckLog("d".into()))),
            (
                &["--repair-log", "--d"],
                Some(Request::RepairLog("--d".into())),
            ),
        ] {
            assert_eq!(typed(args).request, request, "{args:?}");
        }
    }

    #[test]
    fn what_is_no_flag_is_reported() {
        for (args, expected) in [
            (&["-x", "1"][..], "'-x'\n  unknown flag"),
            (&["-p"], "'-p'\n  a value has to follow"),
            (
                &["--check-log"],
                "'--check-log'\n  the directory of a log has to follow",
            ),
            (
                &["--repair-log="],
                "'--repair-log'\n  the directory of a log has to follow",
            ),
            (&["-p", "1", "a.conf"], "'a.conf'\n  belongs to no flag"),
            (&["--", "a.conf"], "'a.conf'\n  belongs to no flag"),
            (&["--port 'a"], "'port 'a'\n  Unbalanced quotes"),
        ] {
            let problems = typed(args).problems;
            let text = problems[0].to_string();
            let expected = format!("command line: {expected}");
            assert!(text.starts_with(&expected), "{args:?}: {text}");
        }
        let bytes = OsString::from_vec(vec![0xff]);
        let read = read(["--dir".into(), bytes].into_iter());
        assert_eq!(
            read.problems[0].to_string(),
            "command line: '--dir'\n  text must be valid UTF-8"
        );
    }
}
