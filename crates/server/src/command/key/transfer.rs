//! A key's value under another name, in another database or at another server: RENAME, COPY, MOVE, DUMP and
//! RESTORE.
//!
//! Where there are two places, both are locked before either is looked at, and the expiry goes along.

use keyspace::collection::copy::Original;
use keyspace::{Detached, Key, LargeValue, Type};
use rdb::Payload;

use super::payload::{self, BAD_DATA, Options, Restored};
use crate::command::combining::{Attempt, Made, read_keys};
use crate::command::deferred::do_apart;
use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Setting;
use crate::limits::DUMP_APART_BYTES;
use crate::observe::notify::Event;
use crate::observe::readings::{Slot, Underway};
use crate::request::Pieces;
use crate::server::Server;
use crate::store::{Pair, Shard, Shards};

/// Bytes of a collection whose copy takes about as long as one step as `combining` counts them.
const COPY_STEP_BYTES: usize = 32;

/// Nanoseconds that a RESTORE may take before a thread does it. In builds for tests any collection of some
/// hundred items is too large.
const RESTORE_NS: u64 = if cfg!(any(debug_assertions, feature = "faults")) {
    1
} else {
    2_000_000
};

const BUSY: Failure = Failure::of("BUSYKEY Target key name already exists.");
const SAME_OBJECT: Failure = Failure::of("ERR source and destination objects are the same");

pub(super) fn rename(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    match give_name(context, args, true)? {
        Named::Given | Named::InUse => context.reply.ok(),
        Named::Later => return Ok(Next::Retry),
    }
    Ok(Next::Done)
}

pub(super) fn renamenx(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    match give_name(context, args, false)? {
        Named::Given => context.reply.integer(1),
        Named::InUse => context.reply.integer(0),
        Named::Later => return Ok(Next::Retry),
    }
    Ok(Next::Done)
}

/// Result of renaming a key.
enum Named {
    Given,
    /// Another key has the name.
    InUse,
    /// A transaction or command needs the values of a shard now.
    Later,
}

/// Gives the key in the first argument the name in the second; `replace` says that the name may be in use.
fn give_name(context: &mut Context<'_>, args: &Args<'_>, replace: bool) -> Result<Named, Failure> {
    let (from, to) = (args.key(1), args.key(2));
    let mut shards = context.store.lock_keys([from, to].into_iter());
    if shards.of(from).find_to_change(from).is_none() {
        return Err(failure::NO_SUCH_KEY);
    }
    if !replace && shards.of(to).find_to_change(to).is_some() {
        return Ok(Named::InUse);
    }
    let must_stay = shards.of(from).holds_file(from) || shards.of(from).has_cold_leaves(from);
    if must_stay && !context.in_transaction {
        let own_pins = context.own_pins(context.store.db, to);
        if shards.of(to).is_relied_on(own_pins) {
            return Ok(Named::Later);
        }
    }
    if from.bytes != to.bytes {
        shards.of(from).check_log_of_copy(from, to)?;
        let value = shards.of(from).detach(from);
        if let Some(value) = value {
            shards.of(to).attach(to, value);
            shards.of(from).tell(Event::RENAME_FROM, from);
            shards.of(to).tell(Event::RENAME_TO, to);
        }
    }
    Ok(Named::Given)
}

pub(super) fn copy(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (from, to) = (args.key(1), args.key(2));
    let own = context.store.db;
    let (db, replace) = parse_copy(context, args)?;
    if context.server.cluster.is_some() && (own, db) != (0, 0) {
        return Err(Failure::of(
            "ERR Copying to another database is not allowed in cluster mode",
        ));
    }
    if db == own && from.bytes == to.bytes {
        return Err(SAME_OBJECT);
    }
    let Some(mut attempt) = Attempt::begin(context, args)? else {
        return Ok(Next::Retry);
    };
    if !attempt.has_made() {
        context.foresee_copy(from)?;
    }
    let own_pins = context.own_pins(db, to);
    let mut places = match db == own {
        true => Places::One(context.store.lock_keys([from, to].into_iter())),
        false => Places::Two(context.store.lock_across((own, from), (db, to))),
    };
    let is_relied_on = places.target(to, |shard| shard.is_relied_on(own_pins));
    let must_wait = is_relied_on && !context.in_transaction;
    if must_wait && places.source(from, |shard| shard.holds_file(from)) {
        return Ok(Next::Retry);
    }
    // Whether the name is free is asked first: a value that has no place to go need not be copied.
    let is_free = replace || places.target(to, |shard| shard.find_to_change(to).is_none());
    let copied = places.source(from, |shard| {
        copied(context, shard, from, (to, is_free), &mut attempt)
    })?;
    let value = match copied {
        Copied::Value(value) => value,
        Copied::Later => {
            drop(places);
            return attempt.wait_for_slot(context, args);
        }
        Copied::Apart(source, reading) => {
            drop(places);
            let server = context.server;
            return attempt.go_apart(context, args, reading, move || {
                let (original, of, expiry) = source;
                let copy = Detached::tree(original.copy(), of, expiry);
                Made::new(server, 1, Some(copy))
            });
        }
    };
    let is_copied = value.is_some();
    if let Some(value) = value {
        places.target(to, |shard| {
            shard.attach(to, value);
            shard.tell(Event::COPY_TO, to);
        });
    }
    drop(places);
    context.reply.integer(i64::from(is_copied));
    Ok(Next::Done)
}

/// The locked shards of two keys, of one database or two.
#[expect(clippy::large_enum_variant, reason = "there is one, on the stack")]
enum Places<'a> {
    One(Shards<'a>),
    Two(Pair<'a>),
}

impl Places<'_> {
    fn source<R>(&mut self, key: Key<'_>, act: impl FnOnce(&mut Shard<'_>) -> R) -> R {
        match self {
            Places::One(shards) => act(&mut shards.of(key)),
            Places::Two(both) => act(&mut both.first),
        }
    }

    fn target<R>(&mut self, key: Key<'_>, act: impl FnOnce(&mut Shard<'_>) -> R) -> R {
        match self {
            Places::One(shards) => act(&mut shards.of(key)),
            Places::Two(both) => act(&mut both.second),
        }
    }
}

/// Result of copying a value.
enum Copied {
    /// None: there is no such key, or no place for it.
    Value(Option<Detached>),
    /// A thread is to copy it.
    Apart((Original, Type, Option<i64>), (Underway, Slot)),
    /// No slot for a thread is free.
    Later,
}

/// A copy of the value of `from`, whose shard is locked, for the key `to`. `is_free`: that key may get it.
///
/// # Errors
/// There is no space on the disk.
fn copied(
    context: &Context<'_>,
    shard: &mut Shard<'_>,
    from: Key<'_>,
    (to, is_free): (Key<'_>, bool),
    attempt: &mut Attempt,
) -> Result<Copied, Failure> {
    if is_free {
        shard.check_log_of_copy(from, to)?;
        let made = attempt.made(|reading| {
            // An expired key is removed now, and that is a change.
            shard.contains(from);
            !reading.is_changed(from)
        });
        if let Some(mut made) = made {
            return Ok(Copied::Value(made.take()));
        }
    }
    let Some(source) = shard.read(from).filter(|_| is_free) else {
        return Ok(Copied::Value(None));
    };
    let steps = (source.tree_bytes() / COPY_STEP_BYTES) as u64;
    if !attempt.goes_apart(context, steps) {
        return Ok(Copied::Value(Some(source.copy())));
    }
    let (of, expiry) = (source.as_ref().value_type(), source.expiry());
    let observe = |key, reason| shard.observe(key, reason);
    let Some(reading) = read_keys(context, std::iter::once(from), observe) else {
        return Ok(Copied::Later);
    };
    let original = shard.find(from).and_then(|mut source| source.original());
    let source = (
        original.expect("of other values a copy takes no steps"),
        of,
        expiry,
    );
    Ok(Copied::Apart(source, reading))
}

/// The options behind COPY's keys: the database the copy goes to, and whether it may replace a key there.
fn parse_copy(context: &Context<'_>, args: &Args<'_>) -> Result<(usize, bool), Failure> {
    let (mut db, mut replace) = (context.store.db, false);
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "REPLACE") {
            replace = true;
        } else if args.is(at, "DB") && at + 1 < args.len() {
            at += 1;
            db = database_at(context, args, at)?;
        } else {
            return Err(failure::SYNTAX);
        }
        at += 1;
    }
    Ok((db, replace))
}

/// The database beside its own that a COPY reaches into, if its options are right.
pub(super) fn copy_target(args: &Args<'_>) -> Option<usize> {
    let mut target = None;
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "DB") && at + 1 < args.len() {
            at += 1;
            target = Some(usize::try_from(args.integer_i32(at).ok()?).ok()?);
        }
        at += 1;
    }
    target
}

/// The database that a MOVE reaches into.
pub(super) fn move_target(args: &Args<'_>) -> Option<usize> {
    usize::try_from(args.integer_i32(2).ok()?).ok()
}

/// The database that the argument at `at` names.
fn database_at(context: &Context<'_>, args: &Args<'_>, at: usize) -> Result<usize, Failure> {
    let index = args.integer_i32(at)?;
    usize::try_from(index)
        .ok()
        .filter(|&index| index < context.server.keyspace.databases())
        .ok_or(failure::DB_INDEX)
}

pub(super) fn move_key(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if context.server.cluster.is_some() {
        return Err(Failure::of("ERR MOVE is not allowed in cluster mode"));
    }
    let key = args.key(1);
    let (own, db) = (context.store.db, database_at(context, args, 2)?);
    if db == own {
        return Err(SAME_OBJECT);
    }
    let mut both = context.store.lock_across((own, key), (db, key));
    let must_stay = both.first.holds_file(key) || both.first.has_cold_leaves(key);
    if must_stay && !context.in_transaction && both.second.is_relied_on(context.own_pins(db, key)) {
        drop(both);
        return Ok(Next::Retry);
    }
    let Pair { first, second } = &mut both;
    let moved = move_between(first, second, key)?;
    drop(both);
    context.reply.integer(i64::from(moved));
    Ok(Next::Done)
}

/// Moves a key unless it is there already; whether it was moved.
fn move_between(
    source: &mut Shard<'_>,
    target: &mut Shard<'_>,
    key: Key<'_>,
) -> Result<bool, Failure> {
    let is_there = source.find_to_change(key).is_some();
    if target.find_to_change(key).is_some() || !is_there {
        return Ok(false);
    }
    source.check_log_of_copy(key, key)?;
    let Some(value) = source.detach(key) else {
        return Ok(false);
    };
    target.attach(key, value);
    source.tell(Event::MOVE_FROM, key);
    target.tell(Event::MOVE_TO, key);
    Ok(true)
}

/// `DUMP key`
pub(super) fn dump(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let compresses = context.server.settings.flag(Setting::RdbCompression);
    let key = args.key(1);
    let value = context
        .store
        .lock(key)
        .read(key)
        .map(|mut entry| entry.still());
    let Some(value) = value else {
        context.reply.null();
        return Ok(Next::Done);
    };
    let bytes = value.bytes();
    context.check_reply(bytes)?;
    let dumped = move || LargeValue::new(payload::dump(&value, compresses).into());
    if bytes < DUMP_APART_BYTES {
        let payload = dumped();
        context.reply.part(&payload, 0..payload.len());
        return Ok(Next::Done);
    }
    let protocol = context.reply.protocol();
    do_apart(context, args, move || {
        let mut pieces = Pieces::default();
        pieces.write_own(protocol, dumped());
        Ok(pieces)
    })
}

/// What a thread says of the value of a payload.
const ITEMS: u64 = 1;
const OVER: u64 = 2;
const FULL: u64 = 3;
const BAD: u64 = 0;

/// What a thread makes of a payload with many items.
fn make(
    server: &'static Server,
    key: Key<'_>,
    payload: &Payload<'_>,
    limits: (usize, i64),
) -> Made {
    let (len, value) = match Restored::read(server, key, payload, limits, &mut || true) {
        Ok(Some(Restored::Items(items))) => (ITEMS, Some(items)),
        Ok(_) => (OVER, None),
        Err(failure) if failure == failure::OUT_OF_MEMORY => (FULL, None),
        Err(_) => (BAD, None),
    };
    Made::new(server, len, value)
}

/// The value that a thread has made.
fn taken(mut made: Made) -> Result<Restored, Failure> {
    match (made.len(), made.take()) {
        (_, Some(items)) => Ok(Restored::Items(items)),
        (OVER, None) => Ok(Restored::Over),
        (FULL, None) => Err(failure::OUT_OF_MEMORY),
        _ => Err(BAD_DATA),
    }
}

/// The value of a payload; or what becomes of the request while a thread makes it, which is where it has so
/// many items that others would wait.
fn restored(
    context: &mut Context<'_>,
    args: &Args<'_>,
    (key, payload, limits): (Key<'_>, &Payload<'_>, (usize, i64)),
    mut attempt: Attempt,
) -> Result<Result<Restored, Next>, Failure> {
    if let Some(made) = attempt.made(|_| true) {
        return taken(made).map(Ok);
    }
    let may_go_apart = attempt.goes_apart(context, u64::MAX);
    let began = sys::clock::ticks();
    let is_early = || {
        let spent = sys::clock::ticks().saturating_sub(began);
        sys::clock::ticks_to_ns(spent) < RESTORE_NS
    };
    if !(may_go_apart && attempt.wants_slot()) {
        let goes_on = &mut || !may_go_apart || is_early();
        if let Some(value) = Restored::read(context.server, key, payload, limits, goes_on)? {
            return Ok(Ok(value));
        }
    }
    let Some(reading) = read_keys(context, std::iter::empty(), |_, _| ()) else {
        return attempt.wait_for_slot(context, args).map(Err);
    };
    let (server, hash) = (context.server, key.hash);
    let (name, bytes) = (key.bytes.to_vec(), args.get(3).to_vec());
    let task = move || {
        let key = Key { bytes: &name, hash };
        let payload = Payload::check(&bytes).expect("it was checked before");
        make(server, key, &payload, limits)
    };
    attempt.go_apart(context, args, reading, task).map(Err)
}

/// `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`
pub(super) fn restore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let Some(attempt) = Attempt::begin(context, args)? else {
        return Ok(Next::Retry);
    };
    let options = Options::parse(args)?;
    let (key, now) = (args.key(1), context.store.now);
    if !options.replaces && context.store.lock(key).find_to_change(key).is_some() {
        return Err(BUSY);
    }
    let expiry = options.expiry(args, 2, now)?;
    let most = context.server.longest_made();
    let (payload, len) = payload::check(args, 3, most)?;
    // What is compressed is at least as large as its payload.
    context.foresee_bytes(len.max(args.get(3).len()))?;
    let mut value = match restored(context, args, (key, &payload, (most, now)), attempt)? {
        Ok(value) => value,
        Err(next) => return Ok(next),
    };
    let mut shard = context.store.lock(key);
    // Another worker may have made it meanwhile.
    if !options.replaces && shard.contains(key) {
        return Err(BUSY);
    }
    let is_over = expiry.is_some_and(|at| at <= now);
    match value.give().filter(|_| !is_over) {
        Some(new) => {
            shard.restore(key, new.expiry(expiry), options.used);
            shard.tell(Event::RESTORE, key);
        }
        None => {
            if shard.remove(key) {
                shard.tell(Event::DEL, key);
            }
        }
    }
    drop(shard);
    context.reply.ok();
    Ok(Next::Done)
}
