//! Figures of values that are on the disk alone, and of reading them.

use std::sync::atomic::Ordering::Relaxed;

use super::sum;
use crate::report::figures::figure::{Figure, counter, gauge};
use crate::report::figures::view::DatabaseView;

pub(super) const OFFLOAD: &[Figure] = &[
    gauge(
        "ferrite_offload_active",
        "1 when values have begun to leave memory because it is nearly used up.",
        |view, samples| {
            samples.count(u64::from(view.server.offload.is_offloading()));
        },
    )
    .in_info("offload_active"),
    gauge(
        "ferrite_cold_keys",
        "Keys whose value is on the disk alone.",
        |view, samples| {
            let of = |one: &DatabaseView| one.cold_keys as u64;
            samples.count(view.databases.iter().map(of).sum());
        },
    )
    .in_info("cold_keys"),
    gauge(
        "ferrite_cold_bytes",
        "Bytes of these values.",
        |view, samples| {
            let of = |one: &DatabaseView| one.cold_bytes as u64;
            samples.count(view.databases.iter().map(of).sum());
        },
    )
    .in_info("cold_bytes"),
    gauge(
        "ferrite_cold_leaves",
        "Parts of large collections that are on the disk alone.",
        |view, samples| samples.count(view.server.offload.leaves.count()),
    )
    .in_info("cold_leaves"),
    gauge(
        "ferrite_cold_leaf_bytes",
        "Bytes of these parts.",
        |view, samples| samples.count(view.server.offload.leaves.bytes()),
    )
    .in_info("cold_leaf_bytes"),
    gauge(
        "ferrite_database_cold_keys",
        "Keys of a database whose value is on the disk alone.",
        |view, samples| {
            for one in &view.databases {
                samples.labelled(&[&one.db.to_string()], one.cold_keys as f64);
            }
        },
    )
    .by(&["db"]),
    gauge(
        "ferrite_database_cold_bytes",
        "Bytes of these values, by database.",
        |view, samples| {
            for one in &view.databases {
                samples.labelled(&[&one.db.to_string()], one.cold_bytes as f64);
            }
        },
    )
    .by(&["db"]),
    counter(
        "ferrite_offloaded_values_total",
        "How often a value has left memory.",
        |view, samples| {
            sum(view, samples, |stats| &stats.offloaded);
        },
    )
    .in_info("offloaded_values"),
    counter(
        "ferrite_disk_reads_total",
        "Values that were read from the log.",
        |view, samples| {
            samples.count(view.server.persistence.reading.reads());
        },
    )
    .in_info("disk_reads"),
    counter(
        "ferrite_disk_reads_from_page_cache_total",
        "How many of these the page cache had.",
        |view, samples| {
            samples.count(view.server.persistence.reading.cached.load(Relaxed));
        },
    )
    .in_info("disk_reads_from_page_cache"),
    counter(
        "ferrite_disk_reads_not_kept_total",
        "How many of these were answered without coming back into memory.",
        |view, samples| {
            samples.count(view.server.persistence.reading.served.load(Relaxed));
        },
    )
    .in_info("disk_reads_not_kept"),
    counter(
        "ferrite_disk_read_bytes_total",
        "Bytes of these values.",
        |view, samples| {
            samples.count(view.server.persistence.reading.bytes.load(Relaxed));
        },
    )
    .in_info("disk_read_bytes"),
    counter(
        "ferrite_disk_read_seconds_total",
        "Time that reading them took.",
        |view, samples| {
            samples.number(view.server.persistence.reading.took_us() as f64 / 1e6);
        },
    ),
    counter(
        "ferrite_disk_read_errors_total",
        "Values that could not be read back.",
        |view, samples| {
            samples.count(view.server.persistence.reading.failures.load(Relaxed));
        },
    )
    .in_info("disk_read_errors"),
];
