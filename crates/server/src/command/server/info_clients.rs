//! What INFO says about connections: the section Clients, where the server listens, and what each worker
//! does.

use std::sync::atomic::Ordering::Relaxed;

use super::info::Report;
use super::overview::Overview;
use crate::config::{Setting, Settings};
use crate::shared::PauseKind;
use crate::shared::clients::status;

pub(super) fn clients(report: &mut Report, view: &Overview<'_>) {
    let (mut connected, mut blocked, mut watching, mut listening) = (0, 0, 0, 0);
    let (mut most_input, mut most_output) = (0, 0);
    view.server.clients.for_each(|client| {
        connected += 1;
        blocked += u32::from(client.has_status(status::BLOCKED));
        watching += u32::from(client.watched_keys() > 0);
        listening += u32::from(client.has_status(status::PUBSUB));
        let input = client.input_bytes.load(Relaxed) + client.input_free.load(Relaxed);
        most_input = most_input.max(input);
        most_output = most_output.max(client.output_bytes.load(Relaxed));
    });
    let most = view.server.settings.int(Setting::MaxClients);
    report.field("connected_clients", connected);
    report.zeroes(&["cluster_connections"]);
    report.field("maxclients", most);
    report.field("client_recent_max_input_buffer", most_input);
    report.field("client_recent_max_output_buffer", most_output);
    report.field("blocked_clients", blocked);
    report.field("tracking_clients", view.server.observers.tracking.clients());
    report.field("pubsub_clients", listening);
    report.field("watching_clients", watching);
    report.field(
        "clients_in_timeout_table",
        view.server.deadlines.load(Relaxed),
    );
    let watched = view.server.observers.watches.keys();
    report.field("total_watched_keys", watched);
    let blocking = view.server.observers.waiters.keys();
    report.field("total_blocking_keys", blocking);
    // Nothing waits for a key to go.
    report.zeroes(&["total_blocking_keys_on_nokey"]);
    paused(report, view);
}

/// CLIENT PAUSE, in the words of Valkey.
fn paused(report: &mut Report, view: &Overview<'_>) {
    let pause = view.server.pause.until(view.now);
    let (reason, actions, left_ms) = match pause {
        None => ("none", "none", 0),
        Some((until, PauseKind::All)) => ("client_pause", "all", until - view.now),
        Some((until, PauseKind::Write)) => ("client_pause", "write", until - view.now),
    };
    report.field("paused_reason", reason);
    report.field("paused_actions", actions);
    report.field("paused_timeout_milliseconds", left_ms);
}

/// A line for TCP, and one for the unix socket.
pub(super) fn listeners(report: &mut Report, settings: &Settings) {
    let mut number = 0;
    let mut line = |text: String| {
        report.line(format_args!("listener{number}:{text}"));
        number += 1;
    };
    let port = settings.int(Setting::Port);
    if port != 0 {
        let bind = settings.text(Setting::Bind);
        let addresses = bind
            .split_whitespace()
            .map(|address| format!(",bind={address}"));
        let addresses: String = addresses.collect();
        line(format!("name=tcp{addresses},port={port}"));
    }
    let path = settings.text(Setting::UnixSocket);
    if !path.is_empty() {
        line(format!("name=unix,bind={path}"));
    }
}

/// A line for each worker: all of them serve clients.
pub(super) fn threads(report: &mut Report, view: &Overview<'_>) {
    let workers = &view.server.workers;
    let mut clients = vec![0; workers.len()];
    view.server
        .clients
        .for_each(|client| clients[client.worker] += 1);
    for (number, (worker, clients)) in workers.iter().zip(clients).enumerate() {
        let (reads, writes) = (worker.stats.reads.get(), worker.stats.writes.get());
        report.line(format_args!(
            "io_thread_{number}:clients={clients},reads={reads},writes={writes}"
        ));
    }
}
