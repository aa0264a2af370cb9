//! The written form of expectations: reading it, and writing what a server replied in it.
//!
//! ```text
//! 5   -1                      integer              <int>  <int 90..100>  <int 1..>
//! "v\r\n\xff"   "x"*1000      bulk string          /re/   <str>   <lines /re/ /re/>
//! +OK                         simple string        +/re/
//! -ERR text to the line's end error                -/re/
//! txt"..."                    verbatim string      txt/re/   txt<lines /re/>
//! nil   nil[]                 null, null array (the latter differs in RESP2 only)
//! 1.5  inf    (123)    true   double, big number, boolean        <double>
//! [1, "a", nil]               array                unordered [...]   <array>
//! {"k": 1}                    map                  unordered {...}   <map>
//! set["a"]   push["a"]        set (in any order), push
//! ...                         as the last element: any further ones
//! <any>                       anything
//! "+OK\r\n" closed            for `raw`: exactly these bytes, and then the end of the connection
//! closed                      the connection was closed instead
//! ```
//!
//! Commas and line breaks between elements are free. Inside brackets, simple strings and errors are one word
//! or quoted: `+"two words"`. A regular expression matches the whole string (`\/` for a slash); in `<lines>`
//! each matches one whole line.

use regex_lite::Regex;

use super::expect::{Expected, ListKind, Order, Outcome, Pattern, TextKind};
use super::words::{double_quoted, quote};
use crate::support::Value;

/// Reads expectations one after the other.
pub(crate) struct Reader<'a> {
    rest: &'a str,
}

type Read<T> = Result<T, String>;

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// What is left of the line that was read last, without blanks around it.
    pub(crate) fn rest_of_line(&self) -> &'a str {
        first_line(self.rest).trim()
    }

    /// The next expectation with the text it was written as; `raw` says that the command is a `raw` one.
    ///
    /// # Errors
    /// Says what cannot be read.
    pub(crate) fn next(&mut self, raw: bool) -> Read<(Expected, String)> {
        self.rest = self.rest.trim_start();
        let before = self.rest;
        let expected = if raw { self.raw()? } else { self.value(0)? };
        let written = before[..before.len() - self.rest.len()]
            .trim_end()
            .to_owned();
        Ok((expected, written))
    }

    fn raw(&mut self) -> Read<Expected> {
        if !self.rest.starts_with('"') {
            return Err(format!(
                "raw bytes begin with a quote: {}",
                first_line(self.rest)
            ));
        }
        let bytes = self.string()?;
        let same_line = self.rest.trim_start_matches(' ');
        let closed = same_line.strip_prefix("closed");
        self.rest = closed.unwrap_or(self.rest);
        Ok(Expected::Raw {
            bytes,
            closed: closed.is_some(),
        })
    }

    fn value(&mut self, depth: usize) -> Read<Expected> {
        let rest = self.rest;
        let negative =
            |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit()) || rest.starts_with("inf");
        match rest.chars().next() {
            None => Err("an expectation is missing".to_owned()),
            Some('"' | '/') => self.text(TextKind::Bulk),
            Some('<') => self.placeholder(),
            Some('+') => self.line_text(TextKind::Simple, depth),
            Some('-') if !negative(&rest[1..]) => self.line_text(TextKind::Error, depth),
            Some('[') => self.list(ListKind::Array, Order::default(), depth),
            Some('{') => self.map(Order::default(), depth),
            Some('(') => self.big_number(),
            Some(c) if c.is_ascii_digit() || c == '-' => self.number(),
            Some(_) => self.keyword(depth),
        }
    }

    fn keyword(&mut self, depth: usize) -> Read<Expected> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        let any_order = Order {
            open: false,
            unordered: true,
        };
        let (expected, rest) = match word {
            "nil" if rest.starts_with("[]") => (Expected::NilArray, &rest[2..]),
            "nil" => (Expected::Nil, rest),
            "true" => (Expected::Bool(true), rest),
            "false" => (Expected::Bool(false), rest),
            "inf" => (Expected::Double(Some(f64::INFINITY)), rest),
            "nan" => (Expected::Double(Some(f64::NAN)), rest),
            "closed" => (Expected::Closed, rest),
            "set" => {
                self.rest = rest;
                return self.list(ListKind::Set, any_order, depth);
            }
            "push" => {
                self.rest = rest;
                return self.list(ListKind::Push, Order::default(), depth);
            }
            "unordered" => {
                self.rest = rest.trim_start();
                return match self.rest.starts_with('{') {
                    true => self.map(any_order, depth),
                    false => self.list(ListKind::Array, any_order, depth),
                };
            }
            _ if word.len() == 3 && rest.starts_with(['"', '/', '<']) => {
                self.rest = rest;
                let format = word
                    .as_bytes()
                    .try_into()
                    .map_err(|_| "three letters".to_owned())?;
                return self.text(TextKind::Verbatim(format));
            }
            _ => return Err(format!("not an expectation: {}", first_line(self.rest))),
        };
        self.rest = rest;
        Ok(expected)
    }

    /// A quoted string, a regular expression or a placeholder for a string.
    fn text(&mut self, kind: TextKind) -> Read<Expected> {
        let pattern = match self.rest.chars().next() {
            Some('"') => Pattern::Exact(self.string()?),
            Some('/') => Pattern::Regex(self.regex()?),
            _ => match self.placeholder()? {
                Expected::Text { pattern, .. } => pattern,
                _ => return Err("only <str> and <lines> stand for a string".to_owned()),
            },
        };
        Ok(Expected::Text { kind, pattern })
    }

    /// A simple string or error behind its sign: quoted, a regular expression, or (outside brackets) the rest
    /// of the line.
    fn line_text(&mut self, kind: TextKind, depth: usize) -> Read<Expected> {
        self.rest = &self.rest[1..];
        if self.rest.starts_with(['"', '/']) {
            return self.text(kind);
        }
        let end = match depth {
            0 => self.rest.find('\n'),
            _ => self
                .rest
                .find(|c: char| c.is_whitespace() || ",]}:".contains(c)),
        };
        let (text, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Ok(Expected::Text {
            kind,
            pattern: Pattern::Exact(text.trim_end().as_bytes().to_vec()),
        })
    }

    fn string(&mut self) -> Read<Vec<u8>> {
        let (bytes, rest) = double_quoted(self.rest)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn regex(&mut self) -> Read<Regex> {
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while bytes.get(end) != Some(&b'/') {
            match bytes.get(end) {
                None | Some(b'\n') => {
                    return Err(format!(
                        "an expression is not closed: {}",
                        first_line(self.rest)
                    ));
                }
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let source = self.rest[1..end].replace("\\/", "/");
        self.rest = &self.rest[end + 1..];
        Regex::new(&format!("^(?:{source})$")).map_err(|error| format!("/{source}/: {error}"))
    }

    fn number(&mut self) -> Read<Expected> {
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        let wrong = || format!("not a number: {word}");
        let expected = match word.parse::<i64>() {
            Ok(number) => Expected::Int(number..=number),
            Err(_) => Expected::Double(Some(word.parse().map_err(|_| wrong())?)),
        };
        self.rest = rest;
        Ok(expected)
    }

    fn big_number(&mut self) -> Read<Expected> {
        let end = self.rest.find(')').ok_or("a big number is not closed")?;
        let digits = self.rest.as_bytes()[1..end].to_vec();
        self.rest = &self.rest[end + 1..];
        Ok(Expected::BigNumber(digits))
    }

    fn placeholder(&mut self) -> Read<Expected> {
        let end = self
            .rest
            .find(|c: char| c == '>' || c.is_whitespace())
            .ok_or("a placeholder is not closed")?;
        let name = &self.rest[1..end];
        self.rest = self.rest[end..].trim_start();
        let open = Order {
            open: true,
            unordered: false,
        };
        let expected = match name {
            "any" => Expected::Any,
            "int" => Expected::Int(self.range()?),
            "double" => Expected::Double(None),
            "str" => Expected::Text {
                kind: TextKind::Bulk,
                pattern: Pattern::Any,
            },
            "array" => Expected::List {
                kind: ListKind::Array,
                items: Vec::new(),
                order: open,
            },
            "map" => Expected::Map {
                pairs: Vec::new(),
                order: open,
            },
            "lines" => {
                let mut regexes = Vec::new();
                while self.rest.starts_with('/') {
                    regexes.push(self.regex()?);
                    self.rest = self.rest.trim_start();
                }
                Expected::Text {
                    kind: TextKind::Bulk,
                    pattern: Pattern::Lines(regexes),
                }
            }
            _ => return Err(format!("no placeholder <{name}>")),
        };
        self.rest = self
            .rest
            .strip_prefix('>')
            .ok_or_else(|| format!("<{name} is not closed"))?;
        Ok(expected)
    }

    /// `low..high` with either side optional, or nothing at all.
    fn range(&mut self) -> Read<std::ops::RangeInclusive<i64>> {
        let end = self.rest.find('>').ok_or("<int is not closed")?;
        let text = self.rest[..end].trim();
        self.rest = &self.rest[end..];
        let (low, high) = text.split_once("..").unwrap_or(("", ""));
        let bound = |text: &str, default: i64| match text {
            "" => Ok(default),
            _ => text.parse().map_err(|_| format!("not a number: {text}")),
        };
        Ok(bound(low, i64::MIN)?..=bound(high, i64::MAX)?)
    }

    fn list(&mut self, kind: ListKind, mut order: Order, depth: usize) -> Read<Expected> {
        let mut items = Vec::new();
        self.open('[')?;
        while !self.close(']', &mut order)? {
            items.push(self.value(depth + 1)?);
        }
        Ok(Expected::List { kind, items, order })
    }

    fn map(&mut self, mut order: Order, depth: usize) -> Read<Expected> {
        let mut pairs = Vec::new();
        self.open('{')?;
        while !self.close('}', &mut order)? {
            let key = self.value(depth + 1)?;
            self.rest = self
                .rest
                .trim_start()
                .strip_prefix(':')
                .ok_or("no colon behind a map's key")?
                .trim_start();
            pairs.push((key, self.value(depth + 1)?));
        }
        Ok(Expected::Map { pairs, order })
    }

    fn open(&mut self, bracket: char) -> Read<()> {
        self.rest = self
            .rest
            .strip_prefix(bracket)
            .ok_or_else(|| format!("no {bracket}: {}", first_line(self.rest)))?;
        Ok(())
    }

    /// Steps over separators; true when the aggregate ends here.
    fn close(&mut self, bracket: char, order: &mut Order) -> Read<bool> {
        let separators = |c: char| c.is_whitespace() || c == ',';
        self.rest = self.rest.trim_start_matches(separators);
        if let Some(rest) = self.rest.strip_prefix("...") {
            order.open = true;
            self.rest = rest.trim_start_matches(separators);
        }
        match self.rest.strip_prefix(bracket) {
            Some(rest) => self.rest = rest,
            None if self.rest.is_empty() => return Err(format!("no closing {bracket}")),
            None if order.open => return Err("... must be the last element".to_owned()),
            None => return Ok(false),
        }
        Ok(true)
    }
}

pub(crate) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Wider aggregates are written with one element a line.
const WIDTH: usize = 100;

/// Writes an outcome so that [`Reader::next`] reads an expectation that accepts it.
pub(crate) fn write_outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Reply(value) => write_value(value, 0),
        Outcome::Raw {
            bytes,
            closed: false,
        } => quote(bytes),
        Outcome::Raw {
            bytes,
            closed: true,
        } => format!("{} closed", quote(bytes)),
        Outcome::Closed => "closed".to_owned(),
        Outcome::Failed(why) => format!("({why})"),
    }
}

fn write_value(value: &Value, depth: usize) -> String {
    match value {
        Value::Simple(text) => format!("+{}", write_line(text, depth)),
        Value::Error(text) => format!("-{}", write_line(text, depth)),
        Value::Int(number) => number.to_string(),
        Value::Bulk(bytes) => quote(bytes),
        Value::NullBulk | Value::Null => "nil".to_owned(),
        Value::NullArray => "nil[]".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Double(number) => write_double(*number),
        Value::BigNumber(digits) => format!("({})", String::from_utf8_lossy(digits)),
        Value::Verbatim { format, text } => {
            format!("{}{}", String::from_utf8_lossy(format), quote(text))
        }
        Value::Array(items) => write_list("[", items, depth),
        Value::Set(items) => write_list("set[", items, depth),
        Value::Push(items) => write_list("push[", items, depth),
        Value::Map(pairs) => {
            let pair = |(key, value): &(Value, Value)| {
                format!(
                    "{}: {}",
                    write_value(key, depth + 1),
                    write_value(value, depth + 1)
                )
            };
            enclose("{", pairs.iter().map(pair).collect(), "}", depth)
        }
    }
}

fn write_list(open: &str, items: &[Value], depth: usize) -> String {
    enclose(
        open,
        items
            .iter()
            .map(|item| write_value(item, depth + 1))
            .collect(),
        "]",
        depth,
    )
}

fn enclose(open: &str, parts: Vec<String>, close: &str, depth: usize) -> String {
    let one_line = format!("{open}{}{close}", parts.join(", "));
    if one_line.len() + 2 * depth <= WIDTH && !one_line.contains('\n') {
        return one_line;
    }
    let inner = "  ".repeat(depth + 1);
    let lines: String = parts
        .iter()
        .map(|part| format!("{inner}{part}\n"))
        .collect();
    format!("{open}\n{lines}{}{close}", "  ".repeat(depth))
}

/// The text of a simple string or error, quoted where the bare form would not read back.
fn write_line(text: &[u8], depth: usize) -> String {
    let is_plain = |byte: &u8| match depth {
        0 => (b' '..=b'~').contains(byte),
        _ => byte.is_ascii_graphic() && !b",]}:".contains(byte),
    };
    // A digit or `inf` behind a minus would be a number.
    let edge_is_plain = |byte: Option<&u8>| {
        byte.is_some_and(|byte| !b" \"/".contains(byte) && !byte.is_ascii_digit())
            && !text.starts_with(b"inf")
    };
    match text.iter().all(is_plain) && edge_is_plain(text.first()) && text.last() != Some(&b' ') {
        true => String::from_utf8_lossy(text).into_owned(),
        false => quote(text),
    }
}

fn write_double(number: f64) -> String {
    match number {
        _ if number.is_finite() && number.fract() == 0.0 && number.abs() < 1e15 => {
            format!("{number:.1}")
        }
        _ if number.is_nan() => "nan".to_owned(),
        _ => number.to_string(),
    }
}
