//! Samples of keys from a command that has run, for HOTKEYS.

use keyspace::Key;

use crate::command::{Command, Context};
use crate::metrics::hotkeys::{Use, ticks_of_all};
use crate::request::Args;

/// Looks at a command that has run for so many ticks and replied with so many bytes.
#[cold]
#[inline(never)]
pub(super) fn sample(
    command: &'static Command,
    context: &Context<'_>,
    args: &Args<'_>,
    ticks: u64,
    replied: usize,
) {
    let stats = context.store.stats;
    let counters = stats.command(command.id);
    let usual = counters.ticks.get().checked_div(counters.calls.get());
    let keys = command.key_positions(args.len()).count();
    stats.hot_keys.add(keys, context.store.now, |at, period| {
        let at = command.key_positions(args.len()).nth(at);
        let bytes = args.get(at.expect("it is below the number of keys"));
        Use {
            db: context.store.db,
            key: Key {
                bytes,
                hash: args.keyspace.hash(bytes),
            },
            command: command.id,
            operations: (period * keys as u64) as f64,
            bytes: (period * (args.size() + replied) as u64) as f64,
            us: sys::clock::ticks_to_ns(ticks_of_all(period, ticks, usual)) as f64 / 1000.0,
        }
    });
}
