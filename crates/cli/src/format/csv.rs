//! The form for spreadsheets: all scalars of a reply in one line, between commas, whatever they are nested
//! in.

use resp::Value;

use super::quote::append_quoted;

/// Appends a reply, without an end of line.
pub(super) fn append(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Error(text) => {
            out.extend_from_slice(b"ERROR,");
            append_quoted(out, text);
        }
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim { text, .. } => {
            append_quoted(out, text);
        }
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double { text, .. } | Value::BigNumber(text) => out.extend_from_slice(text),
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Array(items) | Value::Set(items) | Value::Push(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                append(out, item);
            }
        }
        Value::Map(pairs) => {
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                append(out, key);
                out.push(b',');
                append(out, value);
            }
        }
        Value::Attribute { value, .. } => append(out, value),
    }
}
