//! MEMORY: where memory goes. The figures are those of INFO memory; what this server does not have is zero.

use std::borrow::Cow;

use keyspace::Overhead;

use super::info::human_bytes;
use super::info_sections::percent;
use super::memory_figures::MemoryFigures;
use super::{
    ALWAYS, Arg, ArgKind, Args, Context, Group, Handled, KeySpec, Makes, Next, Spec, access, flag,
    help,
};
use crate::command::failure;
use crate::command::spec::NO_VALUES;
use crate::config::Setting;

/// Common part of the rows below.
const ROW: Spec = Spec {
    group: Group::Server,
    since: "4.0.0",
    ..Spec::BASE
};

const ANYWHERE: &[&str] = &[
    "nondeterministic_output",
    "request_policy:all_shards",
    "response_policy:special",
];

pub(super) const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "usage",
        makes: Makes::Little,
        arity: -3,
        flags: flag::READONLY,
        keys: &[KeySpec::one(2, access::RO)],
        summary: "Returns the bytes of memory that a key and its value take",
        complexity: "O(N) where N is the number of samples",
        args: &[
            Arg::key("key"),
            Arg::of("count", ArgKind::Integer)
                .token("SAMPLES")
                .optional(),
        ],
        needs: NO_VALUES,
        handler: usage,
        ..ROW
    },
    Spec {
        name: "stats",
        makes: Makes::Little,
        arity: 2,
        summary: "Returns figures about the memory of the server",
        tips: ANYWHERE,
        handler: stats,
        ..ROW
    },
    Spec {
        name: "doctor",
        makes: Makes::Item,
        arity: 2,
        summary: "Says in words whether memory is a problem",
        tips: ANYWHERE,
        handler: doctor,
        ..ROW
    },
    Spec {
        name: "malloc-stats",
        makes: Makes::Item,
        arity: 2,
        summary: "Returns what the allocator says about itself",
        tips: ANYWHERE,
        handler: malloc_stats,
        ..ROW
    },
    Spec {
        name: "purge",
        makes: Makes::Little,
        arity: 2,
        summary: "Asks the allocator to give memory back to the system",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        handler: purge,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: ALWAYS,
        summary: "Prints the subcommands of MEMORY",
        handler: print_help,
        ..ROW
    },
];

/// Strings have no elements to sample, so SAMPLES is checked and makes no difference.
fn usage(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mut at = 3;
    while at < args.len() {
        if !args.is(at, "samples") || at + 1 == args.len() || args.integer(at + 1)? < 0 {
            return Err(failure::SYNTAX);
        }
        at += 2;
    }
    let key = args.key(2);
    match context.store.lock(key).find(key) {
        Some(entry) => context.reply.integer(entry.memory() as i64),
        None => context.reply.null(),
    }
    Ok(Next::Done)
}

fn gather(context: &Context<'_>) -> MemoryFigures {
    MemoryFigures::of(context.server, context.store.turn, context.store.now)
}

/// The value of a field of MEMORY STATS.
enum Figure {
    Count(u64),
    Difference(i64),
    Ratio(f64),
    /// Overhead of a database, and bytes of its entries.
    Database(Overhead, u64),
}

fn stats(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let fields = stats_fields(&gather(context));
    let reply = &mut context.reply;
    reply.map(fields.len());
    for (name, figure) in fields {
        reply.bulk(name.as_bytes());
        match figure {
            Figure::Count(count) => reply.integer(count as i64),
            Figure::Difference(difference) => reply.integer(difference),
            Figure::Ratio(ratio) => reply.double(ratio),
            Figure::Database(overhead, entries) => {
                reply.map(5);
                reply.named_integer("entries", entries as i64);
                reply.named_integer("slack", overhead.slack_bytes as i64);
                reply.named_integer("overhead.hashtable.main", overhead.index_bytes as i64);
                reply.named_integer("overhead.hashtable.expires", overhead.wheel_bytes as i64);
                reply.named_integer("overhead.hashtable.slot-to-keys", 0);
            }
        }
    }
    Ok(Next::Done)
}

/// The fields of MEMORY STATS. Ferrite's own are the entries of each database, the memory that waits to be
/// freed, and the rest without a figure of its own.
fn stats_fields(figures: &MemoryFigures) -> Vec<(Cow<'static, str>, Figure)> {
    use Figure::{Count, Database, Difference, Ratio};
    let mut fields: Vec<(Cow<'static, str>, Figure)> = vec![
        ("peak.allocated".into(), Count(figures.peak)),
        ("total.allocated".into(), Count(figures.used)),
        ("startup.allocated".into(), Count(figures.startup)),
        ("replication.backlog".into(), Count(0)),
        ("clients.slaves".into(), Count(0)),
        ("clients.normal".into(), Count(figures.buffers)),
        ("slow.log".into(), Count(figures.slow_log)),
        ("cluster.links".into(), Count(0)),
        ("aof.buffer".into(), Count(figures.log)),
        ("replica.fullsync.buffer".into(), Count(0)),
        ("replicas.repl.buffer".into(), Count(0)),
        ("cluster.slot_import".into(), Count(0)),
        ("cluster.slot_export".into(), Count(0)),
        ("script.VMs".into(), Count(0)),
        ("lua.caches".into(), Count(0)),
        ("functions.caches".into(), Count(0)),
        ("lazyfree.pending".into(), Count(figures.pending)),
        ("other".into(), Difference(figures.other())),
    ];
    for database in &figures.databases {
        let name = format!("db.{}", database.db);
        fields.push((name.into(), Database(database.overhead, database.entries)));
    }
    let per_key = figures.beyond_startup() / figures.keys.max(1);
    fields.extend([
        ("overhead.total".into(), Count(figures.overhead())),
        ("keys.count".into(), Count(figures.keys)),
        (
            "keys.bytes-per-key".into(),
            Count(if figures.keys == 0 { 0 } else { per_key }),
        ),
        ("dataset.bytes".into(), Count(figures.dataset())),
        (
            "dataset.percentage".into(),
            Ratio(percent(figures.dataset(), figures.beyond_startup())),
        ),
        (
            "peak.percentage".into(),
            Ratio(percent(figures.used, figures.peak)),
        ),
        ("allocator.allocated".into(), Count(figures.heap.allocated)),
        ("allocator.active".into(), Count(figures.heap.active)),
        ("allocator.resident".into(), Count(figures.heap.resident)),
    ]);
    for loss in figures.losses() {
        fields.push((format!("{}.ratio", loss.name).into(), Ratio(loss.ratio)));
        let bytes = Difference(loss.bytes);
        fields.push((format!("{}.bytes", loss.name).into(), bytes));
    }
    fields.extend([
        ("fragmentation".into(), Ratio(figures.fragmentation())),
        (
            "fragmentation.bytes".into(),
            Difference(figures.fragmentation_bytes()),
        ),
    ]);
    fields
}

/// Below so many bytes the proportions that [`diagnose`] looks at mean nothing.
const EMPTY_BYTES: u64 = 5 << 20;

fn doctor(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let limit = context.server.settings.int(Setting::MaxMemory) as u64;
    // While values leave memory for the disk, it is meant to be full.
    let limit = if context.server.offload.is_offloading() {
        0
    } else {
        limit
    };
    let text = diagnose(&gather(context), limit);
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

/// Remarkable facts about memory; a line for each finding.
fn diagnose(figures: &MemoryFigures, limit: u64) -> String {
    if figures.used < EMPTY_BYTES {
        return "There is next to no data, so there is nothing to find fault with.\n".into();
    }
    let mut text = String::new();
    let mut finding = |there: bool, line: String| {
        if there {
            text.push_str(&line);
            text.push('\n');
        }
    };
    let (used, peak) = (human_bytes(figures.used), human_bytes(figures.peak));
    let around = figures.around_entries();
    finding(
        limit > 0 && figures.used > limit / 10 * 9,
        format!(
            "Nearly full: {used} of maxmemory {} are in use. Raise it, let keys expire, or look for what is large: BIGKEYS, \
             PREFIXES START.",
            human_bytes(limit)
        ),
    );
    finding(
        around.slack_bytes as u64 > figures.used / 4,
        format!(
            "Places of entries that were removed take {}. New entries use them, and what stays empty goes back to the system as \
             keys come and go.",
            human_bytes(around.slack_bytes as u64)
        ),
    );
    finding(
        figures.pending > figures.used / 4,
        format!(
            "{} are dropped already and being freed.",
            human_bytes(figures.pending)
        ),
    );
    finding(
        figures.peak > figures.used / 2 * 3,
        format!(
            "It was more before: {peak} at the peak, {used} now. The system gets memory back as pages become empty."
        ),
    );
    finding(
        figures.fragmentation() > 1.4 && figures.fragmentation_bytes() > 10 << 20,
        format!(
            "The process occupies {:.2} bytes for each byte in use. Memory that was freed goes back with time; if it does not, \
             a restart gives it back.",
            figures.fragmentation()
        ),
    );
    finding(
        figures.buffers > figures.used / 3,
        format!(
            "Connections' buffers take {}: look for slow readers in CLIENT LIST.",
            human_bytes(figures.buffers)
        ),
    );
    if text.is_empty() {
        text.push_str("Nothing is remarkable about the memory of this server.\n");
    }
    text + &parts(figures)
}

/// Where memory goes, in a line.
fn parts(figures: &MemoryFigures) -> String {
    let around = figures.around_entries();
    let mut parts = [
        ("keys and values", figures.dataset()),
        ("index", around.index_bytes as u64),
        ("expiries", around.wheel_bytes as u64),
        ("free places of entries", around.slack_bytes as u64),
        ("connections' buffers", figures.buffers),
        ("the slow log", figures.slow_log),
        ("the log's ring", figures.log),
        ("what is being freed", figures.pending),
        ("the server itself", figures.startup),
        ("other", figures.other().max(0) as u64),
    ];
    parts.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    let of_all = |bytes| percent(bytes, figures.used);
    let named = parts
        .iter()
        .filter(|(_, bytes)| of_all(*bytes) >= 0.1)
        .map(|(name, bytes)| format!("{name} {} ({:.1}%)", human_bytes(*bytes), of_all(*bytes)));
    let named: Vec<String> = named.collect();
    format!(
        "In use: {}, of which {}; {} are physical memory.\n",
        human_bytes(figures.used),
        named.join(", "),
        human_bytes(figures.resident)
    )
}

fn malloc_stats(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    context
        .reply
        .bulk(b"Stats not supported for the current allocator");
    Ok(Next::Done)
}

/// Free memory goes back by itself within seconds, but for a little that is kept for large values; this does
/// not wait.
fn purge(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    sys::memory::purge();
    context.reply.ok();
    Ok(Next::Done)
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(
        context,
        "MEMORY",
        &[
            "DOCTOR",
            "    Say in words whether memory is a problem.",
            "MALLOC-STATS",
            "    Return what the allocator says about itself.",
            "PURGE",
            "    Ask the allocator to give memory back to the system.",
            "STATS",
            "    Return figures about the memory of the server.",
            "USAGE <key> [SAMPLES <count>]",
            "    Return the bytes of memory that a key and its value take. A value that is on the disk and",
            "    not in memory counts 0: BIGKEYS counts it, and STRLEN returns its length. SAMPLES is",
            "    accepted and changes nothing.",
        ],
    );
    Ok(Next::Done)
}

#[cfg(test)]
mod tests {
    use super::super::memory_figures::DatabaseFigures;
    use super::*;

    const MIB: u64 = 1 << 20;

    fn figures(used: u64, peak: u64, resident: u64, buffers: u64, slack: u64) -> MemoryFigures {
        MemoryFigures {
            used: used * MIB,
            peak: peak * MIB,
            resident: resident * MIB,
            heap: sys::memory::Heap::default(),
            buffers: buffers * MIB,
            slow_log: 0,
            log: 0,
            startup: 0,
            pending: 0,
            databases: vec![DatabaseFigures {
                db: 0,
                entries: (used - buffers - slack) / 2 * MIB,
                overhead: Overhead {
                    index_bytes: ((used - buffers - slack) / 2 * MIB) as usize,
                    wheel_bytes: 0,
                    slack_bytes: (slack * MIB) as usize,
                },
            }],
            keys: 0,
        }
    }

    #[test]
    fn the_doctor_finds_what_is_there_and_says_where_memory_goes() {
        let lines = |figures, limit| diagnose(&figures, limit * MIB).lines().count();
        let healthy = diagnose(&figures(100, 100, 110, 1, 1), 0);
        assert!(healthy.starts_with("Nothing"), "{healthy}");
        let parts = healthy.lines().nth(1).expect("two lines");
        assert_eq!(
            parts,
            "In use: 100.00M, of which keys and values 49.00M (49.0%), index 49.00M (49.0%), free places of entries 1.00M \
             (1.0%), connections' buffers 1.00M (1.0%); 110.00M are physical memory."
        );
        assert!(diagnose(&figures(1, 100, 500, 1, 0), 1).starts_with("There is next to no data"));
        for (one, limit) in [
            (figures(100, 100, 110, 1, 1), 101),
            (figures(100, 200, 110, 1, 1), 0),
            (figures(100, 100, 200, 1, 1), 0),
            (figures(100, 100, 110, 50, 1), 0),
            (figures(100, 100, 110, 1, 30), 0),
        ] {
            let text = diagnose(&one, limit * MIB);
            assert!(
                text.lines().count() == 2 && !text.starts_with("Nothing"),
                "{text}"
            );
        }
        assert_eq!(lines(figures(100, 200, 200, 50, 30), 101), 6);
    }
}
