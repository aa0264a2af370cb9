//! Command lines into arguments: the quoting of redis-cli, plus repetition and variables.
//!
//! - Words are separated by blanks. `"..."` knows `\n \r \t \a \b \xHH` and takes any other escaped byte as
//!   itself; `'...'` knows only `\'`. A closing quote ends the word.
//! - `"x"*1000` is the quoted text a thousand times.
//! - `${name}` is the value of a variable, `${name+5}` and `${name-5}` do arithmetic on it. Substitution
//!   happens when the command is sent, so that `${now}` is the time of sending.
//!
//! Replies use the same strings, so their escapes are decoded here too.

/// One argument before variables are substituted.
pub(crate) type Word = Vec<u8>;

/// Splits a command line.
///
/// # Errors
/// Says which quote or escape is wrong.
pub(crate) fn split_words(line: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (word, after) = first_word(rest)?;
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

/// Splits a line at its first bare word `->`, which ends a request and begins its reply.
///
/// # Errors
/// Says which quote or escape before it is wrong.
pub(crate) fn split_reply(line: &str) -> Result<(&str, Option<&str>), String> {
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (_, after) = first_word(rest)?;
        if &rest[..rest.len() - after.len()] == "->" {
            return Ok((&line[..line.len() - rest.len()], Some(after)));
        }
        rest = after.trim_start();
    }
    Ok((line, None))
}

/// The word that `text` begins with, and what follows it.
fn first_word(text: &str) -> Result<(Word, &str), String> {
    let (word, after) = match text.chars().next() {
        Some('"') => double_quoted(text)?,
        Some('\'') => single_quoted(text)?,
        _ => {
            let end = text.find(char::is_whitespace).unwrap_or(text.len());
            (text.as_bytes()[..end].to_vec(), &text[end..])
        }
    };
    if !after.is_empty() && !after.starts_with(char::is_whitespace) {
        return Err(format!("no blank behind the closing quote: {after}"));
    }
    Ok((word, after))
}

/// Decodes the double-quoted string that `text` begins with, repetition included; returns the bytes and the
/// rest.
///
/// # Errors
/// The quote is not closed or an escape is wrong.
pub(crate) fn double_quoted(text: &str) -> Result<(Vec<u8>, &str), String> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 1;
    loop {
        match bytes.get(at) {
            None => return Err(format!("a quote is not closed: {text}")),
            Some(b'"') => break,
            Some(b'\\') => {
                let (byte, length) =
                    escape(&bytes[at + 1..]).ok_or_else(|| format!("a broken escape: {text}"))?;
                out.push(byte);
                at += 1 + length;
            }
            Some(&byte) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    repeated(out, &text[at + 1..])
}

fn escape(bytes: &[u8]) -> Option<(u8, usize)> {
    match bytes {
        [b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            let digits = [*high, *low];
            let digits = std::str::from_utf8(&digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, 3))
        }
        [b'n', ..] => Some((b'\n', 1)),
        [b'r', ..] => Some((b'\r', 1)),
        [b't', ..] => Some((b'\t', 1)),
        [b'a', ..] => Some((7, 1)),
        [b'b', ..] => Some((8, 1)),
        [byte, ..] => Some((*byte, 1)),
        [] => None,
    }
}

fn single_quoted(text: &str) -> Result<(Vec<u8>, &str), String> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 1;
    loop {
        match &bytes[at..] {
            [] => return Err(format!("a quote is not closed: {text}")),
            [b'\'', ..] => return repeated(out, &text[at + 1..]),
            [b'\\', b'\'', ..] => {
                out.push(b'\'');
                at += 2;
            }
            [byte, ..] => {
                out.push(*byte);
                at += 1;
            }
        }
    }
}

/// Applies a `*count` behind a closing quote.
fn repeated(bytes: Vec<u8>, rest: &str) -> Result<(Vec<u8>, &str), String> {
    let Some(count) = rest.strip_prefix('*') else {
        return Ok((bytes, rest));
    };
    let end = count
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(count.len());
    let times: usize = count[..end]
        .parse()
        .map_err(|_| format!("not a repetition: *{count}"))?;
    Ok((bytes.repeat(times), &count[end..]))
}

/// Replaces every `${...}` of `word` with what `lookup` gives for the name.
///
/// # Errors
/// An unknown name, or arithmetic on something that is not a number.
pub(crate) fn substitute(
    word: &[u8],
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut rest = word;
    while let Some(start) = rest.windows(2).position(|pair| pair == b"${") {
        let Some(length) = rest[start..].iter().position(|&byte| byte == b'}') else {
            break;
        };
        let inner = String::from_utf8_lossy(&rest[start + 2..start + length]).into_owned();
        out.extend_from_slice(&rest[..start]);
        out.extend_from_slice(evaluate(&inner, lookup)?.as_bytes());
        rest = &rest[start + length + 1..];
    }
    out.extend_from_slice(rest);
    Ok(out)
}

fn evaluate(expression: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let end = expression.find(['+', '-']).unwrap_or(expression.len());
    let (name, change) = expression.split_at(end);
    let value = lookup(name).ok_or_else(|| format!("no variable ${{{name}}}"))?;
    if change.is_empty() {
        return Ok(value);
    }
    let base: i64 = value
        .parse()
        .map_err(|_| format!("${{{name}}} is not a number: {value}"))?;
    let change: i64 = change
        .parse()
        .map_err(|_| format!("not a number: {change}"))?;
    Ok((base + change).to_string())
}

/// Writes bytes as a double-quoted string that [`double_quoted`] reads back.
pub(crate) fn quote(bytes: &[u8]) -> String {
    // A long run of one byte is what size tests use: nobody wants to read it in full.
    let is_one_byte = bytes.iter().all(|byte| Some(byte) == bytes.first());
    if bytes.len() > 80 && is_one_byte {
        return format!("{}*{}", quote(&bytes[..1]), bytes.len());
    }
    let mut out = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', byte as char]),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            b' '..=b'~' => out.push(byte as char),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let words = split_words(line).expect("a well-formed line");
        words
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect()
    }

    #[test]
    fn splits_as_redis_cli_does() {
        assert_eq!(words("  SET  k v "), ["SET", "k", "v"]);
        assert_eq!(
            words(r#"SET "a b" 'it\'s' "" "\"""#),
            ["SET", "a b", "it's", "", "\""]
        );
        assert_eq!(
            split_words(r#""\xff\x00\r\n\\""#),
            Ok(vec![vec![0xff, 0, 13, 10, b'\\']])
        );
        assert_eq!(words(r#""ab"*3 'c'*2"#), ["ababab", "cc"]);
    }

    #[test]
    fn refuses_broken_quotes() {
        assert!(split_words("\"open").is_err());
        assert!(split_words("'open").is_err());
        assert!(split_words("\"a\"b").is_err());
        assert!(split_words("\"a\\").is_err());
    }

    #[test]
    fn substitutes_variables() {
        let lookup = |name: &str| (name == "now").then(|| "100".to_owned());
        assert_eq!(
            substitute(b"a${now}b${now+5}c${now-1}", &lookup),
            Ok(b"a100b105c99".to_vec())
        );
        assert_eq!(
            substitute(b"plain $ {now} ${open", &lookup),
            Ok(b"plain $ {now} ${open".to_vec())
        );
        assert!(substitute(b"${other}", &lookup).is_err());
    }

    #[test]
    fn quoting_reads_back() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&b""[..], b"a\"b\\", &all, &[b'x'; 500], &[b'"'; 500]] {
            let quoted = quote(bytes);
            assert_eq!(double_quoted(&quoted), Ok((bytes.to_vec(), "")), "{quoted}");
        }
    }
}
