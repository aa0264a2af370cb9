//! The tokens of JSON, as cjson takes them: more numbers than the standard knows, and a text ends at its
//! first zero.

/// A token, and where it begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    /// Its bytes are in `Tokens::place`.
    String,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

impl Token {
    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(text) => text,
        }
    }
}

/// A text that is read. Bytes at its end or beyond are zeros.
pub(super) struct Tokens<'t> {
    text: &'t [u8],
    pub(super) at: usize,
    /// Where the last token begins, or where it is wrong.
    pub(super) index: usize,
    takes_invalid: bool,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t [u8], takes_invalid: bool) -> Tokens<'t> {
        Tokens {
            text,
            at: 0,
            index: 0,
            takes_invalid,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn wrong(&mut self, text: &'static str) -> Token {
        self.index = self.at;
        Token::Error(text)
    }

    /// The next token. The bytes of a string go to `put`, which says whether there is memory for them.
    pub(super) fn next(&mut self, put: &mut dyn FnMut(&[u8]) -> bool) -> Option<Token> {
        while matches!(self.byte(self.at), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.index = self.at;
        let single = match self.byte(self.at) {
            b'{' => Token::ObjectBegin,
            b'}' => Token::ObjectEnd,
            b'[' => Token::ArrayBegin,
            b']' => Token::ArrayEnd,
            b':' => Token::Colon,
            b',' => Token::Comma,
            0 => return Some(Token::End),
            b'"' => return self.string(put),
            _ => return Some(self.word()),
        };
        self.at += 1;
        Some(single)
    }

    fn word(&mut self) -> Token {
        let rest = &self.text[self.at..];
        let words: [(&[u8], Token); 3] = [
            (b"true", Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
        ];
        if rest[0] == b'-' || rest[0].is_ascii_digit() {
            if !self.takes_invalid && is_invalid(rest) {
                return self.wrong("invalid number");
            }
            return self.number();
        }
        for (word, token) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return token;
            }
        }
        let may_be_number = matches!(rest[0], b'+' | b'i' | b'I' | b'n' | b'N');
        if self.takes_invalid && may_be_number && is_invalid(rest) {
            return self.number();
        }
        self.wrong("invalid token")
    }

    fn number(&mut self) -> Token {
        match read_number(&self.text[self.at..]) {
            Some((number, len)) => {
                self.at += len;
                Token::Number(number)
            }
            None => self.wrong("invalid number"),
        }
    }

    fn string(&mut self, put: &mut dyn FnMut(&[u8]) -> bool) -> Option<Token> {
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0))
                .unwrap_or(rest.len());
            if !put(&rest[..plain]) {
                return None;
            }
            self.at += plain;
            match self.byte(self.at) {
                b'"' => {
                    self.at += 1;
                    return Some(Token::String);
                }
                b'\\' => {}
                _ => return Some(self.wrong("unexpected end of string")),
            }
            let byte = match self.byte(self.at + 1) {
                byte @ (b'"' | b'\\' | b'/') => byte,
                b'b' => 8,
                b't' => 9,
                b'n' => 10,
                b'f' => 12,
                b'r' => 13,
                b'u' => {
                    let Some((character, len)) = self.character() else {
                        return Some(self.wrong("invalid unicode escape code"));
                    };
                    if !put(character.encode_utf8(&mut [0; 4]).as_bytes()) {
                        return None;
                    }
                    self.at += len;
                    continue;
                }
                _ => return Some(self.wrong("invalid escape code")),
            };
            if !put(&[byte]) {
                return None;
            }
            self.at += 2;
        }
    }

    /// The character of `\uXXXX`, or of two of them, and their length.
    fn character(&self) -> Option<(char, usize)> {
        let first = self.four_digits(self.at + 2)?;
        if first & 0xF800 != 0xD800 {
            return Some((char::from_u32(first)?, 6));
        }
        let is_pair = first & 0x400 == 0 && self.text[self.at + 6..].starts_with(b"\\u");
        let second = self.four_digits(self.at + 8).filter(|_| is_pair)?;
        if second & 0xFC00 != 0xDC00 {
            return None;
        }
        let code = ((first & 0x3FF) << 10 | second & 0x3FF) + 0x10000;
        Some((char::from_u32(code)?, 12))
    }

    fn four_digits(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 4)?;
        digits.iter().try_fold(0, |number, &byte| {
            Some(number << 4 | char::from(byte).to_digit(16)?)
        })
    }
}

/// Whether a number is none of JSON's: `+1`, `01`, `0x1`, `inf`, `nan`.
fn is_invalid(text: &[u8]) -> bool {
    if text.first() == Some(&b'+') {
        return true;
    }
    let text = text.strip_prefix(b"-").unwrap_or(text);
    match text {
        [b'0', b'x' | b'X' | b'0'..=b'9', ..] => true,
        [..=b'9', ..] | [] => false,
        _ => is_word(text, b"inf") || is_word(text, b"nan"),
    }
}

fn is_word(text: &[u8], word: &[u8]) -> bool {
    text.get(..word.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(word))
}

/// Reads the number that a text begins with, as `strtod` does. Returns its length, too.
fn read_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let rest = &text[sign..];
    let signed = |number: f64| {
        if text[0] == b'-' { -number } else { number }
    };
    for (word, number) in [
        (&b"infinity"[..], f64::INFINITY),
        (b"inf", f64::INFINITY),
        (b"nan", f64::NAN),
    ] {
        if is_word(rest, word) {
            return Some((signed(number), sign + word.len()));
        }
    }
    if let [b'0', b'x' | b'X', hex @ ..] = rest
        && let Some((number, len)) = read_hex(hex)
    {
        return Some((signed(number), sign + 2 + len));
    }
    let len = decimal_len(rest)?;
    let digits = std::str::from_utf8(&rest[..len]).ok()?;
    Some((signed(digits.parse().ok()?), sign + len))
}

/// The length of digits with a point and an exponent.
fn decimal_len(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text[from..].iter();
        rest.take_while(|byte| byte.is_ascii_digit()).count()
    };
    let whole = digits(0);
    let mut len = whole;
    let mut fraction = 0;
    if text.get(len) == Some(&b'.') {
        fraction = digits(len + 1);
        len += 1 + fraction;
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(text.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'-' | b'+')));
        let exponent = digits((len + 1 + sign).min(text.len()));
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    Some(len)
}

/// Hexadecimal digits with a point and a binary exponent. Returns their length, too.
fn read_hex(text: &[u8]) -> Option<(f64, usize)> {
    let (mut number, mut scale, mut at, mut count) = (0.0_f64, 0_i32, 0, 0);
    let mut has_point = false;
    while let Some(&byte) = text.get(at) {
        if byte == b'.' && !has_point {
            has_point = true;
        } else if let Some(digit) = char::from(byte).to_digit(16) {
            number = number * 16.0 + f64::from(digit);
            count += 1;
            scale -= if has_point { 4 } else { 0 };
        } else {
            break;
        }
        at += 1;
    }
    if count == 0 {
        return None;
    }
    if matches!(text.get(at), Some(b'p' | b'P')) {
        let is_negative = text.get(at + 1) == Some(&b'-');
        let sign = usize::from(matches!(text.get(at + 1), Some(b'-' | b'+')));
        let from = (at + 1 + sign).min(text.len());
        let digits = text[from..].iter().take_while(|byte| byte.is_ascii_digit());
        let len = digits.clone().count();
        let exponent = digits.fold(0_i32, |value, &digit| {
            (value * 10 + i32::from(digit - b'0')).min(100_000)
        });
        if len > 0 {
            at = from + len;
            scale += if is_negative { -exponent } else { exponent };
        }
    }
    Some((number * 2_f64.powi(scale), at))
}
