//! Commands on a whole database: KEYS, SCAN, RANDOMKEY.
//!
//! Keys go from the shard straight into the reply, whose beginning is written last: memory grows with the
//! answer, not with the database. One shard is locked at a time, and long work is done in slices
//! ([`crate::command::deferred`]), so KEYS does not show one moment: a key that another client renames
//! meanwhile may be met under both names or under neither.

use keyspace::{Database, EntryRef, Position};
use resp::number::{INTEGER_TEXT_LEN, format_u64};
use resp::reply::Writer;

use crate::command::cursor;
use crate::command::deferred::{Around, Progress, Slice, Work};
use crate::command::{Args, Context, Failure, Handled, Next, failure};
use crate::limits::SLICE_KEYS;
use crate::names::glob::{self, Case};
use crate::request::Pieces;

use super::existence::type_name;

/// Which keys are wanted; nothing asked for is `None`.
#[derive(Clone, Debug, Default)]
struct Filter<P> {
    pattern: Option<P>,
    type_name: Option<P>,
}

impl<'a> Filter<&'a [u8]> {
    /// `*` is not a pattern but the absence of one: it stands for the empty key too, which no other pattern
    /// of stars does.
    fn set_pattern(&mut self, pattern: &'a [u8]) {
        self.pattern = (pattern != b"*").then_some(pattern);
    }

    /// The same, on its own.
    fn to_owned(&self) -> Filter<Vec<u8>> {
        Filter {
            pattern: self.pattern.map(<[u8]>::to_vec),
            type_name: self.type_name.map(<[u8]>::to_vec),
        }
    }
}

impl<P: AsRef<[u8]>> Filter<P> {
    fn accepts(&self, entry: EntryRef<'_>) -> bool {
        let matches = |pattern: &P| glob::matches(pattern.as_ref(), entry.key(), Case::Sensitive);
        let is_of_type = |name: &P| {
            let own = type_name(entry.kind()).as_bytes();
            name.as_ref().eq_ignore_ascii_case(own)
        };
        self.pattern.as_ref().is_none_or(matches) && self.type_name.as_ref().is_none_or(is_of_type)
    }
}

/// Where a look at a database has got to.
#[derive(Clone, Copy)]
enum Progressed {
    Keys(Position),
    /// With the cursor, and how many keys are left to look at.
    Scan(u64, usize),
}

impl Progressed {
    /// Looks at some keys under one lock. Returns where to go on, or the cursor for the client.
    fn step(
        self,
        database: &Database,
        now: i64,
        visit: impl FnMut(EntryRef<'_>),
    ) -> Result<Progressed, u64> {
        match self {
            Progressed::Keys(at) => match database.walk(at, SLICE_KEYS, now, visit) {
                Some(next) => Ok(Progressed::Keys(next)),
                None => Err(0),
            },
            Progressed::Scan(cursor, left) => {
                let next = database.scan(cursor, left.min(SLICE_KEYS), now, visit);
                let left = left.saturating_sub(SLICE_KEYS);
                if next == 0 || left == 0 {
                    return Err(next);
                }
                Ok(Progressed::Scan(next, left))
            }
        }
    }
}

/// Head of a reply with `found` keys; for SCAN with the cursor.
fn write_head(writer: &mut Writer<'_>, is_scan: bool, cursor: u64, found: usize) {
    if is_scan {
        writer.array(2);
        writer.bulk(format_u64(cursor, &mut [0; INTEGER_TEXT_LEN]));
    }
    writer.array(found);
}

/// Answers with the keys from a place on: at once if that takes no longer than a slice.
fn look(
    context: &mut Context<'_>,
    args: &Args<'_>,
    from: Progressed,
    filter: &Filter<&[u8]>,
) -> Next {
    let slice = context.slice();
    let Context { store, reply, .. } = context;
    let is_scan = matches!(from, Progressed::Scan(..));
    let (start, mut found, mut at) = (reply.position(), 0, from);
    loop {
        let visit = |entry: EntryRef<'_>| {
            if filter.accepts(entry) {
                reply.bulk(entry.key());
                found += 1;
            }
        };
        match at.step(store.database(), store.now, visit) {
            Ok(next) => at = next,
            Err(cursor) => {
                reply.put_before(start, |reply| write_head(reply, is_scan, cursor, found));
                return Next::Done;
            }
        }
        if !slice.goes_on() {
            break;
        }
    }
    let answer = Pieces::beginning(reply.split_off(start));
    let (db, filter) = (store.db, filter.to_owned());
    context.defer(
        args,
        Look {
            db,
            filter,
            at,
            found,
            answer,
        },
    )
}

/// Rest of a walk through a database.
struct Look {
    db: usize,
    filter: Filter<Vec<u8>>,
    at: Progressed,
    found: usize,
    answer: Pieces,
}

impl Work for Look {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let database = around.store.keyspace.database(around.store.turn, self.db);
        let is_scan = matches!(self.at, Progressed::Scan(..));
        let Look {
            filter,
            at,
            found,
            answer,
            ..
        } = self;
        while slice.goes_on() {
            let visit = |entry: EntryRef<'_>| {
                if filter.accepts(entry) {
                    answer.write(around.protocol, |reply| reply.bulk(entry.key()));
                    *found += 1;
                }
            };
            match at.step(database, around.store.now, visit) {
                Ok(next) => *at = next,
                Err(cursor) => {
                    let mut head = Vec::new();
                    let mut writer = Writer::new(&mut head, around.protocol);
                    write_head(&mut writer, is_scan, cursor, *found);
                    answer.put_before(head);
                    return Progress::Done(Ok(std::mem::take(answer)));
                }
            }
        }
        Progress::More
    }

    fn memory(&self) -> usize {
        self.answer.len()
    }
}

pub(super) fn keys(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() > 2 {
        return Err(Failure::wrong_arity(&context.command.full_name));
    }
    let mut filter = Filter::default();
    if let Some(pattern) = args.optional(1) {
        filter.set_pattern(pattern);
    }
    let from = Progressed::Keys(Position::default());
    Ok(look(context, args, from, &filter))
}

pub(super) fn scan(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let cursor = cursor::parse(args.get(1))?;
    let (count, filter) = parse_scan(args)?;
    Ok(look(
        context,
        args,
        Progressed::Scan(cursor, count),
        &filter,
    ))
}

/// The options behind SCAN's cursor: how many keys to look at, and which of them are wanted.
fn parse_scan<'a>(args: &Args<'a>) -> Result<(usize, Filter<&'a [u8]>), Failure> {
    let (mut count, mut filter) = (cursor::COUNT, Filter::default());
    for at in (2..args.len()).step_by(2) {
        let value = args.optional(at + 1).ok_or(failure::SYNTAX)?;
        if args.is(at, "COUNT") {
            count = cursor::parse_count(args, at + 1)?;
        } else if args.is(at, "MATCH") {
            filter.set_pattern(value);
        } else if args.is(at, "TYPE") {
            filter.type_name = Some(value);
        } else {
            return Err(failure::SYNTAX);
        }
    }
    Ok((count, filter))
}

pub(super) fn randomkey(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let Context { store, reply, .. } = context;
    let random = || fastrand::u64(..);
    let found = store
        .database()
        .random_key(store.now, random, |entry| reply.bulk(entry.key()));
    if found.is_none() {
        reply.null();
    }
    Ok(Next::Done)
}
