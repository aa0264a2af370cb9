//! LATENCY: moments in which something took long, and how long commands take.
//!
//! The moments are those of [`crate::metrics::latency`], kept from `latency-monitor-threshold` on; the times
//! of commands are those of [`crate::metrics`], kept always.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::info_sections::distribution;
use super::introspection::find;
use super::{
    ALWAYS, Arg, ArgKind, Args, Context, Failure, Group, Handled, Makes, Next, OPERATOR, Spec, help,
};
use crate::command::{Command, table};
use crate::config::Setting;
use crate::metrics::Distribution;
use crate::metrics::latency::{Event, Sample};
use crate::server::Server;

/// Common part of the rows below.
const ROW: Spec = Spec {
    flags: OPERATOR,
    group: Group::Server,
    since: "2.8.13",
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..Spec::BASE
};

const EVENT: &[Arg] = &[Arg::of("event", ArgKind::String)];

pub(super) const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "latest",
        makes: Makes::Little,
        arity: 2,
        summary: "Returns the last moment of every event",
        handler: latest,
        ..ROW
    },
    Spec {
        name: "history",
        makes: Makes::Little,
        arity: 3,
        summary: "Returns the moments of an event that are kept",
        args: EVENT,
        handler: history,
        ..ROW
    },
    Spec {
        name: "reset",
        makes: Makes::Little,
        arity: -2,
        summary: "Forgets the moments of events, or of all",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        args: &[Arg::of("event", ArgKind::String).optional().multiple()],
        handler: reset,
        ..ROW
    },
    Spec {
        name: "graph",
        makes: Makes::Little,
        arity: 3,
        summary: "Draws the moments of an event",
        args: EVENT,
        handler: graph,
        ..ROW
    },
    Spec {
        name: "doctor",
        makes: Makes::Item,
        arity: 2,
        summary: "Says in words what took long",
        handler: doctor,
        ..ROW
    },
    Spec {
        name: "histogram",
        makes: Makes::Item,
        arity: -2,
        since: "7.0.0",
        summary: "Returns how the times of commands are distributed",
        complexity: "O(N) where N is the number of commands",
        args: &[Arg::of("command", ArgKind::String).optional().multiple()],
        handler: histogram,
        ..ROW
    },
    Spec {
        name: "help",
        makes: Makes::Item,
        arity: 2,
        flags: ALWAYS,
        summary: "Prints the subcommands of LATENCY",
        tips: &[],
        handler: print_help,
        ..ROW
    },
];

fn latest(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let monitor = context.server.latency.lock();
    context.reply.array(monitor.events().len());
    for (name, event) in monitor.events() {
        let last = event.samples.back();
        let last = last.expect("an event is known from its first sample on");
        context.reply.array(4);
        context.reply.bulk(name.as_bytes());
        context.reply.integer(last.at_s);
        context.reply.integer(last.took_ms as i64);
        context.reply.integer(event.worst_ms as i64);
    }
    Ok(Next::Done)
}

fn history(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let monitor = context.server.latency.lock();
    let Some(event) = monitor.events().get(&*args.text(2)) else {
        context.reply.empty_array();
        return Ok(Next::Done);
    };
    context.reply.array(event.samples.len());
    for sample in &event.samples {
        context.reply.array(2);
        context.reply.integer(sample.at_s);
        context.reply.integer(sample.took_ms as i64);
    }
    Ok(Next::Done)
}

fn reset(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mut monitor = context.server.latency.lock();
    let forgotten: usize = if args.len() == 2 {
        monitor.reset(None)
    } else {
        (2..args.len())
            .map(|at| monitor.reset(Some(&args.text(at))))
            .sum()
    };
    context.reply.integer(forgotten as i64);
    Ok(Next::Done)
}

fn graph(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let name = args.text(2);
    let monitor = context.server.latency.lock();
    let Some(event) = monitor.events().get(&*name) else {
        return Err(Failure::about(
            "ERR No samples available for event '",
            args.get(2),
            "'",
        ));
    };
    let now_s = sys::clock::realtime_ms() / 1000;
    let text = draw(&name, event, now_s);
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

/// Columns and rows of a graph.
const COLUMNS: usize = 80;
const ROWS: usize = 4;
/// How the top of a column looks, from low to high, and what is below it.
const TOPS: [char; 3] = ['_', 'o', '#'];
const BELOW: char = '|';

/// Draws the samples as columns between the lowest and the highest, the oldest first, in the form of Redis;
/// their ages stand below, to be read downwards.
fn draw(name: &str, event: &Event, now_s: i64) -> String {
    let samples: Vec<&Sample> = event.samples.iter().collect();
    let times = samples.iter().map(|sample| sample.took_ms);
    let low = times.clone().min().unwrap_or(0);
    let high = times.max().unwrap_or(0);
    let mut text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n",
        event.worst_ms,
        "-".repeat(COLUMNS)
    );
    for (number, columns) in samples.chunks(COLUMNS).enumerate() {
        if number > 0 {
            text.push('\n');
        }
        draw_columns(columns, (low, high), now_s, &mut text);
    }
    text
}

fn draw_columns(samples: &[&Sample], (low, high): (u64, u64), now_s: i64, text: &mut String) {
    let most = (ROWS * TOPS.len()) as u64;
    let height = |sample: &&Sample| {
        let height = (sample.took_ms - low) * most / (high - low).max(1);
        height.min(most - 1) as usize
    };
    for foot in (0..ROWS).rev().map(|row| row * TOPS.len()) {
        text.extend(samples.iter().map(|sample| match height(sample) {
            height if height < foot => ' ',
            height => TOPS.get(height - foot).copied().unwrap_or(BELOW),
        }));
        text.push('\n');
    }
    text.push_str(&" ".repeat(samples.len()));
    text.push('\n');
    let ages = samples.iter().map(|sample| age(now_s - sample.at_s));
    let ages: Vec<String> = ages.collect();
    let longest = ages.iter().map(String::len).max().unwrap_or(0);
    for at in 0..longest {
        let letter = |age: &String| age.as_bytes().get(at).map_or(' ', |&byte| char::from(byte));
        text.extend(ages.iter().map(letter));
        text.push('\n');
    }
}

/// An age in the largest unit that it has at least one of.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ ..60 => format!("{seconds}s"),
        seconds @ ..3600 => format!("{}m", seconds / 60),
        seconds @ ..86400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86400),
    }
}

fn doctor(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let threshold_ms = context
        .server
        .settings
        .int(Setting::LatencyMonitorThreshold);
    let monitor = context.server.latency.lock();
    let mut text = if threshold_ms == 0 {
        "Nothing is being watched: latency-monitor-threshold is 0. Set it to the milliseconds that \
         are too many for you, with CONFIG SET, and ask again when something was slow.\n"
            .to_string()
    } else if monitor.events().is_empty() {
        format!("Nothing took {threshold_ms} ms or longer so far.\n")
    } else {
        let report = monitor
            .events()
            .iter()
            .map(|(name, event)| describe(name, event) + advice(name));
        report.collect()
    };
    drop(monitor);
    text.push_str(&about_workers(context.server));
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

/// One line about an event.
fn describe(name: &str, event: &Event) -> String {
    let count = event.samples.len();
    let mean_ms = mean(&event.samples);
    let span_s = match (event.samples.front(), event.samples.back()) {
        (Some(first), Some(last)) => last.at_s - first.at_s,
        _ => 0,
    };
    let moments = if count == 1 { "moment" } else { "moments" };
    format!(
        "{name}: {count} slow {moments} within {span_s} s, {mean_ms} ms on average, {} ms at worst.\n",
        event.worst_ms
    )
}

/// Advice about an event.
fn advice(name: &str) -> &'static str {
    match name {
        "command" => {
            "  SLOWLOG GET names these commands. Use SCAN rather than KEYS, ask for parts of large values (GETRANGE), \
             and see with BIGKEYS which keys are large. While one of them runs, others of its connections' worker wait: \
             more threads make that rarer.\n"
        }
        "fast-command" => {
            "  These are quick by themselves: something else held the process up. See whether it waits for a processor \
             (below), whether the machine swaps, or whether values are large: BIGKEYS.\n"
        }
        "index-resize" => {
            "  A table grew or shrank while a command waited. It is over when the number of keys is steady.\n"
        }
        _ => "  LATENCY HISTORY tells when; compare with what the machine did at these times.\n",
    }
}

/// A worker that is ready to run and has no processor for so large a part of the time it could have used is
/// worth a line.
const STARVED: f64 = 0.1;

/// Remarkable facts about the workers since the start.
fn about_workers(server: &Server) -> String {
    let mut text = String::new();
    let (mut running_s, mut waiting_s) = (0.0, 0.0);
    let threads = server
        .workers
        .iter()
        .filter_map(|worker| worker.stats.thread.get());
    for times in threads.filter_map(|thread| thread.times()) {
        running_s += times.running.as_secs_f64();
        waiting_s += times.waiting.as_secs_f64();
    }
    let (part, uptime_ms) = (
        waiting_s / (running_s + waiting_s).max(f64::MIN_POSITIVE),
        sys::clock::realtime_ms() - server.started_ms,
    );
    // The first moments of a process say little.
    if part > STARVED && running_s > 1.0 && uptime_ms > 10_000 {
        let _ = writeln!(
            text,
            "Workers waited for a processor {:.0} % of the time they had something to do. Other processes use it, or a quota is used up: \
             leave them more, or start fewer threads ({} now).",
            part * 100.0,
            server.workers.len()
        );
    }
    text.push_str("LATENCY HISTOGRAM shows how long each command usually takes, HOTKEYS TOP which keys are used most.\n");
    text
}

fn mean(samples: &VecDeque<Sample>) -> u64 {
    samples.iter().map(|sample| sample.took_ms).sum::<u64>() / samples.len().max(1) as u64
}

fn histogram(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let mut asked: Vec<&Command> = if args.len() == 2 {
        table().all().collect()
    } else {
        let named = args.from(2).filter_map(|name| find(table(), name));
        // A container never runs itself; what was meant is all of its subcommands.
        named
            .flat_map(|command| std::iter::once(command).chain(&command.subcommands))
            .collect()
    };
    // Each once, however often it was named: a distribution takes kilobytes.
    let mut seen = vec![false; table().counters()];
    asked.retain(|command| !std::mem::replace(&mut seen[usize::from(command.id)], true));
    let called: Vec<(&Command, Distribution)> = asked
        .into_iter()
        .map(|command| (command, distribution(context.server, command)))
        .filter(|(_, times)| times.calls() > 0)
        .collect();
    context.reply.map(called.len());
    for (command, times) in called {
        let buckets = doubling_buckets(&times);
        context.reply.bulk(command.full_name.as_bytes());
        context.reply.map(2);
        context.reply.named_integer("calls", times.calls() as i64);
        context.reply.bulk(b"histogram_usec");
        context.reply.map(buckets.len());
        for (bound_us, calls) in buckets {
            context.reply.integer(bound_us as i64);
            context.reply.integer(calls as i64);
        }
    }
    Ok(Next::Done)
}

/// The bound of a bucket, in nanoseconds. The bounds double; they are those of Redis, whose histogram keeps
/// seven bits of a value, so that clients see the same ones: 1, 2, 4, 8, 16, 33, 66, 132 us and so on.
fn bound_ns(bucket: u32) -> u64 {
    let value = 1024u64.checked_shl(bucket).unwrap_or(u64::MAX / 2);
    value + (value >> 7) - 1
}

/// The buckets that hold anything: their bounds in microseconds, and how many calls took no longer.
fn doubling_buckets(times: &Distribution) -> Vec<(u64, u64)> {
    let mut buckets: Vec<(u64, u64)> = Vec::new();
    let (mut bucket, mut calls) = (0, 0);
    for (ticks, count) in times.iter() {
        let took_ns = sys::clock::ticks_to_ns(ticks);
        while took_ns > bound_ns(bucket) && bucket < 50 {
            bucket += 1;
        }
        calls += count;
        let bound_us = bound_ns(bucket) / 1000;
        match buckets.last_mut() {
            Some(last) if last.0 == bound_us => last.1 = calls,
            _ => buckets.push((bound_us, calls)),
        }
    }
    buckets
}

fn print_help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    help(
        context,
        "LATENCY",
        &[
            "DOCTOR",
            "    Say in words what took long.",
            "GRAPH <event>",
            "    Draw the slow moments of an event.",
            "HISTORY <event>",
            "    Return the slow moments of an event: time and milliseconds.",
            "LATEST",
            "    Return each event: its name, when it was last slow, how slow, and the worst.",
            "RESET [<event> ...]",
            "    Forget the slow moments of some events, or of all.",
            "HISTOGRAM [<command> ...]",
            "    Return how many calls of a command took how many microseconds at most.",
        ],
    );
    Ok(Next::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::counters::Histogram;

    #[test]
    fn bounds_are_those_that_clients_know() {
        let bounds: Vec<u64> = (0..13).map(|bucket| bound_ns(bucket) / 1000).collect();
        assert_eq!(
            bounds,
            [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113, 4227]
        );
    }

    #[test]
    fn counts_accumulate_and_empty_buckets_are_left_out() {
        let histogram = Histogram::default();
        histogram.record(0, 3);
        histogram.record(u64::MAX / 4, 2);
        let times = Distribution::of([&histogram].into_iter());
        let buckets = doubling_buckets(&times);
        assert_eq!(buckets.first(), Some(&(1, 3)));
        assert_eq!(buckets.last().map(|last| last.1), Some(5));
        assert_eq!(buckets.len(), 2);
    }

    #[test]
    fn a_graph_has_a_column_for_each_sample() {
        let samples = [(0, 10), (50, 80), (59, 40)];
        let event = Event {
            samples: samples
                .map(|(at_s, took_ms)| Sample { at_s, took_ms })
                .into(),
            worst_ms: 100,
        };
        let text = draw("command", &event, 60);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "command - high 80 ms, low 10 ms (all time high 100 ms)"
        );
        assert_eq!(lines[1], "-".repeat(80));
        assert_eq!(lines[2..6], [" # ", " | ", " |#", "_||"]);
        assert_eq!(lines[6..], ["   ", "111", "m0s", " s "]);
    }

    /// As Redis 8.2.3 draws these times.
    #[test]
    fn a_graph_is_that_of_redis() {
        let took_ms = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100];
        let event = Event {
            samples: took_ms.map(|took_ms| Sample { at_s: 0, took_ms }).into(),
            worst_ms: 100,
        };
        let text = draw("command", &event, 1);
        let lines: Vec<&str> = text.lines().skip(2).take(4).collect();
        let wanted = ["       _o#", "     _#|||", "   o#|||||", "_o#|||||||"];
        assert_eq!(lines, wanted);
    }

    #[test]
    fn ages_are_short() {
        let ages = [-5, 59, 60, 3599, 3600, 86_400 * 400].map(age);
        assert_eq!(ages, ["0s", "59s", "1m", "59m", "1h", "400d"]);
    }
}
