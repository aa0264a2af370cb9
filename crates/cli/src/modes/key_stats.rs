//! `--keystats`: memory and elements of all keys at once: what there is of each type, how sizes are
//! distributed, and the largest keys of all.

use std::io::{self, Write};

use hdrhistogram::Histogram;

use super::file::bar;
use super::types::{self, ByType, Column, Type};
use super::walk::Walk;
use crate::amounts::bytes_text;
use crate::failure::Result;
use crate::flags::Options;
use crate::format::quoted;
use crate::session::Session;

/// The bar for a person who waits.
const BAR: &str =
    "{human_pos}/{human_len} keys [{wide_bar}] {eta} left, Ctrl-C shows what there is";

/// A key worth a line.
struct Large {
    memory: u64,
    length: u64,
    kind: Type,
    /// Quoted.
    key: String,
}

/// What is known of a type.
#[derive(Default)]
struct Tally {
    keys: u64,
    memory: u64,
    length: u64,
    longest: u64,
    largest: u64,
}

struct Stats {
    tallies: ByType<Tally>,
    /// Descending by memory.
    largest: Vec<Large>,
    top: usize,
    memory: Histogram<u64>,
    keys: u64,
    key_bytes: u64,
}

pub(super) fn run(session: Session, options: &Options) -> Result {
    let mut walk = Walk::begin(session, options)?;
    let bar = bar(walk.total, BAR);
    let memory_column = Column::Memory {
        samples: options.keys.samples,
    };
    let mut stats = Stats::new(options.keys.top);
    walk.each(|session, keys, _| {
        let kinds = types::types(session, &keys)?;
        let lengths = Column::Elements.ask(session, &keys, &kinds)?;
        let memory = memory_column.ask(session, &keys, &kinds)?;
        for (((key, kind), length), memory) in keys.iter().zip(kinds).zip(lengths).zip(memory) {
            if let Some(kind) = kind {
                stats.add(key, kind, length, memory);
            }
        }
        bar.inc(keys.len() as u64);
        Ok(())
    })?;
    bar.finish_and_clear();
    let mut out = io::stdout().lock();
    stats.print(&mut out)?;
    if walk.is_interrupted
        && let Some(cursor) = walk.cursor()
    {
        writeln!(
            out,
            "\nInterrupted. To go on from there: ferrite-cli --keystats --cursor {cursor}"
        )?;
    }
    Ok(())
}

impl Stats {
    fn new(top: usize) -> Stats {
        Stats {
            tallies: ByType::new(),
            largest: Vec::new(),
            top,
            memory: Histogram::new(3).expect("three digits are within what it can do"),
            keys: 0,
            key_bytes: 0,
        }
    }

    fn add(&mut self, key: &[u8], kind: Type, length: u64, memory: u64) {
        self.keys += 1;
        self.key_bytes += key.len() as u64;
        self.memory.saturating_record(memory);
        let tally = self.tallies.of(&kind);
        tally.keys += 1;
        tally.memory += memory;
        tally.length += length;
        tally.longest = tally.longest.max(length);
        tally.largest = tally.largest.max(memory);
        let place = self.largest.partition_point(|large| large.memory >= memory);
        if place < self.top {
            let key = quoted(key);
            self.largest.insert(
                place,
                Large {
                    memory,
                    length,
                    kind,
                    key,
                },
            );
            self.largest.truncate(self.top);
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result {
        let memory: u64 = self.tallies.iter().map(|(_, tally)| tally.memory).sum();
        let average = self.key_bytes as f64 / self.keys.max(1) as f64;
        writeln!(
            out,
            "{} keys take {}. Their names have {} bytes, {average:.2} on average.",
            self.keys,
            size_text(memory),
            self.key_bytes
        )?;
        self.print_largest(out)?;
        self.print_types(out)?;
        self.print_distribution(out)
    }

    fn print_largest(&self, out: &mut dyn Write) -> Result {
        writeln!(out, "\nLargest keys")?;
        writeln!(
            out,
            "{:>4}  {:>9}  {:>12} {:<8}  {:<7} key",
            "", "memory", "elements", "", "type"
        )?;
        for (at, large) in self.largest.iter().enumerate() {
            writeln!(
                out,
                "{:>4}  {:>9}  {:>12} {:<8}  {:<7} {}",
                at + 1,
                size_text(large.memory),
                large.length,
                large.kind.unit,
                large.kind.name,
                large.key
            )?;
        }
        Ok(())
    }

    fn print_types(&self, out: &mut dyn Write) -> Result {
        writeln!(out, "\nTypes")?;
        writeln!(
            out,
            "{:<8}{:>10} {:>7}  {:>9} {:>9} {:>9}  {:>12} {:>12} {:>12}",
            "type",
            "keys",
            "share",
            "memory",
            "average",
            "largest",
            "elements",
            "average",
            "longest"
        )?;
        for (kind, tally) in self.tallies.iter() {
            let keys = tally.keys.max(1) as f64;
            writeln!(
                out,
                "{:<8}{:>10} {:>6.2}%  {:>9} {:>9} {:>9}  {:>12} {:>12.2} {:>12}",
                kind.name,
                tally.keys,
                100.0 * tally.keys as f64 / self.keys.max(1) as f64,
                size_text(tally.memory),
                size_text((tally.memory as f64 / keys) as u64),
                size_text(tally.largest),
                tally.length,
                tally.length as f64 / keys,
                tally.longest
            )?;
        }
        Ok(())
    }

    fn print_distribution(&self, out: &mut dyn Write) -> Result {
        const PERCENTILES: [f64; 9] = [1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 100.0];
        writeln!(out, "\nMemory of keys")?;
        writeln!(out, "{:>9}  {:>9}  {:>10}", "share", "at most", "keys")?;
        for percentile in PERCENTILES {
            let memory = self.memory.value_at_percentile(percentile);
            writeln!(
                out,
                "{percentile:>8.1}%  {:>9}  {:>10}",
                size_text(memory),
                self.memory.count_between(0, memory)
            )?;
        }
        Ok(())
    }
}

fn size_text(bytes: u64) -> String {
    bytes_text(i64::try_from(bytes).unwrap_or(i64::MAX))
}
