//! The words of a line of the manifest, or of the first line of a library: white space separates them, and
//! one with white space is between quotes.
//!
//! Between double quotes a backslash escapes `n r t a b`, `xHH` and any other byte, between single quotes the
//! quote alone. A closing quote ends its word.

/// The words of a line; `None` if its quotes do not match.
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let (word, behind) = first(rest)?;
        words.push(word);
        rest = behind.trim_ascii_start();
    }
    Some(words)
}

/// The first word, and what is behind it.
fn first(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = line;
    while let Some((&byte, behind)) = rest.split_first() {
        match byte {
            b'"' | b'\'' => {
                let behind = quoted(behind, byte, &mut word)?;
                let ends = behind.first().is_none_or(u8::is_ascii_whitespace);
                return ends.then_some((word, behind));
            }
            byte if byte.is_ascii_whitespace() => break,
            byte => word.push(byte),
        }
        rest = behind;
    }
    Some((word, rest))
}

/// Takes what is up to the closing quote. Returns what is behind that.
fn quoted<'l>(mut rest: &'l [u8], quote: u8, word: &mut Vec<u8>) -> Option<&'l [u8]> {
    loop {
        rest = match (rest, quote) {
            ([b'\\', b'x', high, low, behind @ ..], b'"')
                if digit(*high).is_some() && digit(*low).is_some() =>
            {
                word.push(digit(*high)? << 4 | digit(*low)?);
                behind
            }
            ([b'\\', escaped, behind @ ..], b'"') => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                behind
            }
            ([b'\\', b'\'', behind @ ..], b'\'') => {
                word.push(b'\'');
                behind
            }
            ([byte, behind @ ..], _) if *byte == quote => return Some(behind),
            ([byte, behind @ ..], _) => {
                word.push(*byte);
                behind
            }
            ([], _) => return None,
        }
    }
}

/// The value of a hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_split_as_redis_splits_them() {
        for (line, words) in [
            (
                &b"file a.aof seq 1"[..],
                Some(vec![&b"file"[..], b"a.aof", b"seq", b"1"]),
            ),
            (b"  a\t b\r", Some(vec![b"a", b"b"])),
            (b"", Some(vec![])),
            (br#""a b" 'c d' e"#, Some(vec![b"a b", b"c d", b"e"])),
            (br#""\x41\n\"\q\x4""#, Some(vec![b"A\n\"qx4"])),
            (br"'a\'b\n'", Some(vec![br"a'b\n"])),
            (br#"a"b c""#, Some(vec![b"ab c"])),
            (br#""a"b"#, None),
            (br#""a"#, None),
            (br"'a", None),
            (br#""a\"#, None),
        ] {
            let expected = words.map(|words| words.into_iter().map(<[u8]>::to_vec).collect());
            assert_eq!(split(line), expected, "{}", line.escape_ascii());
        }
    }
}
