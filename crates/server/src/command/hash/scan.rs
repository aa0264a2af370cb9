//! HSCAN: the fields of a hash, some at a time.

use keyspace::collection::cell::{Cell, DECIMAL_MAX};
use resp::number::{INTEGER_TEXT_LEN, format_u64};

use super::super::{Args, Context, Failure, Handled, Next, cursor, failure};
use super::cells::{write_cell, write_value};
use crate::names::glob::{self, Case};

/// The options of HSCAN, after its cursor.
struct Options<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    with_values: bool,
}

impl<'a> Options<'a> {
    fn parse(args: &Args<'a>) -> Result<Options<'a>, Failure> {
        let mut options = Options {
            pattern: None,
            count: cursor::COUNT,
            with_values: true,
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
            } else if args.is(at, "NOVALUES") {
                options.with_values = false;
                at += 1;
            } else {
                return Err(failure::SYNTAX);
            }
        }
        Ok(options)
    }

    fn accepts(&self, name: Cell<'_>) -> bool {
        self.pattern.is_none_or(|pattern| {
            let mut scratch = [0; DECIMAL_MAX];
            glob::matches(pattern, name.text(&mut scratch), Case::Sensitive)
        })
    }
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
pub(super) fn hscan(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (key, from) = (args.key(1), cursor::parse(args.get(2))?);
    let mut shard = context.store.lock(key);
    let hash = shard.read_hash(key)?;
    let reply = &mut context.reply;
    let start = reply.position();
    let (mut next, mut found) = (0, 0);
    // Of a key that is missing Redis doesn't look at the options either.
    if let Some(hash) = hash {
        let options = Options::parse(args)?;
        next = hash.fields().scan(from, options.count, |item| {
            if options.accepts(item.name) {
                write_cell(reply, item.name);
                found += 1;
                if options.with_values {
                    write_value(reply, item.value);
                    found += 1;
                }
            }
        });
    }
    reply.put_before(start, |reply| {
        reply.array(2);
        reply.bulk(format_u64(next, &mut [0; INTEGER_TEXT_LEN]));
        reply.array(found);
    });
    Ok(Next::Done)
}
