//! Commands for tests of HyperLogLogs: PFDEBUG PFSELFTEST.

use keyspace::Form;
use keyspace::hyperloglog::{self, Density, Element, REGISTERS};

use super::super::{Args, Context, Failure, Handled, Next, deferred};
use super::{corrupted, density_of};
use crate::request::Pieces;
use crate::store::Text;

const NO_KEY: Failure = Failure::of("ERR The specified key does not exist");
const NOT_SPARSE: Failure = Failure::of("ERR HLL encoding is not sparse");
/// Elements of a test, and of one that others wait for.
const ELEMENTS: u64 = 10_000_000;
const ELEMENTS_AT_ONCE: u64 = 10_000;
/// The standard error of an estimate.
const ERROR: f64 = 1.04 / 128.0;

/// `PFDEBUG GETREG|DECODE|ENCODING|TODENSE key`
pub(super) fn pfdebug(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let key = args.key(2);
    let mut shard = context.store.lock(key);
    let mut entry = shard.find_string(key)?.ok_or(NO_KEY)?;
    let encoding = density_of(entry.value().bytes())?;
    let reply = &mut context.reply;
    match () {
        () if args.is(1, "GETREG") => {
            make_dense(&mut entry)?;
            let value = entry.value();
            reply.array(REGISTERS);
            for index in 0..REGISTERS {
                reply.integer(hyperloglog::register(value.bytes(), index).into());
            }
        }
        () if args.is(1, "DECODE") => {
            if encoding != Density::Sparse {
                return Err(NOT_SPARSE);
            }
            reply.bulk(decode(entry.value().bytes()).as_bytes());
        }
        () if args.is(1, "ENCODING") => reply.simple(match encoding {
            Density::Dense => "dense",
            Density::Sparse => "sparse",
        }),
        () if args.is(1, "TODENSE") => reply.integer(make_dense(&mut entry)?.into()),
        () => {
            return Err(Failure::about(
                "ERR Unknown PFDEBUG subcommand '",
                args.get(1),
                "'",
            ));
        }
    }
    Ok(Next::Done)
}

/// Makes a value dense; whether it was not.
///
/// # Errors
/// It is corrupted.
fn make_dense(entry: &mut Text<'_, '_>) -> Result<bool, Failure> {
    let mut dense = entry.value().bytes().to_vec();
    let is_made = hyperloglog::make_dense(&mut dense).map_err(corrupted)?;
    if is_made {
        entry.update(dense.len(), 0..dense.len(), Form::Part, |value| {
            value.copy_from_slice(&dense);
        });
    }
    Ok(is_made)
}

/// The runs of a sparse value as text: `z` and `Z` for zeroes in the short and the long form, `v` for
/// numbers.
fn decode(value: &[u8]) -> String {
    let runs = hyperloglog::stretches_of(value).map(|run| match (run.number, run.bytes) {
        (0, 1) => format!("z:{}", run.len),
        (0, _) => format!("Z:{}", run.len),
        (number, _) => format!("v:{number},{}", run.len),
    });
    runs.collect::<Vec<_>>().join(" ")
}

/// `PFSELFTEST`
///
/// A thread of its own runs the test. In a transaction, which cannot wait, the test is short.
pub(super) fn pfselftest(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if !context.may_defer() {
        test(ELEMENTS_AT_ONCE)?;
        context.reply.ok();
        return Ok(Next::Done);
    }
    deferred::do_apart(context, args, || {
        test(ELEMENTS).map(|()| Pieces::beginning(b"+OK\r\n".into()))
    })
}

/// Adds elements to a dense value and to one that begins sparse: they agree, and their estimates are near.
fn test(elements: u64) -> Result<(), Failure> {
    const MOST: usize = 3000;
    let failed = |what: String| Failure::new(format!("ERR TESTFAILED {what}"));
    let [mut dense, mut other] = [hyperloglog::empty(), hyperloglog::empty()];
    hyperloglog::make_dense(&mut dense).map_err(corrupted)?;
    let (seed, mut checked) = (fastrand::u64(..), 1);
    for number in 1..=elements {
        let element = Element::of(&(number ^ seed).to_le_bytes());
        let is_changed = hyperloglog::add(&mut dense, element, MOST).map_err(corrupted)?;
        if hyperloglog::add(&mut other, element, MOST) != Ok(is_changed) {
            return Err(failed("dense/sparse disagree".into()));
        }
        if number < checked {
            continue;
        }
        let is_small = number < MOST as u64 / 2;
        if is_small && density_of(&other)? != Density::Sparse {
            return Err(failed("sparse encoding not used".into()));
        }
        let count = hyperloglog::count(&dense).map_err(corrupted)?;
        if hyperloglog::count(&other) != Ok(count) {
            return Err(failed("dense/sparse disagree".into()));
        }
        let most = match number {
            10 => 1,
            _ => (ERROR * 6.0 * number as f64).ceil() as u64,
        };
        let error = count.abs_diff(number);
        if error > most {
            let text = format!("Too big error. card:{number} abserr:{error}");
            return Err(failed(text));
        }
        checked *= 10;
    }
    Ok(())
}
