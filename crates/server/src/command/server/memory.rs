//! MEMORY: where memory goes. The figures are those of INFO memory; what this server does not have is zero.

use std::borrow::Cow;

use keyspace::Overhead;

use super::info::human_bytes;
use super::info_sections::{MemoryFigures, percent};
use super::{ALWAYS, Arg, ArgKind, Args, Context, Failure, Group, KeySpec, Spec, flag, help};
use crate::command::failure;
use crate::command::spec::NO_VALUES;
use crate::config::Setting;

/// What the rows below have in common.
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
        arity: -3,
        flags: flag::READONLY,
        keys: &[KeySpec::one(2, &["RO"])],
        summary: "Returns the bytes that a key takes in all",
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
        arity: 2,
        summary: "Returns figures about the memory of the server",
        tips: ANYWHERE,
        handler: stats,
        ..ROW
    },
    Spec {
        name: "doctor",
        arity: 2,
        summary: "Says in words whether memory is a problem",
        tips: ANYWHERE,
        handler: doctor,
        ..ROW
    },
    Spec {
        name: "malloc-stats",
        arity: 2,
        summary: "Returns what the allocator says about itself",
        tips: ANYWHERE,
        handler: malloc_stats,
        ..ROW
    },
    Spec {
        name: "purge",
        arity: 2,
        summary: "Asks the allocator to give memory back to the system",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        handler: purge,
        ..ROW
    },
    Spec {
        name: "help",
        arity: 2,
        flags: ALWAYS,
        summary: "Prints the subcommands of MEMORY",
        handler: print_help,
        ..ROW
    },
];

/// Strings have no elements to sample, so SAMPLES is checked and makes no difference.
fn usage(context: &mut Context<'_>, args: &Args<'_>) -> Result<(), Failure> {
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
    Ok(())
}

/// The value of a field of MEMORY STATS.
enum Figure {
    Count(u64),
    Difference(i64),
    Ratio(f64),
    Database(Overhead),
}

fn stats(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    let fields = stats_fields(&MemoryFigures::gather(context));
    let reply = &mut context.reply;
    reply.map(fields.len());
    for (name, figure) in fields {
        reply.bulk(name.as_bytes());
        match figure {
            Figure::Count(count) => reply.integer(count as i64),
            Figure::Difference(difference) => reply.integer(difference),
            Figure::Ratio(ratio) => reply.double(ratio),
            Figure::Database(overhead) => {
                reply.map(3);
                reply.bulk(b"overhead.hashtable.main");
                reply.integer((overhead.index_bytes + overhead.slack_bytes) as i64);
                reply.bulk(b"overhead.hashtable.expires");
                reply.integer(overhead.wheel_bytes as i64);
                reply.bulk(b"overhead.hashtable.slot-to-keys");
                reply.integer(0);
            }
        }
    }
    Ok(())
}

/// The fields of MEMORY STATS. Those about the allocator are left out: it doesn't tell.
fn stats_fields(figures: &MemoryFigures) -> Vec<(Cow<'static, str>, Figure)> {
    use Figure::{Count, Database, Difference, Ratio};
    let mut fields: Vec<(Cow<'static, str>, Figure)> = vec![
        ("peak.allocated".into(), Count(figures.peak)),
        ("total.allocated".into(), Count(figures.used)),
        ("replication.backlog".into(), Count(0)),
        ("clients.slaves".into(), Count(0)),
        ("clients.normal".into(), Count(figures.buffers)),
        ("cluster.links".into(), Count(0)),
        ("aof.buffer".into(), Count(0)),
        ("lua.caches".into(), Count(0)),
        ("functions.caches".into(), Count(0)),
    ];
    for &(db, overhead) in &figures.databases {
        fields.push((format!("db.{db}").into(), Database(overhead)));
    }
    let per_key = figures.used / figures.keys.max(1);
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
            Ratio(percent(figures.dataset(), figures.used)),
        ),
        (
            "peak.percentage".into(),
            Ratio(percent(figures.used, figures.peak)),
        ),
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

fn doctor(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    let limit = context.server.settings.int(Setting::MaxMemory) as u64;
    // While values leave memory for the disk, it is meant to be full.
    let limit = if context.server.cold.is_offloading() {
        0
    } else {
        limit
    };
    let text = diagnose(&MemoryFigures::gather(context), limit);
    context.reply.verbatim("txt", text.as_bytes());
    Ok(())
}

/// What is remarkable about memory; a line for each finding.
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
    finding(
        limit > 0 && figures.used > limit / 10 * 9,
        format!(
            "Nearly full: {used} of maxmemory {} are in use. Raise it, let keys expire, or look for what is large: BIGKEYS, \
             PREFIXES START.",
            human_bytes(limit)
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
    text
}

fn malloc_stats(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    context
        .reply
        .bulk(b"Stats not supported for the current allocator");
    Ok(())
}

/// There is nothing to ask for: empty pages go back to the system by themselves.
fn purge(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
    context.reply.ok();
    Ok(())
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Result<(), Failure> {
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
            "    Return the bytes that a key and its value take in all. A value of elements is",
            "    judged by <count> of them (0 for all).",
        ],
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn figures(used: u64, peak: u64, resident: u64, buffers: u64) -> MemoryFigures {
        MemoryFigures {
            used: used * MIB,
            peak: peak * MIB,
            resident: resident * MIB,
            buffers: buffers * MIB,
            databases: Vec::new(),
            keys: 0,
        }
    }

    #[test]
    fn the_doctor_finds_what_is_there_and_nothing_else() {
        let lines = |figures, limit| diagnose(&figures, limit * MIB).lines().count();
        let healthy = diagnose(&figures(100, 100, 110, 1), 0);
        assert!(healthy.starts_with("Nothing"), "{healthy}");
        assert!(diagnose(&figures(1, 100, 500, 1), 1).starts_with("There is next to no data"));
        for (one, limit) in [
            (figures(100, 100, 110, 1), 101),
            (figures(100, 200, 110, 1), 0),
            (figures(100, 100, 200, 1), 0),
            (figures(100, 100, 110, 50), 0),
        ] {
            let text = diagnose(&one, limit * MIB);
            assert!(text.lines().count() == 1 && text != healthy, "{text}");
        }
        assert_eq!(lines(figures(100, 200, 200, 50), 101), 4);
    }
}
