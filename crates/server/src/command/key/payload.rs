//! The bytes of DUMP and RESTORE ([`rdb::Payload`]), and the options of RESTORE.
//!
//! Nothing is locked while bytes are made or taken apart.

use keyspace::{AnyItems, Detached, Key, LargeValue, New};
use rdb::{Item, Payload, Typed, TypedReader};

use crate::persistence::Durable;
use crate::persistence::snapshot::{Beyond, Destination, KINDS, ReadItems, dump_items, read_items};
use crate::request::{Args, Failure, failure};
use crate::store::{LastUse, Still};

const INVALID_TTL: Failure = Failure::of("ERR Invalid TTL value, must be >= 0");
const INVALID_IDLE_TIME: Failure = Failure::of("ERR Invalid IDLETIME value, must be >= 0");
const INVALID_FREQUENCY: Failure = Failure::of("ERR Invalid FREQ value, must be >= 0 and <= 255");
const WRONG_FOOTER: Failure = Failure::of("ERR DUMP payload version or checksum are wrong");
pub(super) const BAD_DATA: Failure = Failure::of("ERR Bad data format");

/// The payload of a value.
pub(super) fn dump(value: &Still, compresses: bool) -> Vec<u8> {
    let bytes = value.bytes();
    match value {
        Still::String(value) => rdb::dump_string(value, compresses),
        Still::Run(kind, run) => dump_items(AnyItems::of_run(*kind, run), bytes, compresses),
        Still::Tree(moment, _) => dump_items(moment.all_items(), bytes, compresses),
    }
}

/// The payload that is the argument at `at`, and the length of its value if that is a string.
///
/// # Errors
/// Version or checksum are wrong, or the value has more bytes than `most`.
pub(super) fn check<'a>(
    args: &Args<'a>,
    at: usize,
    most: usize,
) -> Result<(Payload<'a>, usize), Failure> {
    let payload = Payload::check(args.get(at)).ok_or(WRONG_FOOTER)?;
    let claimed = payload.claimed_string_len().unwrap_or(0);
    match usize::try_from(claimed) {
        Ok(len) if len <= most => Ok((payload, len)),
        _ => Err(failure::TOO_LONG),
    }
}

/// The value of a payload.
pub(super) enum Restored {
    String(LargeValue),
    Items(Detached),
    /// A hash all of whose fields have expired.
    Over,
}

impl Restored {
    /// Reads the value of a payload for a key; no string in it has more bytes than `most`. `None`: it has
    /// many items, and `goes_on` says that it is not to be read on.
    ///
    /// # Errors
    /// It is none, or not all that there is.
    pub(super) fn read(
        server: &Durable,
        key: Key<'_>,
        payload: &Payload<'_>,
        (most, now): (usize, i64),
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Restored>, Failure> {
        let mut reader = payload.read();
        reader.only(KINDS);
        // A small payload may say that it is a large one. There is room for one string already.
        let room = match payload.claimed_string_len() {
            Some(_) => most,
            None => server.room_now(),
        };
        reader.limit_strings(most.min(room) as u64);
        let value = read_one(server, &mut reader, key, now, goes_on);
        let value = match value {
            Ok(None) => return Ok(None),
            Ok(value) => reader.next().map(|rest| (value, rest.is_none())),
            Err(failure) if failure == BAD_DATA && reader.was_too_long() && most > room => {
                return Err(failure::OUT_OF_MEMORY);
            }
            Err(failure) => return Err(failure),
        };
        match value {
            Ok((value, true)) => Ok(value),
            _ => Err(BAD_DATA),
        }
    }

    /// Value for the key, once; `None` if it is empty.
    pub(super) fn give(&mut self) -> Option<New<'_>> {
        match self {
            Restored::String(value) => Some(New::large(value)),
            Restored::Items(items) => Some(New::detached(items)),
            Restored::Over => None,
        }
    }
}

/// The value that a payload begins with. `None`: it has many items, and `goes_on` says that it is not to be
/// read on.
///
/// # Errors
/// It is none, or there is no room for it.
fn read_one(
    server: &Durable,
    reader: &mut TypedReader<&[u8]>,
    key: Key<'_>,
    now: i64,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Option<Restored>, Failure> {
    let kind = match reader.next() {
        Ok(Some(Typed::Item(Item::Entry(entry)))) => {
            let value = std::mem::take(entry.value);
            return Ok(Some(Restored::String(LargeValue::new(value.into()))));
        }
        Ok(Some(Typed::Begin { kind, .. })) => kind,
        _ => return Err(BAD_DATA),
    };
    // What is read is copied.
    let at_first = server.room_now();
    let mut before = at_first;
    reader.limit_strings((at_first / 2) as u64);
    // While data is loaded, a later change may give fields another expiry.
    let now = (!server.is_loading()).then_some(now);
    let (mut is_short, mut is_left) = (false, false);
    let pause = &mut |_| {
        if server.memory.look_again(sys::clock::realtime_ms()) {
            server.memory.purge_if_much();
        }
        let room = server.room_now();
        let taken = before.saturating_sub(std::mem::replace(&mut before, room));
        // The next items may take as much, and all of them are put in order in the end.
        is_short = room <= 2 * taken + at_first.saturating_sub(room);
        is_left = !is_short && !goes_on();
        match is_short || is_left {
            true => Err(String::new()),
            false => Ok(()),
        }
    };
    let destination = Destination {
        key: key.bytes,
        expiry: None,
        now,
        beyond: Beyond::InMemory,
    };
    match read_items(server, (reader, kind), &destination, pause) {
        Ok(ReadItems::Items(items)) => Ok(Some(Restored::Items(items))),
        Ok(ReadItems::Over) => Ok(Some(Restored::Over)),
        Err(_) if is_short => Err(failure::OUT_OF_MEMORY),
        Err(_) if is_left => Ok(None),
        Ok(ReadItems::Empty) | Err(_) => Err(BAD_DATA),
    }
}

/// Options of RESTORE.
#[derive(Default)]
pub(super) struct Options {
    pub(super) replaces: bool,
    /// The TTL is a moment (Unix, ms), not a time from now.
    is_absolute: bool,
    pub(super) used: Option<LastUse>,
}

impl Options {
    pub(super) fn parse(args: &Args<'_>) -> Result<Options, Failure> {
        let mut options = Options::default();
        let mut at = 4;
        while at < args.len() {
            at += 1 + options.take(args, at)?;
        }
        Ok(options)
    }

    /// Takes the option at `at`; returns how many arguments it has behind it.
    fn take(&mut self, args: &Args<'_>, at: usize) -> Result<usize, Failure> {
        if args.is(at, "REPLACE") {
            self.replaces = true;
            return Ok(0);
        }
        if args.is(at, "ABSTTL") {
            self.is_absolute = true;
            return Ok(0);
        }
        if at + 1 == args.len() {
            return Err(failure::SYNTAX);
        }
        let used = match self.used {
            None | Some(LastUse::Before(_)) if args.is(at, "IDLETIME") => {
                let seconds = u64::try_from(args.integer(at + 1)?);
                LastUse::Before(seconds.map_err(|_| INVALID_IDLE_TIME)?)
            }
            None | Some(LastUse::Frequency(_)) if args.is(at, "FREQ") => {
                let count = u8::try_from(args.integer(at + 1)?);
                LastUse::Frequency(count.map_err(|_| INVALID_FREQUENCY)?)
            }
            _ => return Err(failure::SYNTAX),
        };
        self.used = Some(used);
        Ok(1)
    }

    /// When the key expires (Unix, ms), which the argument at `at` says; 0 is never.
    pub(super) fn expiry(
        &self,
        args: &Args<'_>,
        at: usize,
        now: i64,
    ) -> Result<Option<i64>, Failure> {
        match args.integer(at)? {
            ..0 => Err(INVALID_TTL),
            0 => Ok(None),
            moment if self.is_absolute => Ok(Some(moment)),
            ms => match ms.checked_add(now) {
                Some(moment) => Ok(Some(moment)),
                None => Err(Failure::invalid_expire("restore")),
            },
        }
    }
}
