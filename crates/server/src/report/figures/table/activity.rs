//! Figures of activity: the process, its clients, its commands and its workers.

use std::sync::atomic::Ordering::Relaxed;

use super::seconds;
use crate::command::server::info_sections::counters_of;
use crate::command::{Command, table};
use crate::config::{REDIS_VERSION, VERSION};
use crate::metrics::{Distribution, WorkerStats};
use crate::report::figures::figure::{
    Figure, Samples, counter, counter_in, gauge, gauge_in, histogram,
};
use crate::report::figures::ready::why_not_ready;
use crate::report::figures::view::View;
use crate::shared::clients::status;

#[rustfmt::skip]
pub(super) const SERVER: &[Figure] = &[
    gauge(
        "ferrite_build_info",
        "Always 1; its labels say what runs.",
        |view, samples| {
            samples.labelled(&[VERSION, REDIS_VERSION, view.server.poller_name], 1.0);
        },
    )
    .by(&["version", "redis_version", "io"]),
    gauge("ferrite_start_time_seconds", "When the server started, in Unix time.",
        |view, samples| samples.number(view.server.started_ms as f64 / 1000.0)),
    gauge_in("uptime_in_seconds", "ferrite_uptime_seconds", "How long the server has run."),
    gauge("ferrite_ready", "1 while every command may run, 0 while data is loaded or writes are refused.",
        |view, samples| samples.count(u64::from(why_not_ready(view.server).is_none()))),
    counter(
        "process_cpu_seconds_total",
        "Processor time of the process, in user and kernel mode.",
        |_, samples| {
            let times = sys::process::cpu_times();
            samples.number((times.user + times.system).as_secs_f64());
        },
    ),
];

#[rustfmt::skip]
pub(super) const CLIENTS: &[Figure] = &[
    gauge_in("connected_clients", "ferrite_clients_connected", "Connected clients."),
    gauge_in("blocked_clients", "ferrite_clients_blocked",
        "Clients whose commands wait, for CLIENT PAUSE or for what they block on."),
    gauge_in("watching_clients", "ferrite_clients_watching", "Clients that watch keys."),
    gauge("ferrite_clients_subscribed", "Clients that listen to channels.",
        |view, samples| {
            let mut subscribed = 0;
            let clients = &view.server.clients;
            clients.for_each(|client| subscribed += u64::from(client.has_status(status::PUBSUB)));
            samples.count(subscribed);
        }),
    gauge_in("tracking_clients", "ferrite_clients_tracking",
        "Clients that keep copies of values and are told when these change."),
    gauge_in("maxclients", "ferrite_clients_max", "The most clients that may be connected."),
    counter_in("total_connections_received", "ferrite_connections_received_total",
        "Connections that were accepted."),
    counter_in("rejected_connections", "ferrite_connections_rejected_total",
        "Connections refused because of maxclients or protected mode."),
    counter_in("client_output_buffer_limit_disconnections", "ferrite_output_limit_disconnections_total",
        "Clients dropped because they left too many replies unread."),
    counter_in("auth_failures", "ferrite_auth_failures_total", "Wrong passwords, over any protocol."),
    counter_in("auth_delayed", "ferrite_auth_delayed_total",
        "Attempts to log in that waited because wrong passwords had come from their address."),
    counter_in("auth_refused", "ferrite_auth_refused_total",
        "Attempts to log in that were refused unseen: too many waited before them."),
    counter_in("client_query_buffer_limit_disconnections", "ferrite_query_limit_disconnections_total",
        "Clients dropped because a request grew beyond its limit."),
    counter_in("total_net_input_bytes", "ferrite_network_input_bytes_total", "Bytes received from clients."),
    counter_in("total_net_output_bytes", "ferrite_network_output_bytes_total", "Bytes sent to clients."),
    counter_in("total_reads_processed", "ferrite_network_reads_total",
        "Times something was received from a client."),
    counter_in("total_writes_processed", "ferrite_network_writes_total",
        "Times something was sent to a client."),
    gauge_in("tracking_total_keys", "ferrite_tracking_keys",
        "Keys whose changes are told to clients that keep copies."),
    gauge_in("pubsub_channels", "ferrite_pubsub_channels", "Channels that somebody listens to."),
    gauge_in("pubsub_patterns", "ferrite_pubsub_patterns", "Patterns of channels that somebody listens to."),
];

/// The commands that were called.
fn called(view: &View<'_>) -> impl Iterator<Item = &'static Command> {
    let server = view.server;
    table().all().filter(move |command| {
        counters_of(server, command).any(|counters| counters.calls.get() > 0)
    })
}

#[rustfmt::skip]
pub(super) const COMMANDS: &[Figure] = &[
    counter_in("total_commands_processed", "ferrite_commands_processed_total", "Commands that were run."),
    gauge_in("instantaneous_ops_per_sec", "ferrite_commands_per_second",
        "Commands that were run in the last second."),
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
    counter_in("total_error_replies", "ferrite_error_replies_total", "Replies that were errors."),
    counter("ferrite_errors_total", "Replies that were errors, by the code they begin with.", |view, samples| {
        for (code, count) in view.server.errors.all() {
            samples.labelled(&[&code], count as f64);
        }
    })
    .by(&["code"]),
    gauge("ferrite_slowlog_length", "Commands in the slow log.",
        |view, samples| samples.count(view.server.slowlog.lock().iter().len() as u64)),
];

/// A value of each worker.
fn each_worker(view: &View<'_>, samples: &mut Samples, read: fn(&WorkerStats) -> Option<f64>) {
    for (number, worker) in view.server.workers.iter().enumerate() {
        if let Some(value) = read(&worker.stats) {
            samples.labelled(&[&number.to_string()], value);
        }
    }
}

#[rustfmt::skip]
pub(super) const WORKERS: &[Figure] = &[
    counter("ferrite_worker_cpu_seconds_total", "Time a worker was on a processor.",
        |view, samples| each_worker(view, samples, |stats| {
            Some(stats.thread.get()?.times()?.running.as_secs_f64())
        }))
    .by(&["worker"]),
    counter("ferrite_worker_cpu_wait_seconds_total",
        "Time a worker was ready to run while others had the processor.",
        |view, samples| each_worker(view, samples, |stats| {
            Some(stats.thread.get()?.times()?.waiting.as_secs_f64())
        }))
    .by(&["worker"]),
    counter("ferrite_worker_turns_total", "Times a worker woke up and looked for work.",
        |view, samples| each_worker(view, samples, |stats| Some(stats.turns.get() as f64)))
    .by(&["worker"]),
    counter("ferrite_worker_turn_seconds_total", "Time a worker spent between two waits for the network.",
        |view, samples| each_worker(view, samples, |stats| {
            Some(sys::clock::ticks_to_ns(stats.turn_ticks.get()) as f64 / 1e9)
        }))
    .by(&["worker"]),
    gauge("ferrite_worker_connections", "Connections that a worker serves.",
        |view, samples| for (number, worker) in view.server.workers.iter().enumerate() {
            let connections = worker.connections.load(Relaxed);
            samples.labelled(&[&number.to_string()], connections as f64);
        })
    .by(&["worker"]),
    histogram("ferrite_queue_seconds",
        "How long requests waited from when they could be read until they ran.",
        |view, samples| {
            let workers = view.server.workers.iter();
            let times = Distribution::of(workers.map(|worker| &worker.stats.queued));
            let sum_s = seconds(&times);
            samples.times(&[], times, sum_s);
        }),
];
