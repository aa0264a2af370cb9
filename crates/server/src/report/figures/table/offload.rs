//! Figures of values that are on the disk alone, and of reading them.

use super::by_database;
use crate::report::figures::figure::{Figure, counter, counter_in, gauge, gauge_in};

#[rustfmt::skip]
pub(super) const OFFLOAD: &[Figure] = &[
    gauge_in("offload_active", "ferrite_offload_active",
        "1 when values have begun to leave memory because it is nearly used up."),
    gauge_in("cold_keys", "ferrite_cold_keys", "Keys whose value is on the disk alone."),
    gauge_in("cold_bytes", "ferrite_cold_bytes", "Bytes of these values."),
    gauge_in("cold_leaves", "ferrite_cold_leaves", "Parts of large collections that are on the disk alone."),
    gauge_in("cold_leaf_bytes", "ferrite_cold_leaf_bytes", "Bytes of these parts."),
    gauge("ferrite_database_cold_keys", "Keys of a database whose value is on the disk alone.",
        |view, samples| by_database(view, samples, |one| one.cold_keys)).by(&["db"]),
    gauge("ferrite_database_cold_bytes", "Bytes of these values, by database.",
        |view, samples| by_database(view, samples, |one| one.cold_bytes)).by(&["db"]),
    counter_in("offloaded_values", "ferrite_offloaded_values_total", "How often a value has left memory."),
    counter_in("offload_searches", "ferrite_offload_searches_total",
        "How often a part of the keys was searched for values that can leave memory."),
    counter_in("disk_reads", "ferrite_disk_reads_total", "Values that were read from the log."),
    counter_in("disk_reads_from_page_cache", "ferrite_disk_reads_from_page_cache_total",
        "How many of these the page cache had."),
    counter_in("disk_reads_not_kept", "ferrite_disk_reads_not_kept_total",
        "How many of these were answered without coming back into memory."),
    counter_in("disk_read_bytes", "ferrite_disk_read_bytes_total", "Bytes of these values."),
    counter("ferrite_disk_read_seconds_total", "Time that reading them took.",
        |view, samples| samples.number(view.server.persistence.reading.took_us() as f64 / 1e6)),
    counter_in("script_restarts", "ferrite_script_restarts_total",
        "How often a script began again because it needs a value that was on the disk alone."),
    counter_in("disk_read_errors", "ferrite_disk_read_errors_total", "Values that could not be read back."),
];
