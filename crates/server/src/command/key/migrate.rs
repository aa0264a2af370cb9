//! MIGRATE: keys move to another server.
//!
//! The values are read under the locks of all keys, at one moment. Then a thread sends them
//! ([`super::exchange`]) while nothing is locked and the connection waits. At the end the worker removes, in
//! one step, the keys that the recipient has taken. A key that was changed meanwhile stays, and the reply is
//! an error ([`crate::observe::readings`]): both servers have the key then, and no change is lost.
//!
//! In a transaction the locks of the keys are held, so a key cannot change. The worker itself sends them.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use keyspace::{Key, reason};

use super::exchange::{Delivery, Lost, Parcel, Recipient, deliver};
use crate::command::deferred::{Around, Progress, Slice, Work, on_a_thread};
use crate::command::spec::{Begin, Find};
use crate::command::{
    Arg, ArgKind, Args, Context, Failure, Handled, KeySpec, Next, access, failure,
};
use crate::config::Setting;
use crate::limits::{
    JOURNAL_REQUEST_BYTES, MIGRATE_DEFAULT_TIMEOUT_MS, MIGRATE_TIMEOUT_MS, MIGRATIONS,
};
use crate::observe::notify::Event;
use crate::observe::readings::{KeysRead, Underway};
use crate::observe::tracking;
use crate::request::Pieces;
use crate::store::Store;

/// Its keys: one, or those behind a word.
pub(super) const KEYS: &[KeySpec] = &[
    KeySpec::one(3, access::RW | access::ACCESS | access::DELETE),
    KeySpec {
        access: access::RW | access::ACCESS | access::DELETE | access::INCOMPLETE,
        begin: Begin::Keyword("KEYS", -2),
        find: Find::Range {
            last: -1,
            step: 1,
            limit: 0,
        },
        notes: None,
    },
];

/// Its arguments.
pub(super) const ARGS: &[Arg] = &[
    Arg::of("host", ArgKind::String),
    Arg::of("port", ArgKind::Integer),
    Arg::one_of(
        "key_or_empty_string",
        &[Arg::key("key"), Arg::word("empty_string", "")],
    ),
    Arg::of("destination-db", ArgKind::Integer),
    Arg::of("timeout", ArgKind::Integer),
    Arg::word("copy", "COPY").since("3.0.0").optional(),
    Arg::word("replace", "REPLACE").since("3.0.0").optional(),
    Arg::one_of(
        "authentication",
        &[
            Arg::of("password", ArgKind::String)
                .token("AUTH")
                .since("4.0.7")
                .optional(),
            Arg::block(
                "username_password",
                &[
                    Arg::of("username", ArgKind::String),
                    Arg::of("password", ArgKind::String),
                ],
            )
            .token("AUTH2")
            .since("6.0.0")
            .optional(),
        ],
    )
    .optional(),
    Arg {
        key_spec: Some(1),
        ..Arg::key("key")
    }
    .token("KEYS")
    .since("3.0.6")
    .optional()
    .multiple(),
];

const KEY_IS_NAMED: Failure = Failure::of(
    "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string",
);
const NOT_SENT: Failure = Failure::of("ERR the command was not done");
const HAS_CHANGED: Failure = Failure::of(
    "ERR a key was changed while it was sent: it stays here, and the target instance has its value from \
     before",
);

/// `MIGRATE host port key|"" destination-db timeout [COPY] [REPLACE]
/// [AUTH password | AUTH2 username password] [KEYS key ...]`
pub(super) fn migrate(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let request = Request::parse(context, args)?;
    let readings = &context.store.observers.readings;
    if !context.in_transaction && readings.len() >= MIGRATIONS {
        return Ok(Next::Retry);
    }
    let (parcels, shipment) = pack(&context.store, args, &request);
    if parcels.is_empty() {
        context.reply.simple("NOKEY");
        return Ok(Next::Done);
    }
    let recipient = request.recipient;
    if context.may_defer() {
        let memory = parcels.iter().map(|parcel| parcel.value.bytes()).sum();
        let delivery = on_a_thread(context, move || deliver(&recipient, parcels))?;
        return Ok(context.defer(
            args,
            Sending {
                delivery,
                shipment,
                memory,
            },
        ));
    }
    let send = move || deliver(&recipient, parcels);
    let delivery = match context.in_transaction {
        true => send(),
        false => context.store.turn.pause(send),
    };
    shipment.end(&context.store, delivery)?;
    context.reply.ok();
    Ok(Next::Done)
}

/// Whether an argument is a name or a password of AUTH.
pub(super) fn is_secret(args: &Args<'_>, at: usize) -> bool {
    let mut option = 6;
    while option < at {
        let words = match () {
            () if args.is(option, "AUTH") => 1,
            () if args.is(option, "AUTH2") => 2,
            () if args.is(option, "KEYS") => return false,
            () => 0,
        };
        if at <= option + words {
            return true;
        }
        option += 1 + words;
    }
    false
}

/// The arguments.
struct Request {
    recipient: Recipient,
    /// The keys stay here, too.
    copies: bool,
    /// Which arguments are keys.
    keys: Vec<usize>,
}

impl Request {
    /// Reads the arguments in the order of redis-server.
    fn parse(context: &Context<'_>, args: &Args<'_>) -> Result<Request, Failure> {
        let (mut copies, mut replaces, mut login) = (false, false, None);
        let mut keys: Vec<usize> = vec![3];
        let mut at = 6;
        while at < args.len() {
            let words = |count| match at + count < args.len() {
                true => Ok(args.from(at + 1).take(count).map(<[u8]>::to_vec).collect()),
                false => Err(failure::SYNTAX),
            };
            if args.is(at, "COPY") {
                copies = true;
            } else if args.is(at, "REPLACE") {
                replaces = true;
            } else if args.is(at, "AUTH") {
                login = Some(words(1)?);
                at += 1;
            } else if args.is(at, "AUTH2") {
                login = Some(words(2)?);
                at += 2;
            } else if args.is(at, "KEYS") {
                if !args.get(3).is_empty() {
                    return Err(KEY_IS_NAMED);
                }
                keys = (at + 1..args.len()).collect();
                break;
            } else {
                return Err(failure::SYNTAX);
            }
            at += 1;
        }
        let timeout = match args.integer(5)? {
            ..=0 => MIGRATE_DEFAULT_TIMEOUT_MS,
            ms => ms.min(MIGRATE_TIMEOUT_MS),
        };
        let recipient = Recipient {
            host: args.get(1).to_vec(),
            port: port(args.get(2)),
            db: args.integer(4)?,
            timeout: Duration::from_millis(timeout.unsigned_abs()),
            login,
            replaces,
            asks: context.server.cluster.is_some(),
            compresses: context.server.settings.flag(Setting::RdbCompression),
        };
        Ok(Request {
            recipient,
            copies,
            keys,
        })
    }
}

/// The port that a text names, as C reads numbers: up to the first byte that is no digit.
fn port(text: &[u8]) -> u16 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = str::from_utf8(&text[..digits])
        .ok()
        .and_then(|digits| digits.parse().ok());
    number.unwrap_or(0)
}

/// Takes the values of the keys that are there, at one moment.
fn pack(store: &Store<'_>, args: &Args<'_>, request: &Request) -> (Vec<Parcel>, Shipment) {
    let keys = || request.keys.iter().map(|&at| args.key(at));
    let (mut parcels, mut reading) = (Vec::new(), KeysRead::of(store.db));
    let mut shards = store.lock_keys(keys());
    for key in keys() {
        let mut shard = shards.of(key);
        let Some(mut entry) = shard.read(key) else {
            continue;
        };
        parcels.push(Parcel {
            key: key.bytes.into(),
            expiry: entry.expiry(),
            value: entry.still(),
        });
        shard.observe(key, reason::READ);
        reading.add(key);
    }
    let names = parcels
        .iter()
        .map(|parcel| (parcel.key.clone(), parcel.expiry));
    let shipment = Shipment {
        keys: names.collect(),
        underway: store.observers.readings.begin(reading),
        copies: request.copies,
    };
    drop(shards);
    (parcels, shipment)
}

/// Keys that are being sent.
struct Shipment {
    /// Each with the moment at which it expires (Unix, ms).
    keys: Vec<(Box<[u8]>, Option<i64>)>,
    underway: Underway,
    /// They stay here, too.
    copies: bool,
}

impl Shipment {
    /// Removes the keys that the recipient has taken.
    ///
    /// # Errors
    /// It has not taken all of them, or some have to stay.
    fn end(&self, store: &Store<'_>, delivery: Delivery) -> Result<(), Failure> {
        let removed = match self.copies || delivery.taken.is_empty() {
            true => Ok(()),
            false => self.remove(store, &delivery.taken),
        };
        if let Some(text) = delivery.refused {
            let before = "ERR Target instance replied with error: ";
            return Err(Failure::about(before, &text, ""));
        }
        match delivery.lost {
            Some(Lost::Connecting) => Err(Failure::of(
                "IOERR error or timeout connecting to the client",
            )),
            Some(Lost::Writing) => Err(Failure::of(
                "IOERR error or timeout writing to target instance",
            )),
            Some(Lost::Reading) => Err(Failure::of(
                "IOERR error or timeout reading to target instance",
            )),
            None => removed,
        }
    }

    /// Removes keys by number, in one step.
    fn remove(&self, store: &Store<'_>, numbers: &[usize]) -> Result<(), Failure> {
        let keys = numbers.iter().map(|&number| {
            let (bytes, expiry) = &self.keys[number];
            let hash = store.keyspace.hash(bytes);
            (Key { bytes, hash }, *expiry)
        });
        let db = self.underway.db();
        let mut shards = store.lock_keys_in(db, keys.clone().map(|(key, _)| key));
        // A key may come twice, and its removal is a change.
        let unchanged: Vec<Key<'_>> = keys
            .clone()
            .map(|(key, _)| key)
            .filter(|key| !self.underway.is_changed(*key))
            .collect();
        let is_over = |expiry: Option<i64>| expiry.is_some_and(|moment| moment < store.now);
        let mut result = Ok(());
        for (key, expiry) in keys {
            let is_gone = !shards.of(key).contains(key) && is_over(expiry);
            if self.underway.is_changed(key) && !is_gone {
                result = Err(HAS_CHANGED);
            }
        }
        for key in unchanged {
            let mut shard = shards.of(key);
            if shard.remove(key) {
                shard.tell(Event::DEL, key);
            }
        }
        result
    }
}

/// Keys that a thread sends.
struct Sending {
    delivery: Receiver<Delivery>,
    shipment: Shipment,
    /// Bytes of the values.
    memory: usize,
}

impl Work for Sending {
    fn go_on(&mut self, around: &mut Around<'_>, _: &Slice) -> Progress {
        let delivery = match self.delivery.try_recv() {
            Ok(delivery) => delivery,
            Err(TryRecvError::Empty) => return Progress::More,
            Err(TryRecvError::Disconnected) => return Progress::Done(Err(NOT_SENT)),
        };
        let protocol = around.protocol;
        if around.session.listens {
            tracking::set_current(around.session.client.id);
        }
        let ended = self.end(around, delivery);
        tracking::set_current(0);
        Progress::Done(ended.map(|()| {
            let mut pieces = Pieces::default();
            pieces.write(protocol, |reply| reply.simple("OK"));
            pieces
        }))
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        self.memory
    }
}

impl Sending {
    fn end(&self, around: &Around<'_>, delivery: Delivery) -> Result<(), Failure> {
        if !self.shipment.copies {
            make_room_in_log(around)?;
        }
        self.shipment.end(&around.store, delivery)
    }
}

/// Reserves space in the log for the removal of all keys, as is done for a request before it runs.
fn make_room_in_log(around: &Around<'_>) -> Result<(), Failure> {
    let Some(journal) = around.store.journal else {
        return Ok(());
    };
    let keys = around.args.len() as u64;
    let bytes = around.args.size() as u64 + keys * JOURNAL_REQUEST_BYTES;
    if journal.ensure(bytes).is_ok() {
        return Ok(());
    }
    journal.ensure_for_removal(bytes);
    match journal.may_remove() {
        true => Ok(()),
        false => Err(around.server.persistence.failure()),
    }
}
