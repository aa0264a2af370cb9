//! HSCAN and SSCAN: the items of a collection, some at a time.

use keyspace::ItemsRef;
use keyspace::collection::Base;
use keyspace::collection::any::Held;
use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use keyspace::collection::run::PAIRS;
use resp::number::{INTEGER_TEXT_LEN, format_u64};
use resp::reply::Writer;

use super::super::{Args, Context, Failure, Handled, Next, cursor, failure};
use super::cells::{write_cell, write_value};
use super::moment::{Look, leave_or_retry};
use crate::names::glob::{self, Case};
use crate::store::Kept;

/// The options behind the cursor.
pub(in crate::command) struct ScanOptions<'a> {
    pub(in crate::command) pattern: Option<&'a [u8]>,
    pub(in crate::command) count: usize,
    pub(in crate::command) with_values: bool,
}

/// Of HSCAN: values are left out.
pub(in crate::command) const NO_VALUES: &str = "NOVALUES";
/// Of ZSCAN, as in Valkey: scores are left out.
pub(in crate::command) const NO_SCORES: &str = "NOSCORES";

/// Refusal of an argument that is no option of a scan.
pub(in crate::command) fn not_an_option(word: &[u8]) -> Failure {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    match () {
        () if is(NO_VALUES) => Failure::of("ERR NOVALUES option can only be used in HSCAN"),
        () if is(NO_SCORES) => Failure::of("ERR NOSCORES option can only be used in ZSCAN"),
        () => failure::SYNTAX,
    }
}

impl<'a> ScanOptions<'a> {
    /// `without`: the word that leaves values out, if there are any.
    pub(in crate::command) fn parse(
        args: &Args<'a>,
        without: Option<&str>,
    ) -> Result<ScanOptions<'a>, Failure> {
        let mut options = ScanOptions {
            pattern: None,
            count: cursor::COUNT,
            with_values: without.is_some(),
        };
        let mut at = 3;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            if has_value && args.is(at, "COUNT") {
                options.count = cursor::parse_count(args, at + 1)?;
                at += 2;
            } else if has_value && args.is(at, "MATCH") {
                // As with SCAN, `*` is the absence of a pattern.
                options.pattern = Some(args.get(at + 1)).filter(|&pattern| pattern != b"*");
                at += 2;
            } else if without.is_some_and(|word| args.is(at, word)) {
                options.with_values = false;
                at += 1;
            } else {
                return Err(not_an_option(args.get(at)));
            }
        }
        Ok(options)
    }
}

/// Whether a name is asked for.
pub(in crate::command) fn matches(pattern: Option<&[u8]>, name: Cell<'_>) -> bool {
    let mut scratch = [0; DECIMAL_MAX];
    let is_wanted = |pattern| glob::matches(pattern, name.text(&mut scratch), Case::Sensitive);
    pattern.is_none_or(is_wanted)
}

/// Writes the head of a page: the cursor to go on with, and how many names and values are behind it.
pub(in crate::command) fn write_page_head(writer: &mut Writer<'_>, cursor: u64, found: usize) {
    writer.array(2);
    writer.bulk(format_u64(cursor, &mut [0; INTEGER_TEXT_LEN]));
    writer.array(found);
}

/// Items that are looked at under the lock, or in deferred work, before the clock is.
const STEP_ITEMS: usize = 64;

/// A scan of a collection.
struct Scan<P> {
    pattern: Option<P>,
    with_values: bool,
    /// Where to go on, and how many items to look at yet.
    cursor: u64,
    left: usize,
    /// Names and values in the reply.
    found: usize,
}

impl<P: AsRef<[u8]>> Scan<P> {
    fn step<K: Held>(&mut self, items: ItemsRef<'_, K>, writer: &mut Writer<'_>) -> bool {
        let count = self.left.min(STEP_ITEMS);
        let (mut seen, mut found) = (0, self.found);
        let pattern = self.pattern.as_ref().map(P::as_ref);
        self.cursor = items.scan(self.cursor, count, |item| {
            seen += 1;
            if matches(pattern, item.name) {
                write_cell(writer, item.name);
                found += 1;
                if self.with_values {
                    write_value::<K>(writer, &item);
                    found += 1;
                }
            }
        });
        self.found = found;
        self.left = self.left.saturating_sub(seen);
        self.cursor != 0 && self.left > 0
    }

    /// The records of the leaves at which so many steps look and that are in the log alone.
    fn cold<K: Held>(&self, items: ItemsRef<'_, K>, steps: usize) -> Vec<Base> {
        items.cold_of_scan(self.cursor, self.left.min(steps * STEP_ITEMS))
    }

    fn head(&self, writer: &mut Writer<'_>) {
        write_page_head(writer, self.cursor, self.found);
    }
}

impl<K: Held> Look<K> for Scan<Vec<u8>> {
    const STREAMS: bool = false;

    fn step(&mut self, items: ItemsRef<'_, K>, writer: &mut Writer<'_>) -> bool {
        Scan::step(self, items, writer)
    }

    fn cold(&mut self, items: ItemsRef<'_, K>, ahead: Option<usize>) -> Vec<Base> {
        Scan::cold(self, items, ahead.unwrap_or(1))
    }

    fn head(&self, writer: &mut Writer<'_>) {
        Scan::head(self, writer);
    }
}

/// `key cursor [MATCH pattern] [COUNT count] [NOVALUES]`, the last of a hash alone.
pub(in crate::command) fn scan<K: Kept + Send>(
    context: &mut Context<'_>,
    args: &Args<'_>,
) -> Handled {
    let (key, from) = (args.key(1), cursor::parse(args.get(2))?);
    let slice = context.slice();
    let mut shard = context.store.lock(key);
    let Some(mut items) = shard.read_items::<K>(key)? else {
        // Of a key that is missing Redis doesn't look at the options either.
        write_page_head(&mut context.reply, 0, 0);
        return Ok(Next::Done);
    };
    let options = ScanOptions::parse(args, (K::FLAGS & PAIRS != 0).then_some(NO_VALUES))?;
    let has_cold = items.items().is_tree() && items.has_cold_leaves();
    let reply = &mut context.reply;
    let start = reply.position();
    let mut scan = Scan {
        pattern: options.pattern,
        with_values: options.with_values,
        cursor: from,
        left: options.count,
        found: 0,
    };
    loop {
        // Items came or went since the leaves were found that the row of the command says it needs.
        let is_cold = has_cold && !scan.cold(items.items(), 1).is_empty();
        if !is_cold && !scan.step(items.items(), reply) {
            break;
        }
        if is_cold || !slice.goes_on() {
            let moment = items.moment();
            drop(shard);
            let scan = Scan {
                pattern: scan.pattern.map(<[u8]>::to_vec),
                with_values: scan.with_values,
                cursor: scan.cursor,
                left: scan.left,
                found: scan.found,
            };
            return Ok(leave_or_retry::<K>(context, args, start, moment, scan));
        }
    }
    reply.put_before(start, |writer| scan.head(writer));
    Ok(Next::Done)
}
