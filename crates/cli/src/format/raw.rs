//! The form for pipes: the bytes, with a delimiter between elements.

use resp::Value;

/// Appends a reply, without an end of line except behind an error.
pub(super) fn append(out: &mut Vec<u8>, value: &Value, delimiter: &[u8]) {
    match value {
        Value::Null => {}
        Value::Error(text) => {
            out.extend_from_slice(text);
            out.push(b'\n');
        }
        Value::Simple(text)
        | Value::Bulk(text)
        | Value::Verbatim { text, .. }
        | Value::Double { text, .. }
        | Value::BigNumber(text) => out.extend_from_slice(text),
        Value::Boolean(true) => out.extend_from_slice(b"(true)"),
        Value::Boolean(false) => out.extend_from_slice(b"(false)"),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Array(items) | Value::Set(items) | Value::Push(items) => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(delimiter);
                }
                append(out, item, delimiter);
            }
        }
        Value::Map(pairs) => {
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.extend_from_slice(delimiter);
                }
                append(out, key, delimiter);
                out.push(b' ');
                append(out, value, delimiter);
            }
        }
        Value::Attribute { value, .. } => append(out, value, delimiter),
    }
}
