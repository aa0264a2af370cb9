//! What the server does: figures of the process, its clients, its commands and its workers.

use std::sync::atomic::Ordering::Relaxed;

use super::{seconds, sum};
use crate::command::server::info_sections::counters_of;
use crate::command::{Command, table};
use crate::config::{REDIS_VERSION, Setting, VERSION};
use crate::metrics::{Distribution, WorkerStats};
use crate::pubsub::NameKind;
use crate::report::figures::figure::{Figure, Samples, counter, gauge, histogram};
use crate::report::figures::ready::why_not_ready;
use crate::report::figures::view::View;

pub(super) const SERVER: &[Figure] = &[
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

pub(super) const CLIENTS: &[Figure] = &[
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
        "ferrite_clients_tracking",
        "Clients that keep copies of values and are told when these change.",
        |view, samples| samples.count(view.server.observers.tracking.clients() as u64),
    )
    .in_info("tracking_clients"),
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
        "ferrite_auth_failures_total",
        "Wrong passwords, over any protocol.",
        |view, samples| {
            samples.count(view.server.logins.failed.load(Relaxed));
        },
    )
    .in_info("auth_failures"),
    counter(
        "ferrite_auth_delayed_total",
        "Attempts to log in that waited because wrong passwords had come from their address.",
        |view, samples| {
            samples.count(view.server.logins.delayed.load(Relaxed));
        },
    )
    .in_info("auth_delayed"),
    counter(
        "ferrite_auth_refused_total",
        "Attempts to log in that were refused unseen: too many waited before them.",
        |view, samples| {
            samples.count(view.server.logins.refused.load(Relaxed));
        },
    )
    .in_info("auth_refused"),
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
    counter(
        "ferrite_network_reads_total",
        "Times something was received from a client.",
        |view, samples| {
            sum(view, samples, |stats| &stats.reads);
        },
    )
    .in_info("total_reads_processed"),
    counter(
        "ferrite_network_writes_total",
        "Times something was sent to a client.",
        |view, samples| {
            sum(view, samples, |stats| &stats.writes);
        },
    )
    .in_info("total_writes_processed"),
    gauge(
        "ferrite_tracking_keys",
        "Keys whose changes are told to clients that keep copies.",
        |view, samples| samples.count(view.server.observers.tracking.keys() as u64),
    )
    .in_info("tracking_total_keys"),
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

pub(super) const COMMANDS: &[Figure] = &[
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

/// A value of each worker.
fn each_worker(view: &View<'_>, samples: &mut Samples, read: fn(&WorkerStats) -> Option<f64>) {
    for (number, worker) in view.server.workers.iter().enumerate() {
        if let Some(value) = read(&worker.stats) {
            samples.labelled(&[&number.to_string()], value);
        }
    }
}

pub(super) const WORKERS: &[Figure] = &[
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
