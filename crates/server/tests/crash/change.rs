//! What a connection does: changes of its own keys, in databases that it shares and in two that are its own.
//!
//! A [`Change`] is asked for with one command, or one transaction, and leads from one [`State`] to the next.
//! Numbers stand for keys and seeds for values, so that a history is small.

use std::collections::HashMap;

use crate::support::encode_request;

/// Databases that all connections use.
pub(crate) const SHARED: u16 = 3;
/// Connections.
pub(crate) const CONNECTIONS: u16 = 8;
/// All databases.
pub(crate) const DATABASES: u16 = SHARED + 2 * CONNECTIONS;
/// Keys of a connection in each database; those below [`COUNTERS`] hold numbers.
const KEYS: u16 = 30;
const COUNTERS: u16 = 6;
/// Keys that a life with large values uses of them.
const FEW: u16 = COUNTERS + 10;

/// How long values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Mostly some bytes.
    Small,
    /// Many that are logged in part when they change, some in files of their own.
    Large,
}

impl Sizes {
    /// A value that has become longer is replaced.
    fn longest(self) -> usize {
        match self {
            Sizes::Small => 20_000,
            Sizes::Large => 400_000,
        }
    }

    fn keys(self) -> u16 {
        match self {
            Sizes::Small => KEYS,
            Sizes::Large => FEW,
        }
    }
}

/// A database and the number of a key in it.
pub(crate) type Place = (u16, u16);

/// What is at a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) value: Vec<u8>,
    pub(crate) expires: bool,
}

/// All keys of a connection.
pub(crate) type State = HashMap<Place, Entry>;

/// The name of a connection's key.
pub(crate) fn name(connection: u16, key: u16) -> String {
    format!("{connection}:{key}")
}

/// Whose key a name is, and its number.
pub(crate) fn parse_name(name: &[u8]) -> Option<(u16, u16)> {
    let (connection, key) = std::str::from_utf8(name).ok()?.split_once(':')?;
    Some((connection.parse().ok()?, key.parse().ok()?))
}

/// Bytes that a number stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) seed: u32,
    pub(crate) len: u32,
}

impl Text {
    fn random(random: &mut fastrand::Rng, sizes: Sizes) -> Text {
        let len = match (sizes, random.u8(..20)) {
            (Sizes::Small, 0) => random.u32(..150_000),
            (Sizes::Small, 1..5) => random.u32(..2000),
            // As many between 200 and 400 kB as between 2.5 and 5 MB.
            (Sizes::Large, 0) => (200_000.0 * 25.0_f64.powf(random.f64())) as u32,
            (Sizes::Large, 1..8) => random.u32(4000..24_000),
            _ => random.u32(..60),
        };
        Text {
            seed: random.u32(..),
            len,
        }
    }

    /// A few bytes.
    fn short(random: &mut fastrand::Rng) -> Text {
        Text {
            seed: random.u32(..),
            len: random.u32(1..60),
        }
    }

    fn bytes(self) -> Vec<u8> {
        let pattern = format!("{:08x}", self.seed);
        pattern.bytes().cycle().take(self.len as usize).collect()
    }
}

/// One change, which happens as a whole or not at all.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Set(Place, Text),
    SetWithExpiry(Place, Text),
    Increment(Place),
    Append(Place, Text),
    /// Some bytes of a value are these, from a place on.
    SetRange(Place, u32, Text),
    SetMany(u16, Vec<(u16, Text)>),
    Delete(u16, Vec<u16>),
    /// The second key gets the value of the first.
    Copy(Place, Place),
    /// A key gets another name; it is there.
    Rename(u16, u16, u16),
    Expire(Place),
    Persist(Place),
    Flush(u16),
    Swap(u16, u16),
    Transaction(Vec<Change>),
}

impl Change {
    /// Something to do for a connection whose keys are in this state.
    pub(crate) fn random(
        random: &mut fastrand::Rng,
        connection: u16,
        state: &State,
        sizes: Sizes,
    ) -> Change {
        let own = SHARED + 2 * connection;
        match random.u8(..100) {
            0..12 => {
                let count = random.usize(1..6);
                // Each has to fit what the ones before leave behind.
                let mut after = state.clone();
                let changes = (0..count).map(|_| {
                    let change = Change::simple(random, own, &after, sizes);
                    change.apply(&mut after, &mut |_| {});
                    change
                });
                Change::Transaction(changes.collect())
            }
            _ => Change::simple(random, own, state, sizes),
        }
    }

    fn simple(random: &mut fastrand::Rng, own: u16, state: &State, sizes: Sizes) -> Change {
        let database = |random: &mut fastrand::Rng| match random.u16(..5) {
            db if db < SHARED => db,
            db => own + db - SHARED,
        };
        let db = database(random);
        let counter = (db, random.u16(..COUNTERS));
        let key = |random: &mut fastrand::Rng| random.u16(COUNTERS..sizes.keys());
        // Another one, which is no counter either.
        let other = |random: &mut fastrand::Rng, key: u16| {
            let count = sizes.keys() - COUNTERS;
            COUNTERS + (key - COUNTERS + random.u16(1..count)) % count
        };
        let place = (db, key(random));
        let text = Text::random(random, sizes);
        match random.u8(..60) {
            0 => return Change::Flush(own + random.u16(..2)),
            1 => return Change::Swap(own, own + 1),
            _ => {}
        }
        match random.u8(..20) {
            0..5 if sizes == Sizes::Small || random.u8(..5) == 0 => Change::Increment(counter),
            // Of what is logged in part, there shall be much.
            0..5 => Change::amend(random, place),
            5..8 => Change::SetMany(
                db,
                (0..random.usize(2..5))
                    .map(|_| (key(random), Text::random(random, sizes)))
                    .collect(),
            ),
            8 | 9 => Change::Delete(db, vec![key(random), counter.1, key(random)]),
            10 => Change::Expire(if random.bool() { place } else { counter }),
            11 => Change::Persist(if random.bool() { place } else { counter }),
            12 if random.bool() => {
                let to = match database(random) {
                    to if to == db => (db, other(random, place.1)),
                    to => (to, key(random)),
                };
                Change::Copy(place, to)
            }
            12 if state.contains_key(&place) => Change::Rename(db, place.1, other(random, place.1)),
            12 => Change::SetWithExpiry(place, text),
            13..16
                if state
                    .get(&place)
                    .is_none_or(|entry| entry.value.len() < sizes.longest()) =>
            {
                Change::Append(place, text)
            }
            16 => Change::amend(random, place),
            _ => Change::Set(place, text),
        }
    }

    /// Changes a few bytes of a value.
    fn amend(random: &mut fastrand::Rng, place: Place) -> Change {
        let text = Text::short(random);
        if random.bool() {
            Change::Append(place, text)
        } else {
            Change::SetRange(place, random.u32(..10_000), text)
        }
    }

    /// Makes the change, and tells of each key that may have changed.
    pub(crate) fn apply(&self, state: &mut State, touched: &mut dyn FnMut(Place)) {
        let set = |state: &mut State, place: Place, text: Text, expires: bool| {
            let value = text.bytes();
            state.insert(place, Entry { value, expires });
        };
        match self {
            Change::Set(place, text) => set(state, *place, *text, false),
            Change::SetWithExpiry(place, text) => set(state, *place, *text, true),
            Change::Increment(place) => {
                let entry = state.entry(*place).or_default();
                let text = String::from_utf8_lossy(&entry.value);
                let number: u64 = text.parse().unwrap_or(0);
                entry.value = (number + 1).to_string().into_bytes();
            }
            Change::Append(place, text) => {
                let entry = state.entry(*place).or_default();
                entry.value.extend(text.bytes());
            }
            Change::SetMany(db, pairs) => {
                for &(key, text) in pairs {
                    set(state, (*db, key), text, false);
                    touched((*db, key));
                }
            }
            Change::Delete(db, keys) => {
                for &key in keys {
                    state.remove(&(*db, key));
                    touched((*db, key));
                }
            }
            Change::SetRange(place, offset, text) => {
                let (value, from) = (
                    &mut state.entry(*place).or_default().value,
                    *offset as usize,
                );
                let bytes = text.bytes();
                value.resize(value.len().max(from + bytes.len()), 0);
                value[from..from + bytes.len()].copy_from_slice(&bytes);
            }
            Change::Copy(from, to) => {
                if let Some(entry) = state.get(from).cloned() {
                    state.insert(*to, entry);
                }
                touched(*to);
            }
            Change::Rename(db, from, to) => {
                if let Some(entry) = state.remove(&(*db, *from)) {
                    state.insert((*db, *to), entry);
                }
                touched((*db, *from));
                touched((*db, *to));
            }
            Change::Expire(place) | Change::Persist(place) => {
                if let Some(entry) = state.get_mut(place) {
                    entry.expires = matches!(self, Change::Expire(_));
                }
            }
            Change::Flush(db) => (0..KEYS).for_each(|key| drop(state.remove(&(*db, key)))),
            Change::Swap(one, two) => {
                for key in 0..KEYS {
                    let first = state.remove(&(*one, key));
                    let second = state.remove(&(*two, key));
                    state.extend(first.map(|entry| ((*two, key), entry)));
                    state.extend(second.map(|entry| ((*one, key), entry)));
                }
            }
            Change::Transaction(changes) => {
                changes
                    .iter()
                    .for_each(|change| change.apply(state, touched));
            }
        }
        match self {
            Change::Flush(db) => (0..KEYS).for_each(|key| touched((*db, key))),
            Change::Swap(one, two) => (0..KEYS).for_each(|key| {
                touched((*one, key));
                touched((*two, key));
            }),
            change => change.place().into_iter().for_each(touched),
        }
    }

    /// The key of a change that is about one.
    fn place(&self) -> Option<Place> {
        match self {
            Change::Set(place, _)
            | Change::SetWithExpiry(place, _)
            | Change::Append(place, _)
            | Change::SetRange(place, ..)
            | Change::Increment(place)
            | Change::Expire(place)
            | Change::Persist(place) => Some(*place),
            Change::Flush(_)
            | Change::Swap(..)
            | Change::SetMany(..)
            | Change::Delete(..)
            | Change::Copy(..)
            | Change::Rename(..)
            | Change::Transaction(_) => None,
        }
    }

    /// Adds the requests to `bytes`, for a connection whose database is `db`. How many replies come.
    pub(crate) fn encode(&self, connection: u16, db: &mut u16, bytes: &mut Vec<u8>) -> usize {
        let name = |key: u16| name(connection, key).into_bytes();
        let word = |text: &str| text.as_bytes().to_vec();
        let mut replies = 1;
        let mut select = |wanted: u16, bytes: &mut Vec<u8>| {
            if *db != wanted {
                *db = wanted;
                replies += 1;
                bytes.extend(encode_request(&[word("SELECT"), word(&wanted.to_string())]));
            }
        };
        if let Some((its, _)) = self.place() {
            select(its, bytes);
        }
        let request = match self {
            Change::Set((_, key), text) => vec![word("SET"), name(*key), text.bytes()],
            Change::SetWithExpiry((_, key), text) => {
                let (seconds, value) = (word("100000"), text.bytes());
                vec![word("SET"), name(*key), value, word("EX"), seconds]
            }
            Change::Increment((_, key)) => vec![word("INCR"), name(*key)],
            Change::Append((_, key), text) => vec![word("APPEND"), name(*key), text.bytes()],
            Change::SetRange((_, key), offset, text) => {
                let offset = word(&offset.to_string());
                vec![word("SETRANGE"), name(*key), offset, text.bytes()]
            }
            Change::SetMany(db, pairs) => {
                select(*db, bytes);
                let pairs = pairs
                    .iter()
                    .flat_map(|&(key, text)| [name(key), text.bytes()]);
                [word("MSET")].into_iter().chain(pairs).collect()
            }
            Change::Delete(db, keys) => {
                select(*db, bytes);
                let keys = keys.iter().map(|&key| name(key));
                [word("DEL")].into_iter().chain(keys).collect()
            }
            Change::Copy((db, from), (to_db, to)) => {
                select(*db, bytes);
                let to_db = word(&to_db.to_string());
                let (from, to) = (name(*from), name(*to));
                vec![word("COPY"), from, to, word("DB"), to_db, word("REPLACE")]
            }
            Change::Rename(db, from, to) => {
                select(*db, bytes);
                vec![word("RENAME"), name(*from), name(*to)]
            }
            Change::Expire((_, key)) => vec![word("EXPIRE"), name(*key), word("100000")],
            Change::Persist((_, key)) => vec![word("PERSIST"), name(*key)],
            Change::Flush(db) => {
                select(*db, bytes);
                vec![word("FLUSHDB")]
            }
            Change::Swap(one, two) => {
                vec![
                    word("SWAPDB"),
                    word(&one.to_string()),
                    word(&two.to_string()),
                ]
            }
            Change::Transaction(changes) => {
                bytes.extend(encode_request(&["MULTI"]));
                let queued = changes
                    .iter()
                    .map(|change| change.encode(connection, db, bytes));
                replies += 1 + queued.sum::<usize>();
                vec![word("EXEC")]
            }
        };
        bytes.extend(encode_request(&request));
        replies
    }
}
