//! Multi-read: the rest of a command that reads very many keys.
//!
//! First the keys are sorted by bucket, so that those of a shard are read under one lock. Then come *passes*
//! over what is stale, and the moment at which the rest is read; see [`crate::observe::multi_read`]. The
//! reply is written behind that, from what was found.

use std::sync::Arc;

use keyspace::{INLINE_VALUE_MAX, Key, LargeValue, ShardSet, Stored, reason};
use resp::reply::Writer;

use crate::command::deferred::{Around, Progress, Slice, Work};
use crate::command::{Context, Next};
use crate::limits::{MULTI_READ_KEYS, MULTI_READ_PASSES, MULTI_READ_REST, PIECE_BYTES, SLICE_KEYS};
use crate::observe::Observers;
use crate::observe::multi_read::Stale;
use crate::request::{Args, Failure, Pieces, failure};
use crate::shared::memory::Growing;
use crate::store::Shard;

const _: () = assert!(
    INLINE_VALUE_MAX <= PIECE_BYTES,
    "a value that is copied fits into a piece"
);

/// How far ahead of a key that is read its memory is asked for.
const AHEAD: usize = 8;

/// Information read from the keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Their values, one by one.
    Values,
    /// How many there are.
    Count {
        /// Whether that is an access.
        touches: bool,
    },
}

/// Leaves a command on many keys, which are all of its arguments, for later, unless there are too few
/// of them, or it has to be done at once.
///
/// A connection with tracking gets its reply at once, because invalidations come after it. With values in the
/// log alone every connection does: they were read for the command, and stay until it has run.
pub(crate) fn multi_read(
    context: &mut Context<'_>,
    args: &Args<'_>,
    wanted: Wanted,
) -> Option<Next> {
    if args.len() <= MULTI_READ_KEYS || !context.may_defer() || context.session.listens {
        return None;
    }
    if wanted == Wanted::Values && context.server.offload.is_on() {
        return None;
    }
    let (observers, shards) = (context.store.observers, context.store.keyspace.shards());
    let stale = Arc::new(Stale::all(context.store.db, args.len() - 1, shards));
    observers.multi_reads.begin(&stale);
    let later = context.defer(
        args,
        MultiRead {
            wanted,
            observers,
            stale,
            shards: ShardSet::default(),
            ends: Vec::new(),
            order: Vec::new(),
            found: Vec::new(),
            values: Vec::new(),
            expiring: Vec::new(),
            growing: Growing::of_reply(context.server),
            problem: None,
            passes: 0,
            phase: Phase::Count(0),
            answer: Pieces::default(),
        },
    );
    Some(later)
}

/// Result for a key.
enum Found {
    /// Not looked up yet.
    Unknown,
    Nothing,
    /// It is there, which is all that is wanted.
    Something,
    /// A value: a piece of those that were copied, and the place in it.
    Copied {
        piece: u32,
        at: u32,
        len: u32,
    },
    Shared(LargeValue),
}

/// Next step, and the key or bucket at which it begins.
enum Phase {
    Count(usize),
    Sort(usize),
    Read(usize),
    Answer(usize),
}

/// See the module. Keys are known by their number among all.
struct MultiRead {
    wanted: Wanted,
    observers: &'static Observers,
    stale: Arc<Stale>,
    /// Those of all keys.
    shards: ShardSet,
    /// Where the keys of each bucket end in `order`.
    ends: Vec<u32>,
    order: Vec<u32>,
    found: Vec<Found>,
    /// Values that were copied, in pieces that never move.
    values: Vec<Vec<u8>>,
    /// The time of keys that will expire (Unix, ms), and their bucket.
    expiring: Vec<(i64, u32)>,
    /// Bytes of values that were copied.
    growing: Growing<'static>,
    /// Why a value could not be read.
    problem: Option<Failure>,
    passes: usize,
    phase: Phase,
    answer: Pieces,
}

impl Drop for MultiRead {
    fn drop(&mut self) {
        self.observers.multi_reads.end(&self.stale);
    }
}

impl Work for MultiRead {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let keys = around.args.len() - 1;
        while slice.goes_on() {
            match self.phase {
                Phase::Count(from) if from < keys => self.count(around, from),
                Phase::Count(_) => self.begin_to_sort(keys),
                Phase::Sort(from) if from < keys => self.sort(around, from),
                Phase::Sort(_) => self.phase = Phase::Read(0),
                Phase::Read(from) => match self.stale.next(from) {
                    Some(bucket) => self.read(around, bucket),
                    None => self.end_pass(around),
                },
                Phase::Answer(_) if self.problem.is_some() => {
                    return Progress::Done(self.problem.take().map_or(Ok(Pieces::default()), Err));
                }
                Phase::Answer(from) if from < keys => self.write(around, from),
                Phase::Answer(_) => return Progress::Done(Ok(self.answer(around, keys))),
            }
        }
        Progress::More
    }

    fn memory(&self) -> usize {
        let tables = size_of_val(&*self.ends) + size_of_val(&*self.order);
        let found = size_of_val(&*self.found) + size_of_val(&*self.expiring);
        tables + found + self.values.len() * PIECE_BYTES + self.answer.memory()
    }
}

impl MultiRead {
    /// Counts the keys of each bucket.
    fn count(&mut self, around: &Around<'_>, from: usize) {
        if from == 0 {
            self.ends.resize(self.stale.buckets(), 0);
        }
        let until = (from + SLICE_KEYS).min(around.args.len() - 1);
        for number in from..until {
            let bucket = self.stale.bucket_of(key(around, number).hash);
            self.ends[bucket] += 1;
            self.shards.add(self.stale.shard_of(bucket));
        }
        self.phase = Phase::Count(until);
    }

    /// Makes of how many keys each bucket has where they begin.
    fn begin_to_sort(&mut self, keys: usize) {
        let mut sum = 0;
        for end in &mut self.ends {
            sum += std::mem::replace(end, sum);
        }
        self.order.resize(keys, 0);
        self.found.resize_with(keys, || Found::Unknown);
        self.phase = Phase::Sort(0);
    }

    /// Sorts keys into their buckets. The beginning of each bucket becomes its end.
    fn sort(&mut self, around: &Around<'_>, from: usize) {
        let until = (from + SLICE_KEYS).min(around.args.len() - 1);
        for number in from..until {
            let end = &mut self.ends[self.stale.bucket_of(key(around, number).hash)];
            self.order[*end as usize] = number as u32;
            *end += 1;
        }
        self.phase = Phase::Sort(until);
    }

    /// Where the keys of a bucket are in `order`.
    fn keys_of(&self, bucket: usize) -> std::ops::Range<usize> {
        let begin = bucket
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        begin..self.ends[bucket] as usize
    }

    /// Reads some stale buckets of one shard.
    fn read(&mut self, around: &Around<'_>, first: usize) {
        let stale = Arc::clone(&self.stale);
        let own = stale.shard_of(first);
        let mut shard = around.store.lock_hash(stale.db, stale.hash_of(first));
        shard.observe_all(reason::MULTI_READ);
        let (mut bucket, mut keys) = (first, 0);
        loop {
            stale.clear(bucket);
            for at in self.keys_of(bucket) {
                self.look_ahead(around, at);
                self.take(around, &mut shard, self.order[at] as usize);
                keys += 1;
            }
            match stale.next(bucket + 1) {
                Some(next) if keys < SLICE_KEYS && stale.shard_of(next) == own => bucket = next,
                _ => break,
            }
        }
        self.phase = Phase::Read(bucket + 1);
    }

    /// Asks for the memory of keys that come soon, in the pass that reads all of them.
    fn look_ahead(&self, around: &Around<'_>, at: usize) {
        if self.passes > 0 {
            return;
        }
        let hash = |at: usize| Some(key(around, *self.order.get(at)? as usize).hash);
        let database = around.store.database();
        if let Some(hash) = hash(at + 2 * AHEAD) {
            database.prefetch_bucket(hash);
        }
        if let Some(hash) = hash(at + AHEAD) {
            database.prefetch_entry(hash);
        }
    }

    /// Reads a key. Only the first time is an access, and a hit or a miss.
    fn take(&mut self, around: &Around<'_>, shard: &mut Shard<'_>, number: usize) {
        let key = key(around, number);
        let is_first = matches!(self.found[number], Found::Unknown);
        let entry = match self.wanted {
            Wanted::Values if is_first => shard.read(key),
            Wanted::Count { .. } if is_first => shard.peek(key),
            _ => shard.find(key),
        };
        let Some(mut entry) = entry else {
            self.found[number] = Found::Nothing;
            return;
        };
        if let Some(expiry) = entry.expiry() {
            let bucket = self.stale.bucket_of(key.hash);
            self.expiring.push((expiry, bucket as u32));
        }
        if let Wanted::Count { touches } = self.wanted {
            if touches && is_first {
                entry.touch();
            }
            self.found[number] = Found::Something;
            return;
        }
        let text = match entry.string() {
            Ok(text) if self.problem.is_none() => text,
            _ => {
                self.found[number] = Found::Nothing;
                return;
            }
        };
        // They are copied once more into the reply.
        if text.value_len() <= INLINE_VALUE_MAX && !self.growing.may_go_on(text.value_len()) {
            self.problem = Some(failure::OUT_OF_MEMORY);
            return;
        }
        self.found[number] = if text.cold().is_some() {
            // Values have begun to leave memory since the command began.
            match text.bytes_now() {
                Ok(bytes) if bytes.len() <= INLINE_VALUE_MAX => keep(&mut self.values, &bytes),
                Ok(bytes) => Found::Shared(LargeValue::new(bytes.into_owned().into())),
                Err(problem) => {
                    self.problem = Some(problem);
                    Found::Nothing
                }
            }
        } else {
            match text.value() {
                Stored::Inline(bytes) => keep(&mut self.values, bytes),
                Stored::Large(large) => Found::Shared(large.share()),
            }
        };
    }

    /// Decides what comes behind a pass: another, or the moment at which the rest is read.
    fn end_pass(&mut self, around: &Around<'_>) {
        let now = around.store.now;
        let over = self.expiring.iter().filter(|&&(expiry, _)| now > expiry);
        over.for_each(|&(_, bucket)| self.stale.set(bucket as usize));
        self.expiring.retain(|&(expiry, _)| now <= expiry);
        self.passes += 1;
        if self.stale.count() > MULTI_READ_REST && self.passes < MULTI_READ_PASSES {
            self.phase = Phase::Read(0);
            return;
        }
        let stale = Arc::clone(&self.stale);
        let mut shards = around.store.lock_shards(self.shards.clone());
        let mut from = 0;
        while let Some(bucket) = stale.next(from) {
            stale.clear(bucket);
            for at in self.keys_of(bucket) {
                let number = self.order[at] as usize;
                let mut shard = shards.of(key(around, number));
                self.take(around, &mut shard, number);
            }
            from = bucket + 1;
        }
        self.phase = Phase::Answer(0);
    }

    /// Writes what was found of some keys.
    fn write(&mut self, around: &Around<'_>, from: usize) {
        let until = match self.wanted {
            Wanted::Count { .. } => self.found.len(),
            Wanted::Values => (from + SLICE_KEYS).min(self.found.len()),
        };
        self.phase = Phase::Answer(until);
        if self.wanted != Wanted::Values {
            return;
        }
        for found in &mut self.found[from..until] {
            match std::mem::replace(found, Found::Nothing) {
                Found::Copied { piece, at, len } => {
                    let value = &self.values[piece as usize][at as usize..][..len as usize];
                    self.answer
                        .write(around.protocol, |reply| reply.bulk(value));
                }
                Found::Shared(value) => self.answer.write_large(around.protocol, value),
                _ => self.answer.write(around.protocol, |reply| reply.null()),
            }
        }
    }

    /// The whole reply.
    fn answer(&mut self, around: &Around<'_>, keys: usize) -> Pieces {
        let mut answer = std::mem::take(&mut self.answer);
        let mut head = Vec::new();
        let mut reply = Writer::new(&mut head, around.protocol);
        match self.wanted {
            Wanted::Values => reply.array(keys),
            Wanted::Count { .. } => {
                let there = |found: &&Found| matches!(found, Found::Something);
                reply.integer(self.found.iter().filter(there).count() as i64);
            }
        }
        answer.put_before(head);
        answer
    }
}

/// Copies a value behind the others.
fn keep(values: &mut Vec<Vec<u8>>, value: &[u8]) -> Found {
    let has_room = |last: &mut Vec<u8>| last.len() + value.len() <= last.capacity();
    if !values.last_mut().is_some_and(has_room) {
        values.push(Vec::with_capacity(PIECE_BYTES));
    }
    let piece = values.len() - 1;
    let last = &mut values[piece];
    let at = last.len();
    last.extend_from_slice(value);
    Found::Copied {
        piece: piece as u32,
        at: at as u32,
        len: value.len() as u32,
    }
}

/// A key by its number.
#[inline]
fn key<'a>(around: &Around<'a>, number: usize) -> Key<'a> {
    around.args.key(1 + number)
}
