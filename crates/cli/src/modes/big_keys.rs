//! `--bigkeys` and `--memkeys`: the largest key of every type, and what there is of each.

use std::io::{self, Write};

use super::sampled::Sampled;
use super::types::{self, ByType, Column};
use super::walk::Walk;
use crate::failure::Result;
use crate::flags::Options;
use crate::format::quoted;
use crate::session::Session;

/// What is known of a type so far.
#[derive(Default)]
struct Tally {
    keys: u64,
    total: u64,
    biggest: u64,
    /// Quoted.
    biggest_key: Option<String>,
}

/// Looks for the keys that are largest by a column.
pub(super) fn run(session: Session, options: &Options, column: Column) -> Result {
    let mut out = io::stdout().lock();
    let mut walk = Walk::begin(session, options)?;
    let mut sampled = Sampled::begin(&mut out, "biggest")?;
    let mut tallies = ByType::<Tally>::new();
    let mut key_bytes = 0_u64;
    walk.each(|session, keys, percent| {
        let kinds = types::types(session, &keys)?;
        let sizes = column.ask(session, &keys, &kinds)?;
        for ((key, kind), size) in keys.iter().zip(kinds).zip(sizes) {
            let Some(kind) = kind else {
                continue;
            };
            key_bytes += key.len() as u64;
            if add(tallies.of(&kind), key, size) {
                writeln!(
                    out,
                    "[{percent:05.2}%] Biggest {:<6} found so far '{}' with {size} {}",
                    kind.name,
                    quoted(key),
                    column.unit(&kind)
                )?;
            }
            sampled.add(&mut out, percent)?;
        }
        Ok(())
    })?;
    sampled.end(&mut out, &walk)?;
    let average = key_bytes as f64 / sampled.keys.max(1) as f64;
    write!(
        out,
        "Total key length in bytes is {key_bytes} (avg len {average:.2})\n\n"
    )?;
    summarize(&mut out, &tallies, sampled.keys, column)
}

/// Counts a key; whether it is the largest of its type so far.
fn add(tally: &mut Tally, key: &[u8], size: u64) -> bool {
    tally.keys += 1;
    tally.total += size;
    let is_biggest = size > tally.biggest;
    if is_biggest {
        tally.biggest = size;
        tally.biggest_key = Some(quoted(key));
    }
    is_biggest
}

fn summarize(out: &mut dyn Write, tallies: &ByType<Tally>, sampled: u64, column: Column) -> Result {
    for (kind, tally) in tallies.iter() {
        if let Some(key) = &tally.biggest_key {
            writeln!(
                out,
                "Biggest {:>6} found '{key}' has {} {}",
                kind.name,
                tally.biggest,
                column.unit(kind)
            )?;
        }
    }
    writeln!(out)?;
    for (kind, tally) in tallies.iter() {
        writeln!(
            out,
            "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})",
            tally.keys,
            kind.name,
            tally.total,
            column.unit(kind),
            100.0 * tally.keys as f64 / sampled.max(1) as f64,
            tally.total as f64 / tally.keys.max(1) as f64,
        )?;
    }
    Ok(())
}
