//! A typed line, taken apart into words: quotes, escapes, and where each word is.
//!
//! ```text
//!   plain        up to the next white space; a quote inside begins a quoted part
//!   "double"     \n \r \t \a \b \xHH are bytes, a backslash before anything else is dropped
//!   'single'     \' is a quote, everything else is itself
//! ```
//!
//! A closing quote ends its word, so white space or the end has to follow. What the words mean is not known
//! here.

/// A word of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// What it says, without quotes and escapes.
    pub(crate) bytes: Vec<u8>,
    /// Where it begins and ends in the line, quotes included.
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) ending: Ending,
    /// It has a quoted part.
    pub(crate) quoted: bool,
}

/// How a word ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should.
    Proper,
    /// The line ends before its quote does.
    Open,
    /// Something follows its closing quote. The word reaches to the next white space.
    Stuck,
}

/// All words of a line, well formed or not.
pub(crate) fn scan(line: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&byte| is_blank(byte)) {
            at += 1;
        }
        if at >= line.len() {
            return words;
        }
        let word = scan_word(line, at);
        at = word.end;
        words.push(word);
    }
}

/// What the words of a line say. `None` if a quote is open or something follows a closing one.
pub(crate) fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let words = scan(line);
    if words.iter().any(|word| word.ending != Ending::Proper) {
        return None;
    }
    Some(words.into_iter().map(|word| word.bytes).collect())
}

/// What a text says that may be quoted. `None` if it is not exactly one word.
pub(crate) fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let mut words = split(text)?;
    let word = words.pop()?;
    words.is_empty().then_some(word)
}

/// White space as C has it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn scan_word(line: &[u8], start: usize) -> Word {
    let mut word = Word {
        bytes: Vec::new(),
        start,
        end: start,
        ending: Ending::Proper,
        quoted: false,
    };
    while let Some(&byte) = line.get(word.end) {
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => break,
            b'"' | b'\'' => {
                word.quoted = true;
                word.end += 1;
                scan_quoted(line, byte, &mut word);
                break;
            }
            _ => {
                word.bytes.push(byte);
                word.end += 1;
            }
        }
    }
    word
}

/// Goes on behind an opening quote, to the end of the word.
fn scan_quoted(line: &[u8], quote: u8, word: &mut Word) {
    loop {
        let (byte, len) = match &line[word.end..] {
            [] => {
                word.ending = Ending::Open;
                return;
            }
            [byte, rest @ ..] if *byte == quote => {
                word.end += 1;
                let stuck = rest.iter().take_while(|&&byte| !is_blank(byte)).count();
                if stuck > 0 {
                    word.ending = Ending::Stuck;
                    word.end += stuck;
                }
                return;
            }
            [b'\\', b'\'', ..] if quote == b'\'' => (b'\'', 2),
            [b'\\', rest @ ..] if quote == b'"' => {
                let (byte, len) = escape(rest);
                (byte, 1 + len)
            }
            [byte, ..] => (*byte, 1),
        };
        word.bytes.push(byte);
        word.end += len;
    }
}

/// What stands behind a backslash, and how long it is.
fn escape(text: &[u8]) -> (u8, usize) {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match *text {
        [b'x', high, low, ..] => match (digit(high), digit(low)) {
            (Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
            _ => (b'x', 1),
        },
        [b'n', ..] => (b'\n', 1),
        [b'r', ..] => (b'\r', 1),
        [b't', ..] => (b'\t', 1),
        [b'a', ..] => (0x07, 1),
        [b'b', ..] => (0x08, 1),
        [byte, ..] => (byte, 1),
        [] => (b'\\', 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_taken_apart_as_people_know_it() {
        let cases: &[(&str, &[&[u8]])] = &[
            ("", &[]),
            (" \t\r\n", &[]),
            ("get k", &[b"get", b"k"]),
            ("  set\tk  v ", &[b"set", b"k", b"v"]),
            (r#"set k "a b""#, &[b"set", b"k", b"a b"]),
            (r#"set k """#, &[b"set", b"k", b""]),
            ("set k ''", &[b"set", b"k", b""]),
            (r#""\x00\xff\xZZ\x4""#, &[b"\x00\xffxZZx4"]),
            (r#""\n\r\t\a\b\\\"\q""#, &[b"\n\r\t\x07\x08\\\"q"]),
            (r"'a\'b\n\\ '", &[br"a'b\n\\ "]),
            (r"plain\n\x00", &[br"plain\n\x00"]),
            (r#"foo"bar baz""#, &[b"foobar baz"]),
            ("a'b c'", &[b"ab c"]),
            ("\"two\nlines\" x", &[b"two\nlines", b"x"]),
            ("a\x0bb", &[b"a\x0bb"]),
            ("größe", &["größe".as_bytes()]),
        ];
        for (line, expected) in cases {
            let words = split(line.as_bytes()).unwrap_or_else(|| panic!("{line:?} is well formed"));
            assert_eq!(words, *expected, "{line:?}");
        }
    }

    #[test]
    fn open_quotes_and_what_sticks_to_closed_ones_are_told_apart() {
        for (line, ending) in [
            ("get \"k", Ending::Open),
            ("get 'k", Ending::Open),
            ("get \"k\\\"", Ending::Open),
            ("get \"k\\", Ending::Open),
            ("get 'k\\'", Ending::Open),
            ("get \"k\"x", Ending::Stuck),
            ("get 'k'\"x\" y", Ending::Stuck),
        ] {
            assert_eq!(split(line.as_bytes()), None, "{line}");
            assert_eq!(scan(line.as_bytes())[1].ending, ending, "{line}");
        }
    }

    #[test]
    fn a_word_knows_where_it_stands() {
        let words = scan(br#" set  k"a b"x "#);
        let places: Vec<_> = words.iter().map(|word| (word.start, word.end)).collect();
        assert_eq!(places, [(1, 4), (6, 13)]);
        assert!(words[1].quoted && !words[0].quoted);
    }

    #[test]
    fn one_word_is_unquoted() {
        assert_eq!(unquote(br#""a\x00b""#), Some(b"a\x00b".to_vec()));
        assert_eq!(unquote(b"plain"), Some(b"plain".to_vec()));
        assert_eq!(unquote(b"two words"), None);
        assert_eq!(unquote(b"\"open"), None);
        assert_eq!(unquote(b""), None);
    }
}
