//! What the server holds: figures of memory, keys, the log and snapshots.

use ferrite_log::Status;

use super::{seconds, sum};
use crate::config::Setting;
use crate::metrics::Distribution;
use crate::report::figures::figure::{Figure, Samples, counter, gauge, histogram};
use crate::report::figures::history;
use crate::report::figures::view::View;
use crate::shared::gate::Closed;

pub(super) const MEMORY: &[Figure] = &[
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
        "ferrite_memory_startup_bytes",
        "Memory that the server itself takes: code, stacks, rings.",
        |view, samples| {
            samples.count(view.memory.startup);
        },
    )
    .in_info("used_memory_startup"),
    gauge(
        "ferrite_memory_log_ring_bytes",
        "Memory of the ring that changes pass on their way to the log.",
        |view, samples| {
            samples.count(view.memory.log);
        },
    )
    .in_info("mem_aof_buffer"),
    gauge(
        "ferrite_memory_pending_bytes",
        "Memory that was dropped and waits for the background to free it.",
        |view, samples| {
            samples.count(view.memory.pending);
        },
    ),
    gauge(
        "ferrite_memory_other_bytes",
        "Memory in use that none of the figures above counts, the slow log among it; negative if something is counted twice.",
        |view, samples| {
            samples.number(view.memory.other() as f64 + view.memory.slow_log as f64);
        },
    ),
    gauge(
        "ferrite_history_bytes",
        "Memory of the dashboard's history, a part of the other memory.",
        |_, samples| {
            samples.count(history::bytes() as u64);
        },
    ),
    gauge(
        "ferrite_allocator_allocated_bytes",
        "Memory that was asked for, of allocators and as maps.",
        |view, samples| {
            samples.count(view.memory.heap.allocated);
        },
    )
    .in_info("allocator_allocated"),
    gauge(
        "ferrite_allocator_active_bytes",
        "The same with free places on pages that something is on.",
        |view, samples| {
            samples.count(view.memory.heap.active);
        },
    )
    .in_info("allocator_active"),
    gauge(
        "ferrite_allocator_resident_bytes",
        "The same with free pages that are kept for later.",
        |view, samples| {
            samples.count(view.memory.heap.resident);
        },
    )
    .in_info("allocator_resident"),
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
    of(&view.memory.around_entries()) as u64
}

pub(super) const KEYS: &[Figure] = &[
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
    counter(
        "ferrite_fields_expired_total",
        "Fields of hashes removed because their time had come.",
        |view, samples| {
            samples.count(view.server.expired_fields());
        },
    )
    .in_info("expired_subkeys"),
    counter(
        "ferrite_keys_evicted_total",
        "Keys removed because memory was short.",
        |view, samples| {
            sum(view, samples, |stats| &stats.evicted);
        },
    )
    .in_info("evicted_keys"),
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
    counter(
        "ferrite_expiry_cut_short_total",
        "Times that more had expired than is removed at once.",
        |view, samples| {
            sum(view, samples, |stats| &stats.expiry_cut_short);
        },
    )
    .in_info("expired_time_cap_reached_count"),
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
    counter(
        "ferrite_lazyfreed_objects_total",
        "Values and databases that were freed in the background.",
        |view, samples| {
            samples.count(view.server.reclaimed());
        },
    )
    .in_info("lazyfreed_objects"),
];

pub(super) const SNAPSHOTS: &[Figure] = &[
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

/// A figure of the log, where there is one that takes writes.
fn of_log(view: &View<'_>, samples: &mut Samples, read: fn(&Status) -> f64) {
    if let Some(status) = &view.log {
        samples.number(read(status));
    }
}

pub(super) const LOG: &[Figure] = &[
    gauge(
        "ferrite_log_refuses",
        "1 while the log takes no records: the disk is full or has failed.",
        |view, samples| {
            of_log(view, samples, |log| {
                f64::from(u8::from(log.refusal.is_some()))
            });
        },
    ),
    gauge(
        "ferrite_log_size_bytes",
        "Bytes of all segments of the log.",
        |view, samples| {
            of_log(view, samples, |log| log.disk_bytes as f64);
        },
    )
    .in_info("aof_current_size"),
    gauge(
        "ferrite_log_live_bytes",
        "Bytes of them that are still needed, as far as it is known.",
        |view, samples| {
            of_log(view, samples, |log| log.live_bytes as f64);
        },
    )
    .in_info("log_live_bytes"),
    gauge(
        "ferrite_log_large_values",
        "Keys whose value is in a file of its own.",
        |view, samples| {
            of_log(view, samples, |log| log.blobs as f64);
        },
    )
    .in_info("log_large_values"),
    gauge(
        "ferrite_log_large_value_bytes",
        "Bytes of these values. One that several keys have counts for each.",
        |view, samples| {
            of_log(view, samples, |log| log.blob_bytes as f64);
        },
    )
    .in_info("log_large_value_bytes"),
    gauge(
        "ferrite_log_pending_bytes",
        "Bytes of changes that are not on disk yet: what a loss of power would take.",
        |view, samples| {
            of_log(view, samples, |log| {
                (log.tail.get() - log.durable.get()) as f64
            });
        },
    ),
    gauge(
        "ferrite_log_segments",
        "Segments of the log, the one that is being written included.",
        |view, samples| {
            of_log(view, samples, |log| log.segments as f64);
        },
    )
    .in_info("log_segments"),
    counter(
        "ferrite_log_waits_total",
        "Times that a command had to wait for room in the log's buffer.",
        |view, samples| {
            of_log(view, samples, |log| log.waits as f64);
        },
    )
    .in_info("aof_delayed_fsync"),
    counter(
        "ferrite_log_writes_total",
        "Writes to segments.",
        |view, samples| {
            of_log(view, samples, |log| log.writes as f64);
        },
    )
    .in_info("log_writes"),
    counter(
        "ferrite_log_syncs_total",
        "Times that the log was synced to the disk.",
        |view, samples| {
            of_log(view, samples, |log| log.syncs as f64);
        },
    )
    .in_info("log_syncs"),
    counter(
        "ferrite_log_sync_seconds_total",
        "Time that syncing took.",
        |view, samples| {
            of_log(view, samples, |log| log.sync_us as f64 / 1e6);
        },
    ),
    gauge(
        "ferrite_log_sync_slowest_seconds",
        "The longest that one sync took.",
        |view, samples| {
            of_log(view, samples, |log| log.sync_us_max as f64 / 1e6);
        },
    ),
    counter(
        "ferrite_log_compacted_bytes_total",
        "Bytes of segments that compaction has emptied.",
        |view, samples| {
            of_log(view, samples, |log| log.compacted_bytes as f64);
        },
    )
    .in_info("log_compacted_bytes"),
    counter(
        "ferrite_log_moved_bytes_total",
        "Bytes that compaction wrote again.",
        |view, samples| {
            of_log(view, samples, |log| log.moved_bytes as f64);
        },
    )
    .in_info("log_moved_bytes"),
];
