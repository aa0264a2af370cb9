//! Figures of state: memory, keys, the log and snapshots.

use ferrite_log::Status;

use super::{by_database, seconds};
use crate::metrics::Distribution;
use crate::report::figures::figure::{
    Figure, Samples, counter, counter_in, gauge, gauge_in, histogram,
};
use crate::report::figures::history;
use crate::report::figures::view::View;

#[rustfmt::skip]
pub(super) const MEMORY: &[Figure] = &[
    gauge_in("used_memory", "ferrite_memory_used_bytes", "Memory that data and buffers take."),
    gauge_in("used_memory_peak", "ferrite_memory_peak_bytes", "The most that was ever used."),
    gauge_in("maxmemory", "ferrite_memory_max_bytes", "The limit of memory; 0 is none."),
    gauge_in("used_memory_dataset", "ferrite_memory_dataset_bytes",
        "Memory of keys and values, with what each needs around it."),
    gauge_in("used_memory_overhead", "ferrite_memory_overhead_bytes",
        "Memory that holds neither keys nor values."),
    gauge("ferrite_memory_index_bytes", "Memory of the tables that find keys.",
        |view, samples| samples.count(overhead(view, |one| one.index_bytes))),
    gauge("ferrite_memory_expiry_bytes", "Memory of the wheels that know when keys expire.",
        |view, samples| samples.count(overhead(view, |one| one.wheel_bytes))),
    gauge("ferrite_memory_slack_bytes", "Memory kept for entries that no entry uses now.",
        |view, samples| samples.count(overhead(view, |one| one.slack_bytes))),
    gauge_in("mem_clients_normal", "ferrite_memory_client_buffer_bytes", "Memory of connections' buffers."),
    gauge_in("used_memory_startup", "ferrite_memory_startup_bytes",
        "Memory that the server itself takes: code, stacks, rings."),
    gauge_in("mem_aof_buffer", "ferrite_memory_log_ring_bytes",
        "Memory of the ring that changes pass on their way to the log."),
    gauge("ferrite_memory_pending_bytes", "Memory that was dropped and waits for the background to free it.",
        |view, samples| samples.count(view.overview.memory().pending)),
    gauge(
        "ferrite_memory_other_bytes",
        "Memory in use that none of the figures above counts, the slow log among it; negative if something is counted twice.",
        |view, samples| {
            let memory = view.overview.memory();
            samples.number(memory.other() as f64 + memory.slow_log as f64);
        },
    ),
    gauge("ferrite_history_bytes", "Memory of the dashboard's history, a part of the other memory.",
        |_, samples| samples.count(history::bytes() as u64)),
    gauge_in("allocator_allocated", "ferrite_allocator_allocated_bytes",
        "Memory that was asked for, of allocators and as maps."),
    gauge_in("allocator_active", "ferrite_allocator_active_bytes",
        "The same with free places on pages that something is on."),
    gauge_in("allocator_resident", "ferrite_allocator_resident_bytes",
        "The same with free pages that are kept for later."),
    gauge_in("used_memory_rss", "process_resident_memory_bytes",
        "Physical memory that the process occupies."),
];

fn overhead(view: &View<'_>, of: fn(&keyspace::Overhead) -> usize) -> u64 {
    of(&view.overview.memory().around_entries()) as u64
}

#[rustfmt::skip]
pub(super) const KEYS: &[Figure] = &[
    gauge_in("keys", "ferrite_keys", "Keys in all databases."),
    gauge("ferrite_database_keys", "Keys in a database.",
        |view, samples| by_database(view, samples, |one| one.keys)).by(&["db"]),
    gauge("ferrite_database_expiring_keys", "Keys in a database that will expire.",
        |view, samples| by_database(view, samples, |one| one.expires)).by(&["db"]),
    counter_in("keyspace_hits", "ferrite_keyspace_hits_total", "Keys that reading commands found."),
    counter_in("keyspace_misses", "ferrite_keyspace_misses_total",
        "Keys that reading commands did not find."),
    counter_in("sets", "ferrite_keys_set_total", "Values that commands stored."),
    counter_in("dels", "ferrite_keys_deleted_total", "Keys that commands removed."),
    counter_in("expired_keys", "ferrite_keys_expired_total", "Keys removed because their time had come."),
    counter_in("expired_subkeys", "ferrite_fields_expired_total",
        "Fields of hashes removed because their time had come."),
    counter_in("evicted_keys", "ferrite_keys_evicted_total", "Keys removed because memory was short."),
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
    counter(
        "ferrite_expiry_seconds_total",
        "Time spent in removing keys that had expired.",
        |view, samples| {
            let ticks = view.server.sum(|stats| &stats.expiry_ticks);
            samples.number(sys::clock::ticks_to_ns(ticks) as f64 / 1e9);
        },
    ),
    counter_in("expired_time_cap_reached_count", "ferrite_expiry_cut_short_total",
        "Times that more had expired than is removed at once."),
    gauge("ferrite_index_resize_slowest_seconds", "The slowest step of resizing an index.",
        |view, samples| samples.number(view.server.totals.slowest_resize_us.get() as f64 / 1e6)),
    gauge_in("lazyfree_pending_objects", "ferrite_lazyfree_pending_objects",
        "Values and databases that wait to be freed in the background."),
    counter_in("lazyfreed_objects", "ferrite_lazyfreed_objects_total",
        "Values and databases that were freed in the background."),
];

#[rustfmt::skip]
pub(super) const SNAPSHOTS: &[Figure] = &[
    gauge_in("loading", "ferrite_loading", "1 while data is loaded."),
    gauge_in("rdb_bgsave_in_progress", "ferrite_snapshot_in_progress",
        "1 while a snapshot is written in the background."),
    gauge("ferrite_snapshot_last_success", "1 if the last snapshot was written, 0 if it failed.",
        |view, samples| samples.count(u64::from(view.server.snapshots.history().is_ok))),
    gauge_in("rdb_last_save_time", "ferrite_snapshot_last_timestamp_seconds",
        "When the last snapshot was written, in Unix time."),
    gauge_in("rdb_changes_since_last_save", "ferrite_snapshot_changes",
        "Changes to data since the last snapshot."),
    counter_in("rdb_saves", "ferrite_snapshots_total", "Snapshots that were written."),
];

/// A figure of the log, where there is one that takes writes.
fn of_log(view: &View<'_>, samples: &mut Samples, read: fn(&Status) -> f64) {
    if let Some(status) = &view.log {
        samples.number(read(status));
    }
}

#[rustfmt::skip]
pub(super) const LOG: &[Figure] = &[
    gauge("ferrite_log_refuses", "1 while the log takes no records: the disk is full or has failed.",
        |view, samples| of_log(view, samples, |log| { f64::from(u8::from(log.refusal.is_some())) })),
    gauge_in("aof_current_size", "ferrite_log_size_bytes", "Bytes of all segments of the log."),
    gauge_in("log_live_bytes", "ferrite_log_live_bytes",
        "Bytes of them that are still needed, as far as it is known."),
    gauge_in("log_large_values", "ferrite_log_large_values", "Keys whose value is in a file of its own."),
    gauge_in("log_large_value_bytes", "ferrite_log_large_value_bytes",
        "Bytes of these values. One that several keys have counts for each."),
    gauge("ferrite_log_pending_bytes",
        "Bytes of changes that are not on disk yet: what a loss of power would take.",
        |view, samples| of_log(view, samples, |log| { (log.tail.get() - log.durable.get()) as f64 })),
    gauge_in("log_segments", "ferrite_log_segments",
        "Segments of the log, the one that is being written included."),
    counter_in("aof_delayed_fsync", "ferrite_log_waits_total",
        "Times that a command had to wait for room in the log's buffer."),
    counter_in("log_writes", "ferrite_log_writes_total", "Writes to segments."),
    counter_in("log_syncs", "ferrite_log_syncs_total", "Times that the log was synced to the disk."),
    counter("ferrite_log_sync_seconds_total", "Time that syncing took.",
        |view, samples| of_log(view, samples, |log| log.sync_us as f64 / 1e6)),
    gauge("ferrite_log_sync_slowest_seconds", "The longest that one sync took.",
        |view, samples| of_log(view, samples, |log| log.sync_us_max as f64 / 1e6)),
    counter_in("log_compacted_bytes", "ferrite_log_compacted_bytes_total",
        "Bytes of segments that compaction has emptied."),
    counter_in("log_moved_bytes", "ferrite_log_moved_bytes_total", "Bytes that compaction wrote again."),
];
