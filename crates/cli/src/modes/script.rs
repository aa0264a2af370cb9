//! `--eval`: a script from a file, with the keys and, behind a comma, the arguments of the command line.

use std::io::{self, IsTerminal};
use std::path::Path;

use crate::failure::{Failure, Result, reason};
use crate::flags::Options;
use crate::session::{Repeat, Session, Show};

pub(super) fn run(
    session: &mut Session,
    options: &Options,
    path: &Path,
    arguments: &[Vec<u8>],
) -> Result {
    let script = std::fs::read(path).map_err(|error| {
        let reason = reason(&error);
        Failure::Other(format!("Can't open file '{}': {reason}", path.display()))
    })?;
    let is_terminal = io::stdout().is_terminal();
    let style = options.style(is_terminal);
    let mut show = Show {
        out: &mut io::stdout().lock(),
        style: &style,
        pushes: options.shows_pushes.unwrap_or(is_terminal),
        ends_at_errors: options.ends_at_errors,
        has_colors: options.has_colors && is_terminal,
        seen: None,
    };
    let repeat = Repeat {
        count: options.repeat.unwrap_or(1),
        interval: options.interval,
    };
    session.run(&request(script, arguments), repeat, &mut show)
}

fn request(script: Vec<u8>, arguments: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let comma = arguments.iter().position(|word| word == b",");
    let keys = &arguments[..comma.unwrap_or(arguments.len())];
    let rest = comma.map_or(&[][..], |at| &arguments[at + 1..]);
    let mut request = vec![
        b"EVAL".to_vec(),
        script,
        keys.len().to_string().into_bytes(),
    ];
    request.extend(keys.iter().chain(rest).cloned());
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_parts_keys_and_arguments() {
        for (arguments, expected) in [
            ("", "EVAL s 0"),
            ("a b", "EVAL s 2 a b"),
            (",", "EVAL s 0"),
            ("a , b c", "EVAL s 1 a b c"),
            (", a , b", "EVAL s 0 a , b"),
        ] {
            let arguments: Vec<Vec<u8>> = arguments
                .split_whitespace()
                .map(|word| word.as_bytes().to_vec())
                .collect();
            let request = request(b"s".to_vec(), &arguments).join(&b' ');
            assert_eq!(String::from_utf8_lossy(&request), expected);
        }
    }
}
