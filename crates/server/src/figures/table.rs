//! Every figure, once: its name as Prometheus knows it, what it means, and where it is read.
//!
//! Names are in base units, seconds and bytes, and say so. A counter only grows, but for CONFIG RESETSTAT and a restart.
//! A figure whose part of the server does not exist yet has no row.

use std::sync::atomic::Ordering::Relaxed;

use super::ready::why_not_ready;
use super::view::View;
use crate::command::server::info_sections::counters_of;
use crate::command::{Command, table};
use crate::config::Setting;
use crate::gate::Closed;
use crate::metrics::{Counter, Distribution, WorkerStats};
use crate::pubsub::NameKind;
use crate::server::{REDIS_VERSION, VERSION};

/// What a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// One row.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// One sentence.
    pub(super) help: &'static str,
    /// What tells its values apart; none where it has one value.
    pub(super) labels: &'static [&'static str],
    /// The field of INFO that says the same.
    pub(super) info: Option<&'static str>,
    pub(super) read: fn(&View<'_>, &mut Samples),
}

/// The values of a figure.
#[derive(Default)]
pub(super) struct Samples(pub(super) Vec<Sample>);

/// One value, and what tells it apart.
pub(super) struct Sample {
    pub(super) labels: Vec<String>,
    pub(super) value: Value,
}

/// See [`Kind`].
pub(super) enum Value {
    Number(f64),
    /// Times in ticks and their sum in seconds.
    Times(Box<Distribution>, f64),
}

impl Samples {
    fn number(&mut self, value: f64) {
        self.labelled(&[], value);
    }

    fn count(&mut self, value: u64) {
        self.number(value as f64);
    }

    fn labelled(&mut self, labels: &[&str], value: f64) {
        self.0.push(Sample {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            value: Value::Number(value),
        });
    }

    fn times(&mut self, labels: &[&str], times: Distribution, sum_s: f64) {
        self.0.push(Sample {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            value: Value::Times(Box::new(times), sum_s),
        });
    }
}

const fn row(
    kind: Kind,
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    Figure {
        name,
        kind,
        help,
        labels: &[],
        info: None,
        read,
    }
}

const fn counter(
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    row(Kind::Counter, name, help, read)
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    row(Kind::Gauge, name, help, read)
}

const fn histogram(
    name: &'static str,
    help: &'static str,
    read: fn(&View<'_>, &mut Samples),
) -> Figure {
    row(Kind::Histogram, name, help, read)
}

impl Figure {
    /// The same, with values told apart.
    const fn by(self, labels: &'static [&'static str]) -> Figure {
        Figure { labels, ..self }
    }

    /// The same, which a field of INFO says too.
    const fn in_info(self, field: &'static str) -> Figure {
        Figure {
            info: Some(field),
            ..self
        }
    }
}

/// A heading of the documentation, and the figures below it.
pub(super) struct Chapter {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only the documentation has headings")
    )]
    pub(super) title: &'static str,
    pub(super) figures: &'static [Figure],
}

/// All figures, in the order in which they are told.
pub(super) const CHAPTERS: &[Chapter] = &[
    Chapter {
        title: "Server",
        figures: SERVER,
    },
    Chapter {
        title: "Clients and network",
        figures: CLIENTS,
    },
    Chapter {
        title: "Commands",
        figures: COMMANDS,
    },
    Chapter {
        title: "Workers",
        figures: WORKERS,
    },
    Chapter {
        title: "Memory",
        figures: MEMORY,
    },
    Chapter {
        title: "Keys",
        figures: KEYS,
    },
    Chapter {
        title: "Snapshots",
        figures: SNAPSHOTS,
    },
];

/// All figures.
pub(super) fn all() -> impl Iterator<Item = &'static Figure> {
    CHAPTERS.iter().flat_map(|chapter| chapter.figures)
}

/// A sum over workers.
fn sum(view: &View<'_>, samples: &mut Samples, of: fn(&WorkerStats) -> &Counter) {
    samples.count(view.server.sum(of));
}

const SERVER: &[Figure] = &[
    gauge(
        "ferrite_build_info",
        "Always 1; its labels say what runs.",
        |view, samples| {
            samples.labelled(&[VERSION, REDIS_VERSION, view.server.poller_name], 1.0);
        },
    )
    .by(&["version", "redis_version", "io"]),
    gauge(
        "ferrite_start_time_seconds",
        "When the server started, in Unix time.",
        |view, samples| {
            samples.number(view.server.started_ms as f64 / 1000.0);
        },
    ),
    gauge(
        "ferrite_uptime_seconds",
        "How long the server has run.",
        |view, samples| {
            samples.count(((view.now - view.server.started_ms).max(0) / 1000) as u64);
        },
    )
    .in_info("uptime_in_seconds"),
    gauge(
        "ferrite_ready",
        "1 while every command may run, 0 while data is loaded or writes are refused.",
        |view, samples| {
            samples.count(u64::from(why_not_ready(view.server).is_none()));
        },
    ),
    counter(
        "process_cpu_seconds_total",
        "Processor time of the process, in user and kernel mode.",
        |_, samples| {
            let times = sys::process::cpu_times();
            samples.number((times.user + times.system).as_secs_f64());
        },
    ),
];

const CLIENTS: &[Figure] = &[
    gauge(
        "ferrite_clients_connected",
        "Connected clients.",
        |view, samples| samples.count(view.clients.connected),
    )
    .in_info("connected_clients"),
    gauge(
        "ferrite_clients_blocked",
        "Clients whose commands wait, for CLIENT PAUSE or for what they block on.",
        |view, samples| {
            samples.count(view.clients.blocked);
        },
    )
    .in_info("blocked_clients"),
    gauge(
        "ferrite_clients_watching",
        "Clients that watch keys.",
        |view, samples| samples.count(view.clients.watching),
    )
    .in_info("watching_clients"),
    gauge(
        "ferrite_clients_subscribed",
        "Clients that listen to channels.",
        |view, samples| {
            samples.count(view.clients.subscribed);
        },
    ),
    gauge(
        "ferrite_clients_max",
        "The most clients that may be connected.",
        |view, samples| {
            samples.count(view.server.settings.int(Setting::MaxClients) as u64);
        },
    )
    .in_info("maxclients"),
    counter(
        "ferrite_connections_received_total",
        "Connections that were accepted.",
        |view, samples| {
            samples.count(view.server.totals.connections.get());
        },
    )
    .in_info("total_connections_received"),
    counter(
        "ferrite_connections_rejected_total",
        "Connections refused because of maxclients or protected mode.",
        |view, samples| {
            samples.count(view.server.totals.rejected.get());
        },
    )
    .in_info("rejected_connections"),
    counter(
        "ferrite_output_limit_disconnections_total",
        "Clients dropped because they left too many replies unread.",
        |view, samples| {
            samples.count(view.server.totals.output_limit_disconnects.load(Relaxed));
        },
    )
    .in_info("client_output_buffer_limit_disconnections"),
    counter(
        "ferrite_query_limit_disconnections_total",
        "Clients dropped because a request grew beyond its limit.",
        |view, samples| {
            samples.count(view.server.totals.query_limit_disconnects.load(Relaxed));
        },
    )
    .in_info("client_query_buffer_limit_disconnections"),
    counter(
        "ferrite_network_input_bytes_total",
        "Bytes received from clients.",
        |view, samples| {
            sum(view, samples, |stats| &stats.input_bytes);
        },
    )
    .in_info("total_net_input_bytes"),
    counter(
        "ferrite_network_output_bytes_total",
        "Bytes sent to clients.",
        |view, samples| {
            sum(view, samples, |stats| &stats.output_bytes);
        },
    )
    .in_info("total_net_output_bytes"),
    gauge(
        "ferrite_pubsub_channels",
        "Channels that somebody listens to.",
        |view, samples| {
            samples.count(view.server.registry.count(NameKind::Channel) as u64);
        },
    )
    .in_info("pubsub_channels"),
    gauge(
        "ferrite_pubsub_patterns",
        "Patterns of channels that somebody listens to.",
        |view, samples| {
            samples.count(view.server.registry.count(NameKind::Pattern) as u64);
        },
    )
    .in_info("pubsub_patterns"),
];

/// The commands that were called.
fn called(view: &View<'_>) -> impl Iterator<Item = &'static Command> {
    let server = view.server;
    table().all().filter(move |command| {
        counters_of(server, command).any(|counters| counters.calls.get() > 0)
    })
}

const COMMANDS: &[Figure] = &[
    counter("ferrite_commands_processed_total", "Commands that were run.", |view, samples| {
        sum(view, samples, |stats| &stats.commands);
    })
    .in_info("total_commands_processed"),
    gauge("ferrite_commands_per_second", "Commands that were run in the last second.", |view, samples| {
        samples.count(view.server.totals.commands_per_second.get());
    })
    .in_info("instantaneous_ops_per_sec"),
    histogram(
        "ferrite_command_duration_seconds",
        "How long commands took to run; equal ones in a row are timed together and count at their mean.",
        |view, samples| {
            for command in called(view) {
                let counters = counters_of(view.server, command);
                let ticks = counters.clone().map(|one| one.ticks.get()).sum();
                let times = Distribution::of(counters.filter_map(|one| one.run_times()));
                let sum_s = sys::clock::ticks_to_ns(ticks) as f64 / 1e9;
                samples.times(&[&command.full_name], times, sum_s);
            }
        },
    )
    .by(&["command"]),
    histogram(
        "ferrite_command_latency_seconds",
        "From when a request could be read until its command had run: the wait in the queue included.",
        |view, samples| {
            for command in called(view) {
                let counters = counters_of(view.server, command);
                let times = Distribution::of(counters.filter_map(|one| one.whole_times()));
                let sum_s = seconds(&times);
                samples.times(&[&command.full_name], times, sum_s);
            }
        },
    )
    .by(&["command"]),
    counter("ferrite_command_rejected_total", "Commands refused before they ran: wrong arguments, no permission, no memory.", |view, samples| {
        for command in table().all() {
            let rejected: u64 = counters_of(view.server, command).map(|one| one.rejected.get()).sum();
            if rejected > 0 {
                samples.labelled(&[&command.full_name], rejected as f64);
            }
        }
    })
    .by(&["command"]),
    counter("ferrite_command_failed_total", "Commands that ran and answered an error.", |view, samples| {
        for command in table().all() {
            let failed: u64 = counters_of(view.server, command).map(|one| one.failed.get()).sum();
            if failed > 0 {
                samples.labelled(&[&command.full_name], failed as f64);
            }
        }
    })
    .by(&["command"]),
    counter("ferrite_error_replies_total", "Replies that were errors.", |view, samples| {
        sum(view, samples, |stats| &stats.errors);
    })
    .in_info("total_error_replies"),
    counter("ferrite_errors_total", "Replies that were errors, by the code they begin with.", |view, samples| {
        for (code, count) in view.server.errors.all() {
            samples.labelled(&[&code], count as f64);
        }
    })
    .by(&["code"]),
    gauge("ferrite_slowlog_length", "Commands in the slow log.", |view, samples| {
        samples.count(view.server.slowlog.lock().iter().len() as u64);
    }),
];

/// A sum of ticks in seconds.
fn seconds(times: &Distribution) -> f64 {
    sys::clock::ticks_to_ns(times.sum() as u64) as f64 / 1e9
}

/// A value of each worker.
fn each_worker(view: &View<'_>, samples: &mut Samples, read: fn(&WorkerStats) -> Option<f64>) {
    for (number, worker) in view.server.workers.iter().enumerate() {
        if let Some(value) = read(&worker.stats) {
            samples.labelled(&[&number.to_string()], value);
        }
    }
}

const WORKERS: &[Figure] = &[
    counter(
        "ferrite_worker_cpu_seconds_total",
        "Time a worker was on a processor.",
        |view, samples| {
            each_worker(view, samples, |stats| {
                Some(stats.thread.get()?.times()?.running.as_secs_f64())
            });
        },
    )
    .by(&["worker"]),
    counter(
        "ferrite_worker_cpu_wait_seconds_total",
        "Time a worker was ready to run while others had the processor.",
        |view, samples| {
            each_worker(view, samples, |stats| {
                Some(stats.thread.get()?.times()?.waiting.as_secs_f64())
            });
        },
    )
    .by(&["worker"]),
    counter(
        "ferrite_worker_turns_total",
        "Times a worker woke up and looked for work.",
        |view, samples| {
            each_worker(view, samples, |stats| Some(stats.turns.get() as f64));
        },
    )
    .by(&["worker"]),
    counter(
        "ferrite_worker_turn_seconds_total",
        "Time a worker spent between two waits for the network.",
        |view, samples| {
            each_worker(view, samples, |stats| {
                Some(sys::clock::ticks_to_ns(stats.turn_ticks.get()) as f64 / 1e9)
            });
        },
    )
    .by(&["worker"]),
    gauge(
        "ferrite_worker_connections",
        "Connections that a worker serves.",
        |view, samples| {
            for (number, worker) in view.server.workers.iter().enumerate() {
                samples.labelled(
                    &[&number.to_string()],
                    worker.connections.load(Relaxed) as f64,
                );
            }
        },
    )
    .by(&["worker"]),
    histogram(
        "ferrite_queue_seconds",
        "How long requests waited from when they could be read until they ran.",
        |view, samples| {
            let times = Distribution::of(
                view.server
                    .workers
                    .iter()
                    .map(|worker| &worker.stats.queued),
            );
            let sum_s = seconds(&times);
            samples.times(&[], times, sum_s);
        },
    ),
];

const MEMORY: &[Figure] = &[
    gauge(
        "ferrite_memory_used_bytes",
        "Memory that data and buffers take.",
        |view, samples| samples.count(view.memory.used),
    )
    .in_info("used_memory"),
    gauge(
        "ferrite_memory_peak_bytes",
        "The most that was ever used.",
        |view, samples| samples.count(view.memory.peak),
    )
    .in_info("used_memory_peak"),
    gauge(
        "ferrite_memory_max_bytes",
        "The limit of memory; 0 is none.",
        |view, samples| {
            samples.count(view.server.settings.int(Setting::MaxMemory) as u64);
        },
    )
    .in_info("maxmemory"),
    gauge(
        "ferrite_memory_dataset_bytes",
        "Memory of keys and values, with what each needs around it.",
        |view, samples| {
            samples.count(view.memory.dataset());
        },
    )
    .in_info("used_memory_dataset"),
    gauge(
        "ferrite_memory_overhead_bytes",
        "Memory that holds neither keys nor values.",
        |view, samples| {
            samples.count(view.memory.overhead());
        },
    )
    .in_info("used_memory_overhead"),
    gauge(
        "ferrite_memory_index_bytes",
        "Memory of the tables that find keys.",
        |view, samples| {
            samples.count(overhead(view, |one| one.index_bytes));
        },
    ),
    gauge(
        "ferrite_memory_expiry_bytes",
        "Memory of the wheels that know when keys expire.",
        |view, samples| {
            samples.count(overhead(view, |one| one.wheel_bytes));
        },
    ),
    gauge(
        "ferrite_memory_slack_bytes",
        "Memory kept for entries that no entry uses now.",
        |view, samples| {
            samples.count(overhead(view, |one| one.slack_bytes));
        },
    ),
    gauge(
        "ferrite_memory_client_buffer_bytes",
        "Memory of connections' buffers.",
        |view, samples| {
            samples.count(view.memory.buffers);
        },
    )
    .in_info("mem_clients_normal"),
    gauge(
        "process_resident_memory_bytes",
        "Physical memory that the process occupies.",
        |view, samples| {
            samples.count(view.memory.resident);
        },
    )
    .in_info("used_memory_rss"),
];

fn overhead(view: &View<'_>, of: fn(&keyspace::Overhead) -> usize) -> u64 {
    view.memory
        .databases
        .iter()
        .map(|(_, one)| of(one) as u64)
        .sum()
}

const KEYS: &[Figure] = &[
    gauge("ferrite_keys", "Keys in all databases.", |view, samples| {
        samples.count(view.memory.keys)
    })
    .in_info("keys"),
    gauge(
        "ferrite_database_keys",
        "Keys in a database.",
        |view, samples| {
            for one in &view.databases {
                samples.labelled(&[&one.db.to_string()], one.keys as f64);
            }
        },
    )
    .by(&["db"]),
    gauge(
        "ferrite_database_expiring_keys",
        "Keys in a database that will expire.",
        |view, samples| {
            for one in &view.databases {
                samples.labelled(&[&one.db.to_string()], one.expires as f64);
            }
        },
    )
    .by(&["db"]),
    counter(
        "ferrite_keyspace_hits_total",
        "Keys that reading commands found.",
        |view, samples| {
            sum(view, samples, |stats| &stats.hits);
        },
    )
    .in_info("keyspace_hits"),
    counter(
        "ferrite_keyspace_misses_total",
        "Keys that reading commands did not find.",
        |view, samples| {
            sum(view, samples, |stats| &stats.misses);
        },
    )
    .in_info("keyspace_misses"),
    counter(
        "ferrite_keys_set_total",
        "Values that commands stored.",
        |view, samples| {
            sum(view, samples, |stats| &stats.sets);
        },
    )
    .in_info("sets"),
    counter(
        "ferrite_keys_deleted_total",
        "Keys that commands removed.",
        |view, samples| {
            sum(view, samples, |stats| &stats.dels);
        },
    )
    .in_info("dels"),
    counter(
        "ferrite_keys_expired_total",
        "Keys removed because their time had come.",
        |view, samples| {
            samples.count(view.server.expired_keys());
        },
    )
    .in_info("expired_keys"),
    histogram(
        "ferrite_expiry_lag_seconds",
        "How much later than due the keys of a shard were looked at for expiry; a worker looks every 10 ms.",
        |view, samples| {
            let lags = view
                .server
                .workers
                .iter()
                .map(|worker| &worker.stats.expiry_lag_ms);
            let times = Distribution::of(lags).in_unit(sys::clock::ticks_per_us() * 1000.0);
            let sum_s = seconds(&times);
            samples.times(&[], times, sum_s);
        },
    ),
    gauge(
        "ferrite_index_resize_slowest_seconds",
        "The slowest step of resizing an index.",
        |view, samples| {
            samples.number(view.server.totals.slowest_resize_us.get() as f64 / 1e6);
        },
    ),
    gauge(
        "ferrite_lazyfree_pending_objects",
        "Values and databases that wait to be freed in the background.",
        |view, samples| {
            samples.count(view.server.keyspace.pending_reclaims() as u64);
        },
    )
    .in_info("lazyfree_pending_objects"),
];

const SNAPSHOTS: &[Figure] = &[
    gauge(
        "ferrite_loading",
        "1 while data is loaded.",
        |view, samples| {
            samples.count(u64::from(view.server.gate.has(Closed::Loading)));
        },
    )
    .in_info("loading"),
    gauge(
        "ferrite_snapshot_in_progress",
        "1 while a snapshot is written in the background.",
        |view, samples| {
            samples.count(u64::from(view.server.snapshots.current().background_s >= 0));
        },
    )
    .in_info("rdb_bgsave_in_progress"),
    gauge(
        "ferrite_snapshot_last_success",
        "1 if the last snapshot was written, 0 if it failed.",
        |view, samples| {
            samples.count(u64::from(view.server.snapshots.history().is_ok));
        },
    ),
    gauge(
        "ferrite_snapshot_last_timestamp_seconds",
        "When the last snapshot was written, in Unix time.",
        |view, samples| {
            samples.number(view.server.snapshots.history().saved_at_s as f64);
        },
    )
    .in_info("rdb_last_save_time"),
    gauge(
        "ferrite_snapshot_changes",
        "Changes to data since the last snapshot.",
        |view, samples| {
            samples.count(view.server.snapshots.changes(view.server));
        },
    )
    .in_info("rdb_changes_since_last_save"),
    counter(
        "ferrite_snapshots_total",
        "Snapshots that were written.",
        |view, samples| {
            samples.number(view.server.snapshots.history().count as f64);
        },
    )
    .in_info("rdb_saves"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_follow_the_rules_of_the_field() {
        let mut names = HashSet::new();
        for figure in all() {
            let name = figure.name;
            assert!(names.insert(name), "{name} twice");
            assert!(
                name.starts_with("ferrite_") || name.starts_with("process_"),
                "{name}"
            );
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
                "{name}"
            );
            assert_eq!(
                figure.kind == Kind::Counter,
                name.ends_with("_total"),
                "{name}"
            );
            assert!(
                figure.help.ends_with('.') && !figure.help.contains('|'),
                "{name}"
            );
            assert!(figure.info.is_none() || figure.labels.is_empty(), "{name}");
            if figure.kind == Kind::Histogram {
                assert!(name.ends_with("_seconds"), "{name}");
            }
        }
    }
}
