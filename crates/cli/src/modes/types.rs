//! The types of values, and how their elements are counted.

use resp::Value;

use crate::failure::{Failure, Result};
use crate::format::quoted;
use crate::session::Session;

/// A type of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Type {
    pub(super) name: String,
    /// The command that counts its elements; none for a type of a module.
    pub(super) length_command: Option<&'static str>,
    /// What its elements are called.
    pub(super) unit: &'static str,
}

impl Type {
    /// The types that every server may have, in the order in which they are reported.
    pub(super) fn known() -> Vec<Type> {
        [
            ("list", "LLEN", "items"),
            ("hash", "HLEN", "fields"),
            ("string", "STRLEN", "bytes"),
            ("stream", "XLEN", "entries"),
            ("set", "SCARD", "members"),
            ("zset", "ZCARD", "members"),
        ]
        .into_iter()
        .map(|(name, command, unit)| Type {
            name: name.to_owned(),
            length_command: Some(command),
            unit,
        })
        .collect()
    }

    /// The type of this name, a new one if it is not known.
    pub(super) fn named(name: &str) -> Type {
        let known = Type::known().into_iter().find(|known| known.name == name);
        known.unwrap_or_else(|| Type {
            name: name.to_owned(),
            length_command: None,
            unit: "?",
        })
    }
}

/// The types of keys; `None` for those that are gone.
pub(super) fn types(session: &mut Session, keys: &[Vec<u8>]) -> Result<Vec<Option<Type>>> {
    let request = |key| vec![&b"TYPE"[..], key];
    let requests: Vec<Vec<&[u8]>> = keys.iter().map(|key| request(key)).collect();
    let replies = session.ask_all(&requests)?;
    let found = keys.iter().zip(replies).map(|(key, reply)| match reply {
        Value::Simple(name) if name == b"none" => Ok(None),
        Value::Simple(name) => Ok(Some(Type::named(&String::from_utf8_lossy(&name)))),
        Value::Error(text) => {
            let text = String::from_utf8_lossy(&text);
            Err(Failure::Other(format!("TYPE returned an error: {text}")))
        }
        _ => Err(Failure::Other(format!(
            "Invalid reply type for TYPE on key '{}'!",
            quoted(key)
        ))),
    });
    found.collect()
}

/// How many elements keys have; 0 for those that cannot be counted, which standard error is told.
pub(super) fn lengths(
    session: &mut Session,
    keys: &[Vec<u8>],
    types: &[Option<Type>],
) -> Result<Vec<u64>> {
    let command = |known: &Option<Type>| known.as_ref().and_then(|known| known.length_command);
    let requests: Vec<Vec<&[u8]>> = keys
        .iter()
        .zip(types)
        .filter_map(|(key, known)| Some(vec![command(known)?.as_bytes(), key]))
        .collect();
    let mut replies = session.ask_all(&requests)?.into_iter();
    let lengths = keys.iter().zip(types).map(|(key, known)| {
        let Some(command) = command(known) else {
            return 0;
        };
        size(replies.next(), command, key)
    });
    Ok(lengths.collect())
}

/// How many bytes keys take, as far as the server knows from a look at `samples` elements of each.
pub(super) fn memory(
    session: &mut Session,
    keys: &[Vec<u8>],
    types: &[Option<Type>],
    samples: Option<u64>,
) -> Result<Vec<u64>> {
    let samples = samples.map(|samples| samples.to_string());
    let exists = |known: &Option<Type>| known.is_some();
    let requests: Vec<Vec<&[u8]>> = keys
        .iter()
        .zip(types)
        .filter(|(_, known)| exists(known))
        .map(|(key, _)| {
            let mut request: Vec<&[u8]> = vec![b"MEMORY", b"USAGE", key];
            if let Some(samples) = &samples {
                request.extend([&b"SAMPLES"[..], samples.as_bytes()]);
            }
            request
        })
        .collect();
    let mut replies = session.ask_all(&requests)?.into_iter();
    let sizes = keys.iter().zip(types).map(|(key, known)| {
        if exists(known) {
            size(replies.next(), "MEMORY USAGE", key)
        } else {
            0
        }
    });
    Ok(sizes.collect())
}

/// The number in a reply. A key may be gone by now, or be of another type.
fn size(reply: Option<Value>, command: &str, key: &[u8]) -> u64 {
    match reply {
        Some(Value::Integer(size)) => u64::try_from(size).unwrap_or(0),
        _ => {
            eprintln!(
                "Warning:  {command} on '{}' failed (may have changed type)",
                String::from_utf8_lossy(key)
            );
            0
        }
    }
}
