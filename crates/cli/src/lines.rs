//! Commands from lines of standard input, where nobody sits at a prompt.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::commands::Catalog;
use crate::dispatch::dispatch;
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::session::{Repeat, Session, Show};
use crate::words;

/// Runs every line. What goes wrong is told and does not end the rest, except with `-e`. Error replies and
/// lines that are no commands (an open quote) are no failure without `-e`, as in redis-cli.
///
/// # Errors
/// A line got no reply; all others were sent. With `-e`, also an error reply, or a line that is no command.
pub(crate) fn run(session: &mut Session, options: &Options) -> Result {
    let is_terminal = io::stdout().is_terminal();
    let style = options.style(is_terminal);
    let mut input = io::stdin().lock();
    let mut out = io::stdout().lock();
    let mut line = Vec::new();
    let mut catalog = Catalog::builtin();
    let mut result = Ok(());
    loop {
        line.clear();
        let count = input
            .read_until(b'\n', &mut line)
            .map_err(|error| Failure::Other(format!("Reading from standard input: {error}")))?;
        if count == 0 {
            return result;
        }
        let Some(words) = words::split(&line) else {
            // To standard output, where redis-cli says it too.
            writeln!(out, "Invalid argument(s)")?;
            out.flush()?;
            if options.ends_at_errors {
                return Err(Failure::Told);
            }
            continue;
        };
        let (repeat, words) = match repetition(&words) {
            Ok(found) => found,
            Err(wrong) => {
                writeln!(out, "{wrong}")?;
                if options.ends_at_errors {
                    return Err(Failure::Told);
                }
                continue;
            }
        };
        let [name, ..] = words else {
            continue;
        };
        if name.eq_ignore_ascii_case(b"quit") || name.eq_ignore_ascii_case(b"exit") {
            return result;
        }
        let mut show = Show {
            out: &mut out,
            style: &style,
            pushes: options.shows_pushes.unwrap_or(is_terminal),
            ends_at_errors: options.ends_at_errors,
            has_colors: options.has_colors && is_terminal,
            seen: None,
        };
        let repeat = Repeat {
            count: repeat,
            interval: options.interval,
        };
        match dispatch(session, &mut catalog, words, repeat, &mut show) {
            Ok(()) => {}
            Err(failure) if options.ends_at_errors => return Err(failure),
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => {
                if !matches!(failure, Failure::Told) {
                    eprintln!("{failure}");
                }
                result = Err(Failure::Told);
            }
        }
    }
}

/// Splits `5 INCR x` into the number and the command. One word is a command even if it is a number.
pub(crate) fn repetition(
    words: &[Vec<u8>],
) -> std::result::Result<(i64, &[Vec<u8>]), &'static str> {
    const INVALID: &str = "Invalid ferrite-cli repeat command option value.";
    let [first, rest @ ..] = words else {
        return Ok((1, words));
    };
    let text = std::str::from_utf8(first).unwrap_or_default();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if rest.is_empty() || !is_number {
        return Ok((1, words));
    }
    match text.parse() {
        Ok(count @ 1..) => Ok((count, rest)),
        _ => Err(INVALID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_front_repeats_the_command() {
        let words = |line: &str| words::split(line.as_bytes()).expect("well formed");
        for (line, expected) in [
            ("5 incr x", Some((5, 2))),
            ("+2 ping", Some((2, 1))),
            ("incr x", Some((1, 2))),
            ("5", Some((1, 1))),
            ("5x ping", Some((1, 2))),
            ("\"\" ping", Some((1, 2))),
            ("0 ping", None),
            ("-1 ping", None),
            ("99999999999999999999 ping", None),
        ] {
            let words = words(line);
            let found = repetition(&words).ok();
            let found = found.map(|(count, rest)| (count, rest.len()));
            assert_eq!(found, expected, "{line}");
        }
    }
}
