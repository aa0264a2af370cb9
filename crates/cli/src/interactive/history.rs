//! Lines of earlier days, in a file that only their owner can read. Lines with secrets are in neither.

use std::path::PathBuf;

use crate::request::secret_words;
use crate::words::scan;

/// Where the lines are kept: `FERRITECLI_HISTFILE` or `REDISCLI_HISTFILE`, else `~/.ferritecli_history`.
/// `None` if they are not to be kept.
pub(super) fn path() -> Option<PathBuf> {
    let variables = ["FERRITECLI_HISTFILE", "REDISCLI_HISTFILE"];
    home_file(&variables, ".ferritecli_history")
}

/// A file of the person's: what a variable names, or one in their home. `/dev/null` means that there is none.
pub(super) fn home_file(variables: &[&str], name: &str) -> Option<PathBuf> {
    let named = variables.iter().find_map(|variable| {
        let value = std::env::var_os(variable)?;
        (!value.is_empty()).then(|| PathBuf::from(value))
    });
    let path = match named {
        Some(path) => path,
        None => PathBuf::from(std::env::var_os("HOME").filter(|home| !home.is_empty())?).join(name),
    };
    (path.as_os_str() != "/dev/null").then_some(path)
}

/// Whether a line has something that nobody else should see: also where a quote is open, or where it is one
/// of several commands.
pub(super) fn is_secret(line: &str) -> bool {
    line.split('\n').any(|line| {
        let words: Vec<Vec<u8>> = scan(line.as_bytes())
            .into_iter()
            .map(|word| word.bytes)
            .collect();
        let is_number = |word: &Vec<u8>| word.iter().all(u8::is_ascii_digit);
        let command = match words.split_first() {
            Some((first, rest)) if is_number(first) => rest,
            _ => &words[..],
        };
        !secret_words(command).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_secrets_are_told_from_others() {
        for (line, expected) in [
            ("get k", false),
            ("auth", false),
            ("auth p", true),
            ("AUTH \"p", true),
            ("auth 'p'x", true),
            ("5 auth p", true),
            ("get k\nauth p", true),
            ("acl setuser u >p", true),
            ("acl list", false),
            ("config set port 1", false),
            ("config set requirepass p", true),
            ("hello 3 auth u p", true),
            ("set auth p", false),
            ("", false),
        ] {
            assert_eq!(is_secret(line), expected, "{line:?}");
        }
    }
}
