//! `peek KEY`: a look at a key of any type: what it is, how long it lives, what it takes, and how its value
//! begins.
//!
//! No command of the server but of this program; it asks nothing that changes the key (its age since the last
//! use aside).

use std::time::Duration;

use resp::Value;

use super::types::Type;
use crate::amounts::{bytes_text, count};
use crate::failure::{Failure, Result};
use crate::format::{Format, Style, quoted};
use crate::limits::{PEEK_BYTES, PEEK_ELEMENTS};
use crate::session::Session;

/// What a look shows, by name, in order.
struct Look {
    rows: Vec<(&'static str, Value)>,
    value: Value,
    /// There is more of the value than is shown.
    is_cut: bool,
}

/// Looks at a key and appends what there is to be seen. Programs get a map.
///
/// # Errors
/// The connection is broken, or the server refuses to tell the key's type.
pub(crate) fn peek(
    session: &mut Session,
    words: &[Vec<u8>],
    style: &Style,
    out: &mut Vec<u8>,
) -> Result {
    let [_, key] = words else {
        return Err(Failure::other("peek takes one key: peek KEY"));
    };
    session.ensure_connected()?;
    match look(session, key)? {
        Some(look) if style.format == Format::Standard => look.append(out),
        Some(look) => style.append(out, &look.into_map()),
        None => style.append(out, &Value::Null),
    }
    Ok(())
}

fn look(session: &mut Session, key: &[u8]) -> Result<Option<Look>> {
    let facts = session.ask_all(&[
        vec![&b"TYPE"[..], key],
        vec![b"PTTL", key],
        vec![b"OBJECT", b"ENCODING", key],
        vec![b"MEMORY", b"USAGE", key],
    ])?;
    let [kind, expiry, encoding, memory] =
        <[Value; 4]>::try_from(facts).expect("there are as many replies as requests");
    let kind = match kind {
        Value::Simple(name) if name == b"none" => return Ok(None),
        Value::Simple(name) => Type::named(&String::from_utf8_lossy(&name)),
        Value::Error(text) => return Err(Failure::other(String::from_utf8_lossy(&text))),
        other => return Err(Failure::Other(format!("TYPE answered {other:?}"))),
    };
    let length = match kind.length_command {
        Some(command) => session.ask(&[command.as_bytes().to_vec(), key.to_vec()])?,
        None => Value::Null,
    };
    let (value, shown) = value(session, key, &kind)?;
    let is_cut = matches!(length, Value::Integer(length) if length > shown);
    let mut rows = vec![
        ("key", Value::Bulk(key.to_vec())),
        ("type", Value::Simple(kind.name.clone().into_bytes())),
    ];
    // A server that does not know one of these is no reason to show none.
    for (name, value) in [
        ("encoding", encoding),
        ("memory", memory),
        ("ttl", expiry),
        ("length", length),
    ] {
        if !matches!(value, Value::Error(_) | Value::Null) {
            rows.push((name, value));
        }
    }
    if kind.name == "stream"
        && let Some(groups) = groups(session, key)?
    {
        rows.push(("groups", groups));
    }
    Ok(Some(Look {
        rows,
        value,
        is_cut,
    }))
}

/// The first groups of a stream, a map of facts for each; `None` if it has none, or the server does not tell.
fn groups(session: &mut Session, key: &[u8]) -> Result<Option<Value>> {
    let request = [b"XINFO".to_vec(), b"GROUPS".to_vec(), key.to_vec()];
    let Value::Array(groups) = session.ask(&request)? else {
        return Ok(None);
    };
    // RESP2 has names and facts in turn.
    let facts = |group| match group {
        Value::Array(flat) => Value::Map(pairs(flat, usize::MAX)),
        group => group,
    };
    let groups: Vec<Value> = groups.into_iter().take(PEEK_ELEMENTS).map(facts).collect();
    Ok((!groups.is_empty()).then_some(Value::Array(groups)))
}

/// A group in words: `name (2 consumers, 5 pending, 1 to read)`.
fn group_text(group: &Value) -> Option<String> {
    let Value::Map(facts) = group else {
        return None;
    };
    let fact = |name: &[u8]| {
        let is_its =
            |key: &Value| matches!(key, Value::Bulk(text) | Value::Simple(text) if text == name);
        let fact = facts.iter().find(|(key, _)| is_its(key));
        fact.map(|(_, value)| value)
    };
    let number = |name: &[u8]| match fact(name) {
        Some(Value::Integer(number)) => Some(u64::try_from(*number).unwrap_or(0)),
        _ => None,
    };
    let Some(Value::Bulk(name)) = fact(b"name") else {
        return None;
    };
    let consumers = count(number(b"consumers")?, "consumer");
    let (name, pending) = (quoted(name), number(b"pending")?);
    let lag = number(b"lag").map_or(String::new(), |lag| format!(", {lag} to read"));
    Some(format!("{name} ({consumers}, {pending} pending{lag})"))
}

/// How a value begins, and how many elements of it that are.
fn value(session: &mut Session, key: &[u8], kind: &Type) -> Result<(Value, i64)> {
    let most = PEEK_ELEMENTS.to_string();
    let last = (PEEK_ELEMENTS - 1).to_string();
    let last_byte = (PEEK_BYTES - 1).to_string();
    let request: Vec<&str> = match kind.name.as_str() {
        "string" => vec!["GETRANGE", "", "0", &last_byte],
        "list" => vec!["LRANGE", "", "0", &last],
        "hash" => vec!["HSCAN", "", "0", "COUNT", &most],
        "set" => vec!["SSCAN", "", "0", "COUNT", &most],
        "zset" => vec!["ZRANGE", "", "0", &last, "WITHSCORES"],
        "stream" => vec!["XRANGE", "", "-", "+", "COUNT", &most],
        _ => return Ok((Value::Null, 0)),
    };
    let mut request: Vec<Vec<u8>> = request
        .iter()
        .map(|word| word.as_bytes().to_vec())
        .collect();
    request[1] = key.to_vec();
    let reply = session.ask(&request)?;
    Ok(match (kind.name.as_str(), reply) {
        ("string", Value::Bulk(bytes)) => {
            let len = bytes.len() as i64;
            (Value::Bulk(bytes), len)
        }
        // A cursor comes with the elements; small values come whole whatever COUNT says.
        ("hash", Value::Array(mut parts)) => match parts.pop() {
            Some(Value::Array(flat)) => counted(Value::Map(pairs(flat, PEEK_ELEMENTS))),
            _ => (Value::Null, 0),
        },
        ("set", Value::Array(mut parts)) => match parts.pop() {
            Some(Value::Array(mut members)) => {
                members.truncate(PEEK_ELEMENTS);
                counted(Value::Set(members))
            }
            _ => (Value::Null, 0),
        },
        // RESP2 has members and scores in turn, RESP3 in pairs.
        ("zset", Value::Array(items)) if !matches!(items.first(), Some(Value::Array(_))) => {
            counted(Value::Map(pairs(items, PEEK_ELEMENTS)))
        }
        ("zset", Value::Array(items)) => {
            let items = items.into_iter().filter_map(|item| match item {
                Value::Array(pair) => pairs(pair, 1).pop(),
                _ => None,
            });
            counted(Value::Map(items.collect()))
        }
        (_, value) => counted(value),
    })
}

fn counted(value: Value) -> (Value, i64) {
    let count = match &value {
        Value::Array(items) | Value::Set(items) => items.len(),
        Value::Map(pairs) => pairs.len(),
        _ => 0,
    };
    (value, count as i64)
}

/// Pairs of what comes in turn.
fn pairs(items: Vec<Value>, most: usize) -> Vec<(Value, Value)> {
    let mut items = items.into_iter();
    let mut pairs = Vec::new();
    while pairs.len() < most
        && let (Some(key), Some(value)) = (items.next(), items.next())
    {
        pairs.push((key, value));
    }
    pairs
}

impl Look {
    fn append(&self, out: &mut Vec<u8>) {
        for (name, value) in &self.rows {
            let text = match (*name, value) {
                (_, Value::Bulk(bytes)) if *name == "key" => quoted(bytes),
                ("groups", Value::Array(groups)) => {
                    let groups: Vec<String> = groups.iter().filter_map(group_text).collect();
                    groups.join("\n         ")
                }
                ("memory", Value::Integer(bytes)) => bytes_text(*bytes),
                ("ttl", Value::Integer(..0)) => "none".to_owned(),
                ("ttl", Value::Integer(ms)) => time_text(ms.unsigned_abs()),
                (_, Value::Integer(number)) => number.to_string(),
                (_, Value::Simple(text) | Value::Bulk(text)) => {
                    String::from_utf8_lossy(text).into_owned()
                }
                _ => continue,
            };
            out.extend_from_slice(format!("{name:<9}{text}\n").as_bytes());
        }
        let mut value = Vec::new();
        Style::of(Format::Standard).append(&mut value, &self.value);
        if let Value::Bulk(_) = self.value {
            out.extend_from_slice(b"value    ");
        } else {
            out.extend_from_slice(b"value\n");
        }
        out.extend_from_slice(&value);
        if self.is_cut {
            out.extend_from_slice(b"         ... and more\n");
        }
    }

    fn into_map(self) -> Value {
        let rows = self.rows.into_iter().chain([("value", self.value)]);
        Value::Map(
            rows.map(|(name, value)| (Value::Simple(name.as_bytes().to_vec()), value))
                .collect(),
        )
    }
}

/// A time as people say it: `850ms`, `59.4s`, `2h 3m`, `5d 4h`.
fn time_text(ms: u64) -> String {
    let time = Duration::from_millis(ms);
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{ms}ms"),
        1..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {}h", seconds / 86400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_people_say_them() {
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1000, "1.0s"),
            (59_940, "59.9s"),
            (60_000, "1m 0s"),
            (7_380_000, "2h 3m"),
            (446_400_000, "5d 4h"),
        ] {
            assert_eq!(time_text(ms), text);
        }
    }
}
