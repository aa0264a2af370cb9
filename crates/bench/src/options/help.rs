//! What `--help` and `--version` print, made from the table.

use super::fit::fits;
use super::table::{FLAGS, Flag};
use super::typed::{Mode, Section};
use crate::load::catalogue::TESTS;
use crate::side::cells::CELLS;
use std::fmt::Write as _;

/// Where the text of a line ends, in columns.
const WIDTH: usize = 80;

/// Where the text of an option begins, in columns.
const INDENT: usize = 8;

/// The text of `--version`.
pub(crate) fn version() -> String {
    format!("ferrite-bench {}", env!("CARGO_PKG_VERSION"))
}

/// The text of a mode's `--help`.
pub(crate) fn text(mode: Mode) -> String {
    let mut text = String::from(match mode {
        Mode::Load => LOAD,
        Mode::SideBySide => SIDE_BY_SIDE,
        Mode::Floor => FLOOR,
    });
    for section in Section::ALL {
        // The load's help names all there are, and the other modes' options below their own title.
        let is_shown = |flag: &&Flag| {
            flag.section == section
                && (fits(mode, section, flag.names[0])
                    || (mode == Mode::Load && section == Section::Side))
        };
        let mut flags = FLAGS.iter().filter(is_shown).peekable();
        if flags.peek().is_some() {
            let _ = write!(text, "\n{}\n", section.title());
            flags.for_each(|flag| describe(flag, &mut text));
        }
    }
    match mode {
        Mode::Load => {
            tests(&mut text);
            text.push_str(EXAMPLES);
        }
        Mode::SideBySide => {
            cells(&mut text);
            text.push_str(SIDE_BY_SIDE_EXAMPLES);
        }
        Mode::Floor => {}
    }
    text
}

const LOAD: &str = "Usage: ferrite-bench [OPTIONS] [COMMAND ARGS...]
       ferrite-bench side-by-side [OPTIONS] [NAME=COMMAND...]
       ferrite-bench floor [OPTIONS]

Puts a load on a server that speaks the Redis protocol, and reports rates and
latencies. Without a command it runs the tests that redis-benchmark runs; in a
command, __rand_int__ is a random number and a word __key__ or __data__ a key
or value. side-by-side and floor have a --help of their own.
";

const SIDE_BY_SIDE: &str = "Usage: ferrite-bench side-by-side [OPTIONS] [NAME=COMMAND...]

Starts servers on this machine, puts the same loads on each of them in rounds,
and compares the medians: redis-server if it is installed, ferrite-server, a
server that does nothing (floor), and those of the command line, in whose
commands {port}, {dir} and {threads} are replaced.

Each load is a cell. -t, --ratio and --command make cells of their own instead
of those below; other options of a load replace what the cells say.
";

const FLOOR: &str = "Usage: ferrite-bench floor [OPTIONS]

A server that answers everything with the same reply without looking at it: what
a request costs where no work is done.
";

const SIDE_BY_SIDE_EXAMPLES: &str = "
Examples

  ferrite-bench side-by-side --cells set-p16,get-p16 --rounds 3
        Two of the loads, three times.

  ferrite-bench side-by-side -t set,get -r 100k -P 16 -n 1m --html report.html
        The tests of -t, a million requests each, and a page.

  ferrite-bench side-by-side other='valkey-server --port {port} --dir {dir}'
        With one more server.
";

fn tests(text: &mut String) {
    text.push_str("\nTests\n\n");
    let names: Vec<_> = TESTS
        .iter()
        .filter(|test| test.is_default)
        .map(|test| test.names[0])
        .collect();
    wrap(&names.join(", "), text);
    for test in TESTS.iter().filter(|test| !test.is_default) {
        let _ = write!(text, "\n  {}\n", test.names[0]);
        wrap(test.summary, text);
    }
}

fn cells(text: &mut String) {
    text.push_str("\nCells\n\n");
    for cell in CELLS {
        let _ = writeln!(text, "  {:<12} {}", cell.name, cell.title);
    }
}

pub(super) const EXAMPLES: &str = "
Examples

  ferrite-bench -t set,get -r 1m -P 16 -q
        The rates of SET and GET over a million keys, sixteen at a time.

  ferrite-bench --rate 50k --test-time 30 -r 1m --ratio 1:10 --key-pattern zipf
        What users would see at 50,000 requests a second.

  ferrite-bench -r 10k -n 1m lpush mylist __rand_int__
        Any command.
";

fn describe(flag: &Flag, text: &mut String) {
    text.push_str("\n  ");
    if let Some(letter) = flag.short {
        let _ = write!(text, "-{letter}, ");
    }
    let names: Vec<_> = flag.names.iter().map(|name| format!("--{name}")).collect();
    text.push_str(&names.join(", "));
    if !flag.value.is_empty() {
        let _ = write!(text, " {}", flag.value);
    }
    text.push('\n');
    wrap(flag.help, text);
}

/// Adds words in indented lines that end in time.
fn wrap(words: &str, text: &mut String) {
    let mut column = 0;
    for word in words.split_whitespace() {
        if column == 0 || column + 1 + word.len() > WIDTH {
            let line_break = if column == 0 { "" } else { "\n" };
            let _ = write!(text, "{line_break}{:INDENT$}{word}", "");
            column = INDENT + word.len();
        } else {
            let _ = write!(text, " {word}");
            column += 1 + word.len();
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_lists_its_own_options() {
        let text = text(Mode::SideBySide);
        for name in [
            "--tests",
            "--requests",
            "--keyspace",
            "--html",
            "--cells",
            "set-p1 ",
        ] {
            assert!(text.contains(name), "{name}");
        }
        for name in ["--verify", "--host", "--find-rate", "--reply"] {
            assert!(!text.contains(name), "{name}");
        }
        let floor = super::text(Mode::Floor);
        assert!(floor.contains("--reply") && !floor.contains("--cells"));
        for line in text.lines().chain(floor.lines()) {
            assert!(
                line.chars().count() <= WIDTH && line == line.trim_end(),
                "{line}"
            );
        }
    }

    #[test]
    fn help_names_every_option_and_test_and_fits_a_terminal() {
        let text = text(Mode::Load);
        for flag in FLAGS {
            for name in flag.names {
                assert!(text.contains(&format!("--{name}")), "{name}");
            }
        }
        for test in TESTS {
            assert!(text.contains(test.names[0]), "{}", test.names[0]);
        }
        for line in text.lines() {
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert_eq!(line, line.trim_end());
        }
        assert!(!text.contains("\n\n\n"));
    }
}
