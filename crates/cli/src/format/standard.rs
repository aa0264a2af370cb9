//! The form for people: every type is told, every element has its index.
//!
//! ```text
//!   1) "a"              array, push        1# "key" => "value"     map
//!   2) 1) (integer) 1   nested             1~ "a"                  set
//!      2) (nil)                            1| "key" => "value"     attributes, before the reply
//! ```

use resp::Value;

use super::quote::append_quoted;

/// Appends a reply, each of its lines with an end.
pub(super) fn append(out: &mut Vec<u8>, value: &Value) {
    append_at(out, value, 0);
}

/// Appends the keys that a cache has to forget.
pub(super) fn append_invalidation(out: &mut Vec<u8>, keys: &[Value]) {
    out.extend_from_slice(b"-> invalidate: ");
    for (at, key) in keys.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        out.push(b'\'');
        if let Value::Bulk(key) = key {
            out.extend_from_slice(key);
        }
        out.push(b'\'');
    }
    out.push(b'\n');
}

/// Appends a value whose first line begins in column `indent`, where the buffer stands.
fn append_at(out: &mut Vec<u8>, value: &Value, indent: usize) {
    match value {
        Value::Error(text) => line(out, &[b"(error) ", text]),
        Value::Simple(text) | Value::Verbatim { text, .. } => line(out, &[text]),
        Value::Integer(number) => line(out, &[b"(integer) ", number.to_string().as_bytes()]),
        Value::Double { text, .. } => line(out, &[b"(double) ", text]),
        Value::BigNumber(digits) => line(out, &[b"(big number) ", digits]),
        Value::Bulk(bytes) => {
            append_quoted(out, bytes);
            out.push(b'\n');
        }
        Value::Null => line(out, &[b"(nil)"]),
        Value::Boolean(true) => line(out, &[b"(true)"]),
        Value::Boolean(false) => line(out, &[b"(false)"]),
        Value::Array(items) if items.is_empty() => line(out, &[b"(empty array)"]),
        Value::Set(items) if items.is_empty() => line(out, &[b"(empty set)"]),
        Value::Push(items) if items.is_empty() => line(out, &[b"(empty push)"]),
        Value::Map(pairs) if pairs.is_empty() => line(out, &[b"(empty hash)"]),
        Value::Array(items) | Value::Push(items) => append_items(out, items, ')', indent),
        Value::Set(items) => append_items(out, items, '~', indent),
        Value::Map(pairs) => append_pairs(out, pairs, '#', indent),
        Value::Attribute { attributes, value } => {
            append_pairs(out, attributes, '|', indent);
            if !attributes.is_empty() {
                out.resize(out.len() + indent, b' ');
            }
            append_at(out, value, indent);
        }
    }
}

fn line(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for part in parts {
        out.extend_from_slice(part);
    }
    out.push(b'\n');
}

fn append_items(out: &mut Vec<u8>, items: &[Value], mark: char, indent: usize) {
    let width = items.len().to_string().len();
    for (at, item) in items.iter().enumerate() {
        append_index(out, at, width, mark, indent);
        append_at(out, item, indent + width + 2);
    }
}

fn append_pairs(out: &mut Vec<u8>, pairs: &[(Value, Value)], mark: char, indent: usize) {
    let width = pairs.len().to_string().len();
    let inner = indent + width + 2;
    for (at, (key, value)) in pairs.iter().enumerate() {
        append_index(out, at, width, mark, indent);
        append_at(out, key, inner);
        // The value goes on in the key's last line.
        out.pop();
        out.extend_from_slice(b" => ");
        if takes_lines(value) {
            out.push(b'\n');
            out.resize(out.len() + inner, b' ');
        }
        append_at(out, value, inner);
    }
}

/// Appends the index of an element. The first one goes on in the line of its aggregate.
fn append_index(out: &mut Vec<u8>, at: usize, width: usize, mark: char, indent: usize) {
    let indent = if at == 0 { 0 } else { indent };
    let number = at + 1;
    out.extend_from_slice(format!("{:indent$}{number:width$}{mark} ", "").as_bytes());
}

/// Whether a value takes more than one line, for what can be known of its type alone.
fn takes_lines(value: &Value) -> bool {
    match value {
        Value::Array(items) | Value::Set(items) | Value::Push(items) => match &items[..] {
            [] => false,
            [item] => takes_lines(item),
            _ => true,
        },
        Value::Map(pairs) => match &pairs[..] {
            [] => false,
            [(_, value)] => takes_lines(value),
            _ => true,
        },
        Value::Attribute { .. } => true,
        _ => false,
    }
}
