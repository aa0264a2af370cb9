//! The line of a configuration file: splitting it into words, and quoting a word so that it splits back.
//!
//! ```text
//!   requirepass  "two \"words\"\n"  'it\'s'   a#b        # no comment: this is another word
//!                 two "words"<LF>    it's     a#b
//! ```
//!
//! White space separates words. Between double quotes a backslash escapes `n r t a b`, `xHH` and itself;
//! between single quotes only the quote. A closing quote ends its word, so it must be followed by white
//! space. The meaning of a line, and comments, are not here.

use std::iter::Peekable;

/// A quote that is never closed, or closed in the middle of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UnbalancedQuotes;

/// The words of a line.
///
/// # Errors
/// The quotes don't match.
pub(super) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
    let mut bytes = line.iter().copied().peekable();
    let mut words = Vec::new();
    loop {
        while bytes.next_if(|&byte| is_space(byte)).is_some() {}
        if bytes.peek().is_none() {
            return Ok(words);
        }
        words.push(word(&mut bytes)?);
    }
}

/// The white space of C.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Takes a word, up to the white space behind it.
fn word(bytes: &mut Peekable<impl Iterator<Item = u8>>) -> Result<Vec<u8>, UnbalancedQuotes> {
    let mut word = Vec::new();
    while let Some(byte) = bytes.next_if(|&byte| !is_space(byte)) {
        match byte {
            b'"' | b'\'' => {
                quoted(bytes, byte, &mut word)?;
                return match bytes.peek() {
                    Some(&next) if !is_space(next) => Err(UnbalancedQuotes),
                    _ => Ok(word),
                };
            }
            _ => word.push(byte),
        }
    }
    Ok(word)
}

/// Takes what is between an opening quote and the closing one, and that too.
fn quoted(
    bytes: &mut Peekable<impl Iterator<Item = u8>>,
    quote: u8,
    word: &mut Vec<u8>,
) -> Result<(), UnbalancedQuotes> {
    loop {
        let byte = bytes.next().ok_or(UnbalancedQuotes)?;
        if byte == quote {
            return Ok(());
        }
        if byte != b'\\' {
            word.push(byte);
        } else if quote == b'"' {
            escaped(bytes, word)?;
        } else if bytes.next_if_eq(&quote).is_some() {
            word.push(quote);
        } else {
            word.push(byte);
        }
    }
}

/// Takes what follows a backslash between double quotes.
fn escaped(
    bytes: &mut Peekable<impl Iterator<Item = u8>>,
    word: &mut Vec<u8>,
) -> Result<(), UnbalancedQuotes> {
    let byte = match bytes.next().ok_or(UnbalancedQuotes)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        b'x' => return hexadecimal(bytes, word),
        other => other,
    };
    word.push(byte);
    Ok(())
}

/// Takes the two digits of `\xHH`. Where there are not two, the `x` stands for itself.
fn hexadecimal(
    bytes: &mut Peekable<impl Iterator<Item = u8>>,
    word: &mut Vec<u8>,
) -> Result<(), UnbalancedQuotes> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|digit| digit as u8);
    let Some(high) = bytes.peek().and_then(digit) else {
        word.push(b'x');
        return Ok(());
    };
    let first = bytes.next().ok_or(UnbalancedQuotes)?;
    match bytes.peek().and_then(digit) {
        Some(low) => {
            bytes.next();
            word.push(high << 4 | low);
        }
        None => word.extend([b'x', first]),
    }
    Ok(())
}

/// Writes a word so that [`split`] reads it back: as it is if it can be, else between double quotes.
pub(super) fn quote(word: &str) -> String {
    let is_plain =
        |byte: u8| !is_space(byte) && !byte.is_ascii_control() && !b"\"'\\".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    let mut quoted = String::from("\"");
    for letter in word.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if letter.is_ascii_control() => {
                quoted.push_str(&format!("\\x{:02x}", u32::from(letter)));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Vec<String>, UnbalancedQuotes> {
        let words = split(line.as_bytes())?;
        Ok(words
            .into_iter()
            .map(|word| String::from_utf8(word).expect("the test is UTF-8"))
            .collect())
    }

    #[test]
    fn words_are_separated_by_white_space() {
        for (line, expected) in [
            ("", &[][..]),
            (" \t ", &[]),
            ("port 6379", &["port", "6379"]),
            ("\tport\u{b}\u{c}  6379 \r", &["port", "6379"]),
            ("dir /a#b # c", &["dir", "/a#b", "#", "c"]),
            (r"a\b \n", &[r"a\b", r"\n"]),
        ] {
            assert_eq!(words(line).expect("it has no quotes"), expected, "{line:?}");
        }
    }

    #[test]
    fn quotes_hold_words_together() {
        for (line, expected) in [
            (r#"save """#, &["save", ""][..]),
            ("''", &[""]),
            (r#""a b" 'c "d'"#, &["a b", "c \"d"]),
            (r#""\"\\\n\r\t\a\b\q""#, &["\"\\\n\r\t\u{7}\u{8}q"]),
            (r#""\x41\x7a\xg1\x4" "\x4g""#, &["Azxg1x4", "x4g"]),
            (r"'it\'s' 'a\nb\\ '", &["it's", r"a\nb\\ "]),
            // A quote may begin inside of a word.
            (r#"a"b c""#, &["ab c"]),
        ] {
            assert_eq!(words(line).expect("they match"), expected, "{line:?}");
        }
    }

    #[test]
    fn quotes_have_to_match_and_end_the_word() {
        for line in [
            r#"""#,
            "'",
            r#""a"#,
            "'a",
            r#""a\"#,
            r#""a\""#,
            r"'a\'",
            r#""a"b"#,
            "'a'b",
            r#""a""b""#,
            r#""\x"#,
            r#""\x4"#,
        ] {
            assert_eq!(words(line), Err(UnbalancedQuotes), "{line:?}");
        }
    }

    #[test]
    fn a_quoted_word_reads_back() {
        let mut samples: Vec<String> = (0..=0x17f)
            .filter_map(char::from_u32)
            .map(String::from)
            .collect();
        samples.extend(
            [
                "",
                "a b",
                "it's",
                "\\x41",
                "a\"",
                "\n\r\t\0\u{1b}",
                "größe 中",
            ]
            .map(String::from),
        );
        for word in samples {
            for word in [word.clone(), format!("x{word}y"), format!("{word}{word}")] {
                let quoted = quote(&word);
                assert!(!quoted.contains('\n'));
                assert_eq!(words(&quoted), Ok(vec![word.clone()]), "{quoted}");
                let pair = format!("  name {quoted}\t{quoted}");
                assert_eq!(words(&pair), Ok(vec!["name".into(), word.clone(), word]));
            }
        }
        assert_eq!(quote("6379"), "6379");
        assert_eq!(quote(""), "\"\"");
        assert_eq!(quote("a b"), "\"a b\"");
    }
}
