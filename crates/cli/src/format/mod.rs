//! Replies as text: one file per form, all of the same shape, which appends to a buffer.
//!
//! | file | form | for |
//! |---|---|---|
//! | `standard` | types, indices, quoted strings | people |
//! | `raw` | the bytes | pipes and files |
//! | `csv` | values between commas | spreadsheets |
//! | `json` | JSON | programs |
//!
//! The forms are those of redis-cli, byte for byte, wherever it has one for a type. What it has none for: big
//! numbers, and the attributes of a reply, which only the standard form shows.
//!
//! Not here: which form is chosen, and where the text goes.

mod csv;
mod json;
mod quote;
mod raw;
mod standard;

pub(crate) use quote::quoted;

use resp::Value;

/// A form of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Standard,
    Raw,
    Csv,
    Json,
    /// JSON in which strings are ASCII, with escapes as the standard form has them.
    QuotedJson,
}

/// A form, and what goes between things in the raw one.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    pub(crate) format: Format,
    /// Between the elements of an aggregate.
    pub(crate) element_delimiter: Vec<u8>,
    /// Behind a reply.
    pub(crate) reply_delimiter: Vec<u8>,
}

impl Style {
    /// A form with line breaks as delimiters.
    pub(crate) fn of(format: Format) -> Style {
        Style {
            format,
            element_delimiter: b"\n".to_vec(),
            reply_delimiter: b"\n".to_vec(),
        }
    }

    /// Appends a reply and the end of its line.
    pub(crate) fn append(&self, out: &mut Vec<u8>, value: &Value) {
        match self.format {
            Format::Standard => standard::append(out, value),
            Format::Raw => {
                raw::append(out, value, &self.element_delimiter);
                out.extend_from_slice(&self.reply_delimiter);
            }
            Format::Csv => {
                csv::append(out, value);
                out.push(b'\n');
            }
            Format::Json | Format::QuotedJson => {
                json::append(out, value, self.format == Format::QuotedJson);
                out.push(b'\n');
            }
        }
    }

    /// Appends a reply that is a text of its own, with lines of its own, whatever the form is: that of INFO,
    /// for example.
    pub(crate) fn append_text(&self, out: &mut Vec<u8>, value: &Value) {
        raw::append(out, value, &self.element_delimiter);
    }

    /// Appends a message that nobody asked for.
    pub(crate) fn append_push(&self, out: &mut Vec<u8>, value: &Value) {
        match invalidated_keys(value) {
            Some(keys) if self.format == Format::Standard => {
                standard::append_invalidation(out, keys);
            }
            _ => self.append(out, value),
        }
    }
}

/// The keys of a message of client-side caching, unless it is about all of them.
fn invalidated_keys(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Push(items) => match &items[..] {
            [Value::Bulk(kind), Value::Array(keys)] if kind.starts_with(b"invalidate") => {
                Some(keys)
            }
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests;
