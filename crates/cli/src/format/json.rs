//! The form for programs: JSON.
//!
//! A string is written as the bytes that it has, so that what is no UTF-8 makes no JSON either; the quoted
//! form is ASCII whatever the bytes are. Doubles that JSON has no text for (`inf`, `nan`) are written as the
//! server wrote them. An error is `error:"..."`, which is no JSON either: nobody shall take it for a string.

use resp::Value;

use super::quote::append_quoted;

/// Appends a reply, without an end of line.
pub(super) fn append(out: &mut Vec<u8>, value: &Value, is_quoted: bool) {
    match value {
        Value::Error(text) => {
            out.extend_from_slice(b"error:");
            append_string(out, text, is_quoted);
        }
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim { text, .. } => {
            append_string(out, text, is_quoted);
        }
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double { text, .. } | Value::BigNumber(text) => out.extend_from_slice(text),
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(true) => out.extend_from_slice(b"true"),
        Value::Boolean(false) => out.extend_from_slice(b"false"),
        Value::Array(items) | Value::Set(items) | Value::Push(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                append(out, item, is_quoted);
            }
            out.push(b']');
        }
        Value::Map(pairs) => append_object(out, pairs, is_quoted),
        Value::Attribute { value, .. } => append(out, value, is_quoted),
    }
}

fn append_object(out: &mut Vec<u8>, pairs: &[(Value, Value)], is_quoted: bool) {
    out.push(b'{');
    for (at, (key, value)) in pairs.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        append_name(out, key, is_quoted);
        out.push(b':');
        append(out, value, is_quoted);
    }
    out.push(b'}');
}

/// Appends the name of a member, which has to be a string whatever the key of the map is.
fn append_name(out: &mut Vec<u8>, key: &Value, is_quoted: bool) {
    let mut text = Vec::new();
    append(&mut text, key, is_quoted);
    let is_string = text.starts_with(b"\"") || matches!(key, Value::Error(_));
    if is_string {
        out.extend_from_slice(&text);
    } else {
        out.push(b'"');
        out.extend_from_slice(&text);
        out.push(b'"');
    }
}

fn append_string(out: &mut Vec<u8>, bytes: &[u8], is_quoted: bool) {
    if is_quoted {
        let mut quoted = Vec::new();
        append_quoted(&mut quoted, bytes);
        // Its escapes have to survive the reader's unescaping.
        out.push(b'"');
        for &byte in &quoted[1..quoted.len() - 1] {
            if matches!(byte, b'\\' | b'"') {
                out.push(b'\\');
            }
            out.push(byte);
        }
        out.push(b'"');
        return;
    }
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
