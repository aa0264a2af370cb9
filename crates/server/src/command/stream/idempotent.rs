//! Idempotent IDs of producers: XCFGSET, and the options IDMP and IDMPAUTO of XADD.

use keyspace::StreamRef;
use keyspace::collection::stream::{Id, Idempotent, ItemBuffer, StreamItems};
use sha1_smol::Sha1;

use super::super::{Args, Context, Failure, Handled, Next, failure};
use crate::config::Packed;
use crate::observe::notify::Event;
use crate::store::StreamEdit;

pub(super) const TWO_IDEMPOTENT: Failure =
    Failure::of("ERR IDMP/IDMPAUTO specified multiple times");
pub(super) const IDEMPOTENT_WITH_ID: Failure =
    Failure::of("ERR IDMP/IDMPAUTO can be used only with auto-generated IDs");
const NO_PRODUCER: Failure = Failure::of("ERR IDMP requires a non-empty producer ID");
const NO_PRODUCER_AUTO: Failure = Failure::of("ERR IDMPAUTO requires a non-empty producer ID");
const NO_NAME: Failure = Failure::of("ERR IDMP requires a non-empty idempotent ID");
const NOTHING_SET: Failure = Failure::of("ERR At least one parameter must be specified");
const BAD_DURATION: Failure = Failure::of("ERR IDMP-DURATION must be between 1 and 86400 seconds");
const BAD_MOST: Failure = Failure::of("ERR IDMP-MAXSIZE must be between 1 and 10000 entries");

const DURATION_MAX: i64 = 86_400;
const MOST_MAX: i64 = 10_000;
/// Idempotent IDs of one producer that are forgotten at once because they have expired.
const FORGOTTEN: usize = 16;

/// The idempotent ID that XADD is given.
#[derive(Clone, Copy)]
pub(super) struct AskedIdempotence {
    /// The argument that names the producer.
    producer: usize,
    /// The argument with the ID; without one the fields are the ID.
    name: Option<usize>,
}

impl AskedIdempotence {
    /// The option that begins with an argument, and has all of its own.
    ///
    /// # Errors
    /// The producer or the ID is empty.
    pub(super) fn parse(args: &Args<'_>, at: usize) -> Result<AskedIdempotence, Failure> {
        let name = args.is(at, "IDMP").then_some(at + 2);
        let is_empty = |at: usize| args.get(at).is_empty();
        match name {
            None if is_empty(at + 1) => Err(NO_PRODUCER_AUTO),
            Some(_) if is_empty(at + 1) => Err(NO_PRODUCER),
            Some(name) if is_empty(name) => Err(NO_NAME),
            _ => Ok(AskedIdempotence {
                producer: at + 1,
                name,
            }),
        }
    }

    /// Its last argument.
    pub(super) fn last(self) -> usize {
        self.name.unwrap_or(self.producer)
    }

    /// The ID that it is, of an entry with fields from an argument on.
    pub(super) fn of<'a>(self, args: &Args<'a>, fields: usize) -> Given<'a> {
        Given {
            producer: args.get(self.producer),
            name: match self.name {
                Some(name) => Name::Given(args.get(name)),
                None => Name::OfFields(digest(args, fields)),
            },
        }
    }
}

/// The digest of fields and their values, the same in any order of them.
fn digest(args: &Args<'_>, fields: usize) -> [u8; 20] {
    let pairs = (fields..args.len()).step_by(2);
    let mut pairs: Vec<[&[u8]; 2]> = pairs.map(|at| [args.get(at), args.get(at + 1)]).collect();
    pairs.sort_unstable();
    let mut sum = Sha1::new();
    for text in pairs.into_iter().flatten() {
        sum.update(&(text.len() as u64).to_le_bytes());
        sum.update(text);
    }
    sum.digest().bytes()
}

/// The name of an idempotent ID.
enum Name<'a> {
    Given(&'a [u8]),
    OfFields([u8; 20]),
}

/// The idempotent ID of an entry that is to be added.
pub(super) struct Given<'a> {
    producer: &'a [u8],
    name: Name<'a>,
}

impl Given<'_> {
    fn at(&self, number: u64, time: u64) -> Idempotent<'_> {
        Idempotent {
            producer: self.producer,
            name: match &self.name {
                Name::Given(name) => name,
                Name::OfFields(digest) => digest,
            },
            number,
            time,
        }
    }

    /// The entry that was added with it already, at a time (Unix, ms). It counts as a duplicate.
    pub(super) fn entry(&self, edit: &mut StreamEdit<'_, '_>, now: u64) -> Option<Id> {
        let mut buffer = ItemBuffer::default();
        let mut settings = edit.stream().idempotence()?;
        let known = edit.stream().entry_with(&self.at(0, 0), &mut buffer)?;
        if settings.is_over(known.time, now) {
            return None;
        }
        settings.duplicates += 1;
        edit.count_duplicate(&settings);
        Some(known.id)
    }

    /// Notes the entry that was added with it. Forgets some that have expired or are too many.
    pub(super) fn note(&self, edit: &mut StreamEdit<'_, '_>, id: Id, now: u64) {
        let mut settings = edit.stream().idempotence().unwrap_or_default();
        let known = edit
            .stream()
            .entry_with(&self.at(0, 0), &mut ItemBuffer::default());
        if let Some(known) = known {
            // It has expired.
            edit.take_idempotent(&self.at(known.number, known.time));
        }
        let stream = edit.stream();
        let all = stream.idempotent_len_of(self.producer);
        let too_many = (all + 1).saturating_sub(settings.most) as usize;
        let its = stream.idempotent_of(self.producer);
        let old = its
            .take_while(|old| old.producer == self.producer)
            .enumerate();
        let old = old.take_while(|(at, old)| *at < too_many || settings.is_over(old.time, now));
        let old = old.take(FORGOTTEN.max(too_many));
        let mut gone: Vec<_> = old.map(|(_, old)| OwnedIdempotent::of(&old)).collect();
        let is_over = |old: &Idempotent<'_>| settings.is_over(old.time, now);
        gone.extend(others(stream, self.producer, is_over));
        for old in &gone {
            old.forget(edit);
            let is_other = old.producer != self.producer;
            if is_other && edit.stream().idempotent_len_of(&old.producer) == 0 {
                settings.producers = settings.producers.saturating_sub(1);
            }
        }
        settings.producers += u64::from(all == 0 && known.is_none());
        let idempotent = self.at(settings.added, now);
        edit.put_idempotent(&idempotent, id);
        settings.added += 1;
        edit.put_idempotence(&settings);
    }
}

/// A few idempotent IDs of the producer after another one that have expired: so those of producers that add
/// nothing any more go, too.
fn others(
    stream: StreamRef<'_>,
    producer: &[u8],
    is_over: impl Fn(&Idempotent<'_>) -> bool,
) -> Vec<OwnedIdempotent> {
    let after = stream.idempotent_after(producer).next();
    let other = after.or_else(|| stream.idempotent().next());
    let Some(other) = other.filter(|other| other.producer != producer) else {
        return Vec::new();
    };
    let its = stream.idempotent_of(other.producer);
    its.take(2)
        .take_while(|old| old.producer == other.producer && is_over(old))
        .map(|old| OwnedIdempotent::of(&old))
        .collect()
}

/// An idempotent ID that is forgotten.
struct OwnedIdempotent {
    producer: Vec<u8>,
    name: Vec<u8>,
    number: u64,
}

impl OwnedIdempotent {
    fn of(idempotent: &Idempotent<'_>) -> OwnedIdempotent {
        OwnedIdempotent {
            producer: idempotent.producer.to_vec(),
            name: idempotent.name.to_vec(),
            number: idempotent.number,
        }
    }

    fn forget(&self, edit: &mut StreamEdit<'_, '_>) {
        edit.take_idempotent(&Idempotent {
            producer: &self.producer,
            name: &self.name,
            number: self.number,
            time: 0,
        });
    }
}

/// `XCFGSET key [IDMP-DURATION seconds] [IDMP-MAXSIZE count]`
pub(super) fn xcfgset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (mut duration, mut most) = (None, None);
    let mut at = 2;
    while at < args.len() {
        let (option, limit, failure) = match () {
            () if args.is(at, "IDMP-DURATION") => (&mut duration, DURATION_MAX, BAD_DURATION),
            () if args.is(at, "IDMP-MAXSIZE") => (&mut most, MOST_MAX, BAD_MOST),
            () => return Err(failure::SYNTAX),
        };
        if at + 1 == args.len() {
            return Err(failure::SYNTAX);
        }
        let number = args.integer(at + 1)?;
        if !(1..=limit).contains(&number) {
            return Err(failure);
        }
        *option = Some(number as u64);
        at += 2;
    }
    if duration.is_none() && most.is_none() {
        return Err(NOTHING_SET);
    }
    let key = args.key(1);
    let mut shard = context.store.lock(key);
    let Some(found) = shard.find_items::<StreamItems>(key)? else {
        return Err(failure::NO_SUCH_KEY);
    };
    let before = found.stream().idempotence();
    let mut settings = before.unwrap_or_default();
    settings.duration = duration.unwrap_or(settings.duration);
    settings.most = most.unwrap_or(settings.most);
    if before != Some(settings) {
        let all = found.stream().idempotent();
        let all: Vec<OwnedIdempotent> = all.map(|old| OwnedIdempotent::of(&old)).collect();
        settings.producers = 0;
        found.edit(Event::NONE, Packed::NONE, |edit| {
            edit.is_of_groups(false);
            all.iter().for_each(|old| old.forget(edit));
            edit.put_idempotence(&settings);
            edit.only_change();
        });
    }
    context.reply.ok();
    Ok(Next::Done)
}
