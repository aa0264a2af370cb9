//! What `--help` and `--version` print, made from the table.

use super::table::{FLAGS, Flag, Section};
use crate::load::catalogue::TESTS;
use std::fmt::Write as _;

/// Where the text of a line ends, in columns.
const WIDTH: usize = 80;

/// Where the text of an option begins, in columns.
const INDENT: usize = 8;

/// The text of `--version`.
pub(crate) fn version() -> String {
    format!("ferrite-bench {}", env!("CARGO_PKG_VERSION"))
}

/// The text of `--help`.
pub(crate) fn text() -> String {
    let mut text = String::from(
        "Usage: ferrite-bench [OPTIONS] [COMMAND ARGS...]\n\
         \n\
         Puts a load on a server that speaks the Redis protocol, and reports rates and\n\
         latencies. Without a command it runs the tests that redis-benchmark runs; in a\n\
         command, __rand_int__ is a random number and a word __key__ or __data__ a key\n\
         or value.\n",
    );
    for section in Section::ALL {
        let _ = write!(text, "\n{}\n", section.title());
        for flag in FLAGS.iter().filter(|flag| flag.section == section) {
            describe(flag, &mut text);
        }
    }
    text.push_str("\nTests\n\n");
    let names: Vec<_> = TESTS
        .iter()
        .filter(|test| test.is_default)
        .map(|test| test.names[0])
        .collect();
    wrap(&names.join(", "), &mut text);
    for test in TESTS.iter().filter(|test| !test.is_default) {
        let _ = write!(text, "\n  {}\n", test.names[0]);
        wrap(test.summary, &mut text);
    }
    text.push_str(EXAMPLES);
    text
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
    fn help_names_every_option_and_test_and_fits_a_terminal() {
        let text = text();
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
