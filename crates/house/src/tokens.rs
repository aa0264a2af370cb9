//! Rust source as tokens: comments are left out, literals are one token each.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    /// Punctuation: one character, or `::`, `->`, `=>`.
    Sign,
    /// A string, a character or a number.
    Literal,
    /// `'a`.
    Lifetime,
}

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// What it is.
    pub kind: Kind,
    /// As it is written. A raw identifier is without its `r#`.
    pub text: &'a str,
    /// From 1.
    pub line: usize,
}

impl Token<'_> {
    /// Whether this is the sign.
    pub fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Whether this is the keyword.
    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }
}

/// The tokens of a source that compiles.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut reader = Reader {
        source,
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    while let Some(token) = reader.next() {
        tokens.push(token);
    }
    tokens
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        let rest = self.rest();
        let first = rest.chars().next()?;
        let (kind, length) = if let Some(length) = literal(rest) {
            (Kind::Literal, length)
        } else if first == '\'' {
            (Kind::Lifetime, 1 + word(&rest[1..]))
        } else if let Some(raw) = rest.strip_prefix("r#").filter(|raw| word(raw) > 0) {
            self.at += 2;
            (Kind::Word, word(raw))
        } else if word(rest) > 0 {
            (Kind::Word, word(rest))
        } else if ["::", "->", "=>"].iter().any(|sign| rest.starts_with(sign)) {
            (Kind::Sign, 2)
        } else {
            (Kind::Sign, first.len_utf8())
        };
        let text = &self.rest()[..length];
        let token = Token {
            kind,
            text,
            line: self.line,
        };
        self.pass(length);
        Some(token)
    }

    fn pass(&mut self, length: usize) {
        self.line += newlines(&self.rest()[..length]);
        self.at += length;
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            let length = if blanks > 0 {
                blanks
            } else if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                block_comment(rest)
            } else {
                return;
            };
            self.pass(length);
        }
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

/// The length of the word at the start; 0: there is none.
fn word(text: &str) -> usize {
    text.find(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .unwrap_or(text.len())
}

/// Block comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of the literal at the start.
fn literal(text: &str) -> Option<usize> {
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return Some(word(text));
    }
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(['"', '\'', '#']))
    })?;
    let rest = &text[prefix.len()..];
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let inner = rest[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inner
            .find(&end)
            .map_or(inner.len(), |found| found + end.len());
        return Some(prefix.len() + hashes + 1 + length);
    }
    if let Some(inner) = rest.strip_prefix('"') {
        return Some(prefix.len() + 1 + until_quote(inner, b'"'));
    }
    // A character: an escape, or one letter and the quote that ends it. All else is a lifetime.
    let inner = rest.strip_prefix('\'')?;
    let letter = inner.chars().next()?;
    let is_character = letter == '\\' || inner[letter.len_utf8()..].starts_with('\'');
    is_character.then(|| prefix.len() + 1 + until_quote(inner, b'\''))
}

/// The length up to the quote and with it; a backslash takes away the meaning of what follows.
fn until_quote(text: &str, quote: u8) -> usize {
    let mut is_escaped = false;
    for (at, &byte) in text.as_bytes().iter().enumerate() {
        if !is_escaped && byte == quote {
            return at + 1;
        }
        is_escaped = !is_escaped && byte == b'\\';
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        tokens(source).iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(texts("a // crate::b\n/* c /* d */ e */ f"), ["a", "f"]);
        assert_eq!(tokens("a // b\n/*\n*/ f")[1].line, 3);
    }

    #[test]
    fn a_literal_is_one_token() {
        let source =
            r####"x("a // \" b", r#"c " d"#, b'\'', '{', '\\', b"\\", br"\", 'é', 12_u8)"####;
        let literals: Vec<_> = tokens(source)
            .into_iter()
            .filter(|token| token.kind == Kind::Literal)
            .map(|token| token.text)
            .collect();
        let expected = [
            r#""a // \" b""#,
            r##"r#"c " d"#"##,
            r"b'\''",
            "'{'",
            r"'\\'",
            r#"b"\\""#,
            r#"br"\""#,
            "'é'",
            "12_u8",
        ];
        assert_eq!(literals, expected);
    }

    #[test]
    fn lifetimes_are_no_characters() {
        let tokens = tokens("&'a str, 'b', '_");
        let lifetimes: Vec<_> = tokens
            .iter()
            .filter(|token| token.kind == Kind::Lifetime)
            .collect();
        assert_eq!(lifetimes.len(), 2, "{tokens:?}");
    }

    #[test]
    fn lines_are_counted_in_strings() {
        assert_eq!(tokens("\"a\nb\" c")[1].line, 2);
    }

    #[test]
    fn words_and_signs() {
        assert_eq!(
            texts("r#type::b->c=>d>e"),
            ["type", "::", "b", "->", "c", "=>", "d", ">", "e"]
        );
        assert_eq!(texts("0..10"), ["0", ".", ".", "10"]);
    }
}
