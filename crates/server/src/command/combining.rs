//! Commands that make something of large collections: of several sets, or a copy of one collection. A thread
//! reads the collections as they were at one moment, while nothing is locked and the connection waits.
//!
//! What is returned is of that moment. What is stored has to be of the moment at which it is stored, so the
//! command runs again when the value is made: it takes the value if none of the collections has changed since
//! ([`crate::observe::readings`]). Otherwise they are read again, the last time ([`COMBINE_TRIES`]) under the
//! locks of their shards. Small ones are read under the locks at once, and so are all in a transaction.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use keyspace::{Detached, Key, Keyspace, New, reason};

use super::deferred::do_apart;
use super::park::Wait;
use super::{Args, Context, Failure, Handled, Next, failure};
use crate::observe::notify::Event;
use crate::observe::readings::{KeysRead, Slot, Underway};
use crate::request::Pieces;
use crate::server::Server;
use crate::shared::Outcome;
use crate::shared::memory::Growing;
use crate::store::{Shard, Shards};

/// A command that looks at so many items, which takes some milliseconds, is done by a thread. Builds for
/// tests have a small number here, because the sets of tests are small.
const COMBINE_APART: u64 = if cfg!(any(debug_assertions, feature = "faults")) {
    8
} else {
    50_000
};
/// How many values may be in the making, or made and not yet stored. `maxmemory` does not count them. Further
/// commands wait.
const COMBINATIONS: usize = 2;
/// How often a thread reads sets that change before they are read under their locks.
const COMBINE_TRIES: u32 = 3;

const NOT_DONE: Failure = Failure::of("ERR the command was not done");
/// How soon a command whose wait was ended looks again for its value.
const LOOK_MS: i64 = 20;
/// How soon a command for which there was no slot looks for one again.
const SLOT_MS: i64 = 2;

/// Sets as they were at one moment, and what is to be made of them.
pub(super) trait Combination: Send + 'static {
    /// How many items are looked at, about, if a thread can do it; else 0.
    fn steps(&self) -> u64;

    /// Makes the value for a key. `shards`: those of the keys of the sets, if they are locked.
    fn make(&self, target: &[u8], shards: Option<(&mut Shards<'_>, &[Key<'_>])>) -> Made;
}

/// A value that is to be stored.
pub(super) struct Made {
    keyspace: &'static Keyspace,
    len: u64,
    value: Option<Detached>,
    /// There was no room for it when it had so many bytes.
    refused: Option<usize>,
}

impl Made {
    /// A value of so many items. None: the key is to be removed.
    pub(super) fn new(server: &'static Server, len: u64, value: Option<Detached>) -> Made {
        let keyspace = &server.keyspace;
        Made {
            keyspace,
            len,
            value,
            refused: None,
        }
    }

    /// How many items it was made with.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// A value for which there was no room.
    pub(super) fn refused(server: &'static Server, bytes: usize) -> Made {
        let mut made = Made::new(server, 0, None);
        made.refused = Some(bytes);
        made
    }

    /// The value, which is taken once.
    pub(super) fn take(&mut self) -> Option<Detached> {
        self.value.take()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.keyspace.discard_value(value);
        }
    }
}

/// A command of the connection for which a thread makes a value.
pub(crate) struct Combining {
    db: usize,
    request: Vec<Box<[u8]>>,
    /// How many runs have started a thread.
    tries: u32,
    /// None: there was no slot for another thread.
    making: Option<Started>,
}

/// A value that is made, and what it is made of.
struct Started {
    value: Receiver<(Made, Slot)>,
    reading: Underway,
}

impl Combining {
    fn new(
        context: &Context<'_>,
        args: &Args<'_>,
        tries: u32,
        making: Option<Started>,
    ) -> Box<Combining> {
        Box::new(Combining {
            db: context.store.db,
            request: args.from(0).map(Box::from).collect(),
            tries,
            making,
        })
    }

    /// Whether it is for this request.
    fn is_for(&self, db: usize, args: &Args<'_>) -> bool {
        self.db == db && args.from(0).eq(self.request.iter().map(|word| &word[..]))
    }
}

/// One run of a command that makes something.
#[derive(Default)]
pub(super) struct Attempt {
    /// What a thread has made since an earlier run.
    made: Option<(Made, Underway)>,
    /// How many earlier runs have started a thread.
    tries: u32,
    /// Whether it is known that a thread is needed, and there was no slot for one.
    wants_slot: bool,
}

impl Attempt {
    /// Begins a run. None: the connection waits for its thread, and the command is to be tried again.
    ///
    /// # Errors
    /// The thread has ended without a value.
    pub(super) fn begin(
        context: &mut Context<'_>,
        args: &Args<'_>,
    ) -> Result<Option<Attempt>, Failure> {
        let before = context.session.combining.take();
        let Some(mut before) = before.filter(|before| before.is_for(context.store.db, args)) else {
            return Ok(Some(Attempt::default()));
        };
        let mut attempt = Attempt {
            made: None,
            tries: before.tries,
            wants_slot: before.making.is_none(),
        };
        if let Some(making) = before.making.take() {
            match making.value.try_recv() {
                Ok((made, _)) => attempt.made = Some((made, making.reading)),
                Err(TryRecvError::Disconnected) => return Err(NOT_DONE),
                // CLIENT UNBLOCK, or the thread is a moment behind.
                Err(TryRecvError::Empty) => {
                    before.making = Some(making);
                    wait_for(context, before, Some(LOOK_MS));
                    return Ok(None);
                }
            }
        }
        Ok(Some(attempt))
    }

    /// Whether a thread has made a value.
    pub(super) fn has_made(&self) -> bool {
        self.made.is_some()
    }

    /// Runs the command again after room was made for what it makes, of which `bytes` were too much.
    fn try_with_room(
        mut self,
        context: &mut Context<'_>,
        args: &Args<'_>,
        bytes: usize,
    ) -> Handled {
        if self.tries >= COMBINE_TRIES {
            return Err(failure::OUT_OF_MEMORY);
        }
        context.make_room_beyond(bytes)?;
        self.tries += 1;
        self.wait_for_slot(context, args)
    }

    /// Lets the connection wait for a slot: [`read_keys`] has found none.
    pub(super) fn wait_for_slot(self, context: &mut Context<'_>, args: &Args<'_>) -> Handled {
        let combining = Combining::new(context, args, self.tries, None);
        wait_for(context, combining, Some(SLOT_MS));
        Ok(Next::Retry)
    }

    /// The value that a thread has made, if it may be stored: `is_current` says whether its sources are
    /// unchanged.
    pub(super) fn made(&mut self, is_current: impl FnOnce(&Underway) -> bool) -> Option<Made> {
        let (made, reading) = self.made.take()?;
        is_current(&reading).then_some(made)
    }

    /// Whether an earlier run has found no slot for its thread.
    pub(super) fn wants_slot(&self) -> bool {
        self.wants_slot
    }

    /// Whether so many steps are to be done by a thread.
    pub(super) fn goes_apart(&self, context: &Context<'_>, steps: u64) -> bool {
        steps >= COMBINE_APART && context.may_wait() && self.tries < COMBINE_TRIES
    }

    /// Starts the thread that makes a value, for which the connection waits. `reading` was begun under the
    /// locks that are released now.
    pub(super) fn go_apart(
        self,
        context: &mut Context<'_>,
        args: &Args<'_>,
        (reading, slot): (Underway, Slot),
        make: impl FnOnce() -> Made + Send + 'static,
    ) -> Handled {
        let (sender, value) = channel();
        let (start, started) = channel();
        let (server, client) = (context.server, Arc::clone(&context.session.client));
        let thread = std::thread::Builder::new().name("combine".into());
        let spawned = thread.spawn(move || {
            sys::process::work_in_background();
            // The connection waits by now.
            if started.recv().is_ok() {
                // The connection may be gone.
                let _ = sender.send((make(), slot));
                server.unblock(&client, Outcome::TimeIsUp);
            }
        });
        spawned
            .map_err(|error| Failure::new(format!("ERR no thread could be started: {error}")))?;
        let making = Some(Started { value, reading });
        let combining = Combining::new(context, args, self.tries + 1, making);
        wait_for(context, combining, None);
        // The thread is there: it waits for this.
        let _ = start.send(());
        Ok(Next::Retry)
    }
}

/// Registers a reading of keys, whose shards are locked, and takes a slot for the thread. None: no slot is
/// free.
pub(super) fn read_keys<'k>(
    context: &Context<'_>,
    keys: impl Iterator<Item = Key<'k>>,
    mut observe: impl FnMut(Key<'k>, u8),
) -> Option<(Underway, Slot)> {
    let readings = &context.store.observers.readings;
    let slot = readings.slot(COMBINATIONS)?;
    let mut reading = KeysRead::of(context.store.db);
    for key in keys {
        observe(key, reason::READ);
        reading.add(key);
    }
    Some((readings.begin(reading), slot))
}

/// Gives a key what is made of the sets of other keys. `read` takes their moments; `None` if items that are
/// needed left memory since they were found there, so that the command is to be tried again.
pub(super) fn store<C: Combination>(
    context: &mut Context<'_>,
    args: &Args<'_>,
    (target, keys): (Key<'_>, &[Key<'_>]),
    event: Event,
    read: impl FnOnce(&mut Shards<'_>) -> Result<Option<C>, Failure>,
) -> Handled {
    let Some(mut attempt) = Attempt::begin(context, args)? else {
        return Ok(Next::Retry);
    };
    let locked = std::iter::once(target).chain(keys.iter().copied());
    let mut shards = context.store.lock_keys(locked);
    let made = attempt.made(|reading| {
        keys.iter().all(|&key| {
            // An expired key is removed now, and that is a change.
            shards.of(key).contains(key);
            !reading.is_changed(key)
        })
    });
    let made = match made {
        Some(made) => made,
        None => {
            let Some(combination) = read(&mut shards)? else {
                return Ok(Next::Retry);
            };
            if attempt.goes_apart(context, combination.steps()) {
                let observe = |key, reason| shards.of(key).observe(key, reason);
                let Some(reading) = read_keys(context, keys.iter().copied(), observe) else {
                    drop(shards);
                    return attempt.wait_for_slot(context, args);
                };
                drop(shards);
                let name: Box<[u8]> = target.bytes.into();
                let make = move || combination.make(&name, None);
                return attempt.go_apart(context, args, reading, make);
            }
            combination.make(target.bytes, Some((&mut shards, keys)))
        }
    };
    if let Some(bytes) = made.refused {
        drop(shards);
        return attempt.try_with_room(context, args, bytes);
    }
    let len = made.len;
    put(shards.of(target), target, made, event);
    drop(shards);
    context.reply.integer(len as i64);
    Ok(Next::Done)
}

/// Lets the connection wait until its value is made, or so many ms; then its command runs again.
fn wait_for(context: &mut Context<'_>, combining: Box<Combining>, ms: Option<i64>) {
    context.session.combining = Some(combining);
    wait(context, ms);
}

fn wait(context: &mut Context<'_>, ms: Option<i64>) {
    let until_ms = ms.map(|ms| context.store.now + ms);
    let _: Next = context.park(Wait {
        until_ms,
        durable: None,
        repeats: true,
        give_up: |_, _| {},
    });
}

fn put(mut shard: Shard<'_>, target: Key<'_>, mut made: Made, event: Event) {
    match made.take() {
        None => {
            if shard.remove(target) {
                shard.tell(Event::DEL, target);
            }
        }
        Some(mut value) => {
            shard.write(target, New::detached(&mut value));
            shard.tell(event, target);
        }
    }
}

/// Whether a reply for which so many items are looked at is made on a thread.
pub(super) fn is_apart(context: &Context<'_>, steps: u64) -> bool {
    steps >= COMBINE_APART && context.may_defer()
}

/// Lets a thread make a reply, as far as there is room for it.
pub(super) fn answer(
    context: &mut Context<'_>,
    args: &Args<'_>,
    reply: impl FnOnce(&mut Growing<'_>) -> Pieces + Send + 'static,
) -> Handled {
    let readings = &context.store.observers.readings;
    let Some(slot) = readings.slot(COMBINATIONS) else {
        wait(context, Some(SLOT_MS));
        return Ok(Next::Retry);
    };
    let server = context.server;
    do_apart(context, args, move || {
        let mut growing = Growing::on_a_thread(server);
        let pieces = reply(&mut growing);
        drop(slot);
        match growing.refused() {
            None => Ok(pieces),
            Some(_) => Err(failure::OUT_OF_MEMORY),
        }
    })
}
