//! A line taken apart: several commands where it was pasted as several lines, and the program behind a bar.
//!
//! ```text
//!   5 GET key | jq .
//!   ^ ^~~~~~~   ^~~~
//!   | command   program, as a shell takes it
//!   repetition (not taken apart here)
//! ```

use crate::words::{Ending, Word, scan};

/// One command of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'a> {
    /// The command's words. `None` if a quote is not closed properly.
    pub(super) words: Option<Vec<Vec<u8>>>,
    /// What a shell shall run with the reply.
    pub(super) program: Option<&'a str>,
}

/// The commands of a line, in order. Empty lines have none.
pub(super) fn parts(line: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (part, after) = next(rest);
        parts.extend(part);
        rest = after;
    }
    parts
}

/// Whether the line ends within a quote, so that there is more to come.
pub(super) fn is_open(line: &str) -> bool {
    parts(line).last().is_some_and(|part| part.words.is_none()) && {
        let words = scan(line.as_bytes());
        words.last().is_some_and(|word| word.ending == Ending::Open)
    }
}

/// Where the program begins in the text of a command, the bar included.
pub(super) fn bar(words: &[Word]) -> Option<usize> {
    let mut words = words.iter().skip(1);
    let bar = words.find(|word| !word.quoted && word.bytes.starts_with(b"|"))?;
    Some(bar.start)
}

/// The first command of a text, and what stands behind it.
fn next(text: &str) -> (Option<Part<'_>>, &str) {
    let words = scan(text.as_bytes());
    // Words of one command have no line break between them.
    let mut count = words.len();
    let mut end = text.len();
    for (at, pair) in words.windows(2).enumerate() {
        if let Some(len) = text[pair[0].end..pair[1].start].find('\n') {
            count = at + 1;
            end = pair[0].end + len + 1;
            break;
        }
    }
    let words = &words[..count];
    if words.is_empty() {
        return (None, "");
    }
    if let Some(at) = bar(words) {
        // To the end of the line, whatever the words of a command would be: a shell has rules of its own.
        let line_end = text[at..].find('\n').map_or(text.len(), |len| at + len);
        let command = scan(&text.as_bytes()[..at]);
        let part = Part {
            words: contents(&command),
            program: Some(text[at + 1..line_end].trim()),
        };
        return (Some(part), &text[line_end..]);
    }
    let part = Part {
        words: contents(words),
        program: None,
    };
    (Some(part), &text[end..])
}

fn contents(words: &[Word]) -> Option<Vec<Vec<u8>>> {
    let are_proper = words.iter().all(|word| word.ending == Ending::Proper);
    are_proper.then(|| words.iter().map(|word| word.bytes.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let show = |part: Part<'_>| {
            let words = part.words.map_or("?".to_owned(), |words| {
                String::from_utf8(words.join(&b',')).expect("text")
            });
            match part.program {
                Some(program) => format!("{words} => {program}"),
                None => words,
            }
        };
        let parts: Vec<String> = parts(line).into_iter().map(show).collect();
        parts.join("; ")
    }

    #[test]
    fn a_line_is_taken_apart() {
        for (line, expected) in [
            ("", ""),
            ("  \n ", ""),
            ("get k", "get,k"),
            ("get k | wc -c", "get,k => wc -c"),
            ("get k |wc", "get,k => wc"),
            (
                "5 get k | sed 's/\"/x/' | sort",
                "5,get,k => sed 's/\"/x/' | sort",
            ),
            ("set k '|' | x", "set,k,| => x"),
            ("set k a|b", "set,k,a|b"),
            ("| x", "|,x"),
            ("get k |", "get,k => "),
            ("set k \"a\nb\"", "set,k,a\nb"),
            ("get a\nget b\n", "get,a; get,b"),
            ("get a | x\n\n  get b", "get,a => x; get,b"),
            ("get \"a", "?"),
            ("get a\nget \"b", "get,a; ?"),
            ("get \"a\"b", "?"),
        ] {
            assert_eq!(shown(line), expected, "{line:?}");
        }
    }

    #[test]
    fn an_open_quote_is_told_from_a_wrong_one() {
        for (line, expected) in [
            ("get k", false),
            ("get \"k", true),
            ("get 'k\n", true),
            ("get \"k\"x", false),
            ("get k | grep \"", false),
            ("get \"k\"x \"", true),
        ] {
            assert_eq!(is_open(line), expected, "{line:?}");
        }
    }
}
