//! `--bigkeys` and `--memkeys`: the largest key of every type, and what there is of each.

use std::io::{self, Write};

use super::types::{self, Type};
use super::walk::Walk;
use crate::failure::Result;
use crate::flags::Options;
use crate::format::quoted;
use crate::session::Session;

/// What is large about a key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    Elements,
    Memory,
}

/// What is known of a type so far.
struct Tally {
    kind: Type,
    keys: u64,
    total: u64,
    biggest: u64,
    /// Quoted.
    biggest_key: Option<String>,
}

impl Tally {
    fn new(kind: Type) -> Tally {
        Tally {
            kind,
            keys: 0,
            total: 0,
            biggest: 0,
            biggest_key: None,
        }
    }

    fn unit(&self, measure: Measure) -> &'static str {
        match measure {
            Measure::Elements => self.kind.unit,
            Measure::Memory => "bytes",
        }
    }
}

pub(super) fn run(session: Session, options: &Options, measure: Measure) -> Result {
    let mut out = io::stdout().lock();
    let mut walk = Walk::begin(session, options)?;
    write!(
        out,
        "\n# Scanning the entire keyspace to find biggest keys as well as\n\
         # average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n\
         # per 100 SCAN commands (not usually needed).\n\n"
    )?;
    let mut tallies: Vec<Tally> = Type::known().into_iter().map(Tally::new).collect();
    let (mut sampled, mut key_bytes) = (0_u64, 0_u64);
    walk.each(|session, keys, percent| {
        let kinds = types::types(session, &keys)?;
        let sizes = match measure {
            Measure::Elements => types::lengths(session, &keys, &kinds)?,
            Measure::Memory => types::memory(session, &keys, &kinds, options.keys.samples)?,
        };
        for ((key, kind), size) in keys.iter().zip(kinds).zip(sizes) {
            let Some(kind) = kind else {
                continue;
            };
            sampled += 1;
            key_bytes += key.len() as u64;
            let tally = tally_of(&mut tallies, kind);
            if add(tally, key, size) {
                writeln!(
                    out,
                    "[{percent:05.2}%] Biggest {:<6} found so far '{}' with {size} {}",
                    tally.kind.name,
                    quoted(key),
                    tally.unit(measure)
                )?;
            }
            if sampled.is_multiple_of(1_000_000) {
                writeln!(out, "[{percent:05.2}%] Sampled {sampled} keys so far")?;
            }
        }
        Ok(())
    })?;
    write!(out, "\n-------- summary -------\n\n")?;
    if walk.is_interrupted {
        write!(out, "[{:05.2}%] ", walk.percent())?;
    }
    let average = key_bytes as f64 / sampled.max(1) as f64;
    write!(
        out,
        "Sampled {sampled} keys in the keyspace!\n\
         Total key length in bytes is {key_bytes} (avg len {average:.2})\n\n"
    )?;
    summarize(&mut out, &tallies, sampled, measure)
}

fn tally_of(tallies: &mut Vec<Tally>, kind: Type) -> &mut Tally {
    let at = tallies.iter().position(|tally| tally.kind == kind);
    let at = at.unwrap_or_else(|| {
        tallies.push(Tally::new(kind));
        tallies.len() - 1
    });
    &mut tallies[at]
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

fn summarize(out: &mut dyn Write, tallies: &[Tally], sampled: u64, measure: Measure) -> Result {
    for tally in tallies {
        if let Some(key) = &tally.biggest_key {
            writeln!(
                out,
                "Biggest {:>6} found '{key}' has {} {}",
                tally.kind.name,
                tally.biggest,
                tally.unit(measure)
            )?;
        }
    }
    writeln!(out)?;
    for tally in tallies {
        writeln!(
            out,
            "{} {}s with {} {} ({:05.2}% of keys, avg size {:.2})",
            tally.keys,
            tally.kind.name,
            tally.total,
            tally.unit(measure),
            100.0 * tally.keys as f64 / sampled.max(1) as f64,
            tally.total as f64 / tally.keys.max(1) as f64,
        )?;
    }
    Ok(())
}
