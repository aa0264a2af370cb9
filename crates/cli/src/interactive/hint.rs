//! What may follow, in gray behind the cursor.

use super::line::bar;
use crate::commands::{Catalog, progress};
use crate::request::is;
use crate::words::{Ending, scan};

/// The arguments that the line lacks. `None` if that is nothing, or if there is no telling.
pub(super) fn hint(line: &str, catalog: &Catalog) -> Option<String> {
    let mut words = scan(line.as_bytes());
    if words.iter().any(|word| word.ending == Ending::Stuck) || bar(&words).is_some() {
        return None;
    }
    let is_repetition = |word: &[u8]| word.iter().all(u8::is_ascii_digit);
    if words.len() > 1 && is_repetition(&words[0].bytes) {
        words.remove(0);
    }
    let words: Vec<Vec<u8>> = words.into_iter().map(|word| word.bytes).collect();
    let rest = match words.first()? {
        name if is(name, "help") && words.len() == 1 => "[COMMAND|@GROUP]".to_owned(),
        name if is(name, "peek") && words.len() == 1 => "key".to_owned(),
        name if is(name, "connect") && words.len() == 1 => "HOST PORT | URI".to_owned(),
        _ => {
            let (command, used) = catalog.find(&words)?;
            let expected = progress(&command.args, &words[used..]);
            if expected.is_lost {
                return None;
            }
            expected.rest
        }
    };
    if rest.is_empty() {
        return None;
    }
    let space = if line.ends_with(char::is_whitespace) {
        ""
    } else {
        " "
    };
    Some(format!("{space}{rest}"))
}

/// A hint that fits into so many columns: a long one would push the line about.
pub(super) fn shortened(hint: String, columns: usize) -> String {
    if hint.chars().count() <= columns {
        return hint;
    }
    let kept: String = hint.chars().take(columns.saturating_sub(1)).collect();
    if kept.is_empty() { kept } else { kept + "…" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_shown() {
        let catalog = Catalog::builtin();
        for (line, expected) in [
            ("", None),
            ("ge", None),
            ("get", Some(" key")),
            ("get ", Some("key")),
            ("get k", None),
            ("get k x", None),
            ("mset a", Some(" value [key value ...]")),
            ("5 incrby k", Some(" increment")),
            ("getex k ex", Some(" seconds")),
            ("setex \"k k\" ", Some("seconds value")),
            ("config get", Some(" parameter [parameter ...]")),
            ("get | x", None),
            ("peek", Some(" key")),
            ("nosuch", None),
        ] {
            assert_eq!(hint(line, &catalog).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn a_hint_has_its_limit() {
        let short = |columns| shortened(" key value".to_owned(), columns);
        assert_eq!(short(10), " key value");
        assert_eq!(short(9), " key val…");
        assert_eq!(short(2), " …");
        assert_eq!((short(1), short(0)), (String::new(), String::new()));
    }
}
