//! The tokens of a Lua text, for [`super::proof`]. Of a text that Lua does not compile they may be any.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A name or a keyword.
    Name(&'t [u8]),
    /// A string; its bytes, if the text has them as they are.
    Text(Option<&'t [u8]>),
    Number,
    /// An operator or a bracket.
    Sign(&'t [u8]),
}

const SIGNS: [&[u8]; 6] = [b"...", b"..", b"==", b"~=", b"<=", b">="];

/// The tokens of a text.
pub(super) fn tokens(text: &[u8]) -> Vec<Token<'_>> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(&first) = rest.first() {
        let (token, len) = match first {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => (None, 1),
            b'-' if rest.starts_with(b"--") => (None, comment(rest)),
            b'\'' | b'"' => {
                let (text, len) = quoted(rest);
                (Some(Token::Text(text)), len)
            }
            b'[' if long(rest).is_some() => (Some(Token::Text(None)), long(rest).unwrap_or(1)),
            b'0'..=b'9' => (Some(Token::Number), number(rest)),
            b'.' if rest.get(1).is_some_and(u8::is_ascii_digit) => {
                (Some(Token::Number), number(rest))
            }
            _ if is_of_name(first) => {
                let len = span(rest, is_of_name);
                (Some(Token::Name(&rest[..len])), len)
            }
            _ => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let len = sign.map_or(1, <[u8]>::len);
                (Some(Token::Sign(&rest[..len])), len)
            }
        };
        tokens.extend(token);
        rest = &rest[len.min(rest.len())..];
    }
    tokens
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the beginning with bytes of a kind.
fn span(bytes: &[u8], is: fn(u8) -> bool) -> usize {
    let end = bytes.iter().position(|&byte| !is(byte));
    end.unwrap_or(bytes.len())
}

/// The length of a comment.
fn comment(rest: &[u8]) -> usize {
    match long(&rest[2..]) {
        Some(len) => 2 + len,
        None => span(rest, |byte| byte != b'\n' && byte != b'\r'),
    }
}

/// The length of a text in long brackets, if one begins here.
fn long(rest: &[u8]) -> Option<usize> {
    let level = span(rest.strip_prefix(b"[")?, |byte| byte == b'=');
    if rest.get(level + 1) != Some(&b'[') {
        return None;
    }
    let mut end = vec![b'='; level + 2];
    (end[0], end[level + 1]) = (b']', b']');
    let at = rest.windows(end.len()).position(|part| part == end);
    Some(at.map_or(rest.len(), |at| at + end.len()))
}

/// A text in quotes, and its length with them.
fn quoted(rest: &[u8]) -> (Option<&[u8]>, usize) {
    let (quote, mut at, mut is_plain) = (rest[0], 1, true);
    while let Some(&byte) = rest.get(at) {
        if byte == quote {
            return (is_plain.then(|| &rest[1..at]), at + 1);
        }
        is_plain &= byte != b'\\';
        at += 1 + usize::from(byte == b'\\');
    }
    (None, rest.len())
}

/// The length of a number, as Lua's reader finds it.
fn number(rest: &[u8]) -> usize {
    let mut len = span(rest, |byte| byte.is_ascii_digit() || byte == b'.');
    if matches!(rest.get(len), Some(b'e' | b'E')) {
        len += 1;
        len += usize::from(matches!(rest.get(len), Some(b'+' | b'-')));
    }
    len + span(&rest[len..], is_of_name)
}

#[cfg(test)]
mod tests {
    use super::Token::{Name, Number, Sign, Text};
    use super::*;

    #[test]
    fn texts_become_tokens_as_lua_reads_them() {
        let text =
            b"a.b = 'x\\'y'..\"z\" -- c\nif 0x1F>=.5e-3 then --[==[ ]] KEYS ]==] t[ [[k]] ]() end";
        let wanted = [
            Name(b"a"),
            Sign(b"."),
            Name(b"b"),
            Sign(b"="),
            Text(None),
            Sign(b".."),
            Text(Some(b"z")),
            Name(b"if"),
            Number,
            Sign(b">="),
            Number,
            Name(b"then"),
            Name(b"t"),
            Sign(b"["),
            Text(None),
            Sign(b"]"),
            Sign(b"("),
            Sign(b")"),
            Name(b"end"),
        ];
        assert_eq!(tokens(text), wanted);
        // Any bytes end.
        for odd in ["'", "[==[", "--[[", "\\", "\u{fe}", "1e", "...", "'\\"] {
            tokens(odd.as_bytes());
        }
    }
}
