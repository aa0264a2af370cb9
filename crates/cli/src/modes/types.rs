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

/// A number that the server tells of each key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    /// How many elements the value has.
    Elements,
    /// How many bytes it takes, as far as the server knows from a look at so many elements.
    Memory { samples: Option<u64> },
}

impl Column {
    /// The words in front of the key; none where a type has no such number.
    fn command(self, kind: &Type) -> Option<&'static str> {
        match self {
            Column::Elements => kind.length_command,
            Column::Memory { .. } => Some("MEMORY USAGE"),
        }
    }

    /// What is counted.
    pub(super) fn unit(self, kind: &Type) -> &'static str {
        match self {
            Column::Elements => kind.unit,
            Column::Memory { .. } => "bytes",
        }
    }

    /// Asks for the numbers of keys; 0 for those that are gone or have none. Of a key that cannot be counted
    /// standard error is told.
    pub(super) fn ask(
        self,
        session: &mut Session,
        keys: &[Vec<u8>],
        types: &[Option<Type>],
    ) -> Result<Vec<u64>> {
        let command = |kind: &Option<Type>| self.command(kind.as_ref()?);
        let samples = match self {
            Column::Memory { samples } => samples.map(|samples| samples.to_string()),
            Column::Elements => None,
        };
        let mut requests: Vec<Vec<&[u8]>> = Vec::new();
        for (key, kind) in keys.iter().zip(types) {
            let Some(command) = command(kind) else {
                continue;
            };
            let words = command.split(' ').map(str::as_bytes);
            let mut request: Vec<&[u8]> = words.chain([key.as_slice()]).collect();
            if let Some(samples) = &samples {
                request.extend([&b"SAMPLES"[..], samples.as_bytes()]);
            }
            requests.push(request);
        }
        let mut replies = session.ask_all(&requests)?.into_iter();
        let sizes = keys.iter().zip(types).map(|(key, kind)| {
            let command = command(kind);
            command.map_or(0, |command| size(replies.next(), command, key))
        });
        Ok(sizes.collect())
    }
}

/// Something of each type. Those that every server may have are there from the beginning.
pub(super) struct ByType<T>(Vec<(Type, T)>);

impl<T: Default> ByType<T> {
    pub(super) fn new() -> ByType<T> {
        let known = Type::known().into_iter();
        ByType(known.map(|kind| (kind, T::default())).collect())
    }

    /// That of one type.
    pub(super) fn of(&mut self, kind: &Type) -> &mut T {
        let at = self.0.iter().position(|(its, _)| its == kind);
        let at = at.unwrap_or_else(|| {
            self.0.push((kind.clone(), T::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Type, T)> {
        self.0.iter()
    }
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
