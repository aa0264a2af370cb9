//! The sections of INFO: their fields, and the sources of their values.
//!
//! A field is here if its value is true. Fields of features that this server lacks (replicas, scripts, a
//! defragmenter) have the value of an unused feature in Redis, mostly 0, because tools look for the field. A
//! test compares the names with those of a redis-server.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use keyspace::Database;

use super::info::{Report, human_bytes};
use super::info_clients;
use super::overview::Overview;
use crate::command::{Command, table};
use crate::config::{REDIS_VERSION, Setting, VERSION};
use crate::metrics::{CommandStats, Counter, Distribution, WorkerStats};
use crate::persistence::snapshot::Loading;
use crate::persistence::{Phase, Warming};
use crate::pubsub::NameKind;
use crate::server::Server;

pub(super) fn server(report: &mut Report, view: &Overview<'_>) {
    let server = view.server;
    let now_us = sys::clock::realtime_us();
    let uptime_s = (now_us / 1000 - server.started_ms).max(0) / 1000;
    let hz = server.settings.int(Setting::Hz);
    report.field("redis_version", REDIS_VERSION);
    // As of a Redis that was built outside of its repository.
    report.field("redis_git_sha1", "00000000");
    report.zeroes(&["redis_git_dirty"]);
    report.field("server_name", "ferrite");
    report.field("ferrite_version", VERSION);
    report.field("redis_mode", server.mode());
    report.field("server_mode", server.mode());
    report.field("os", sys::process::os_text());
    report.field("arch_bits", usize::BITS);
    report.field("monotonic_clock", "POSIX clock_gettime");
    report.field("multiplexing_api", server.poller_name);
    // The compiler's own atomics, in the memory model of C11; and that compiler is not gcc.
    report.field("atomicvar_api", "c11-builtin");
    report.field("gcc_version", "0.0.0");
    report.field("process_id", sys::process::pid());
    report.field("process_supervised", sys::process::supervisor());
    report.field("run_id", &server.run_id);
    report.field("tcp_port", server.settings.int(Setting::Port));
    report.field("server_time_usec", now_us);
    report.field("uptime_in_seconds", uptime_s);
    report.field("uptime_in_days", uptime_s / (24 * 60 * 60));
    report.field("hz", hz);
    report.field("configured_hz", hz);
    report.field("lru_clock", (now_us / 1_000_000) & 0xff_ffff);
    let executable = sys::process::executable_path().unwrap_or_default();
    report.field("executable", executable.display());
    let config_file = server.config_file.as_deref().unwrap_or("".as_ref());
    report.field("config_file", config_file.display());
    report.field("io_threads_active", u8::from(server.workers.len() > 1));
    info_clients::listeners(report, &server.settings);
}

/// A part of a whole, in percent.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

pub(super) fn memory(report: &mut Report, view: &Overview<'_>) {
    let settings = &view.server.settings;
    let figures = view.memory();
    report.bytes("used_memory", figures.used);
    report.bytes("used_memory_rss", figures.resident);
    report.bytes("used_memory_peak", figures.peak);
    let peak_s = view.server.totals.peak_memory_s.get();
    report.field("used_memory_peak_time", peak_s);
    let peak_percent = percent(figures.used, figures.peak);
    report.field("used_memory_peak_perc", format_args!("{peak_percent:.2}%"));
    report.field("used_memory_overhead", figures.overhead());
    report.field("used_memory_startup", figures.startup);
    report.field("used_memory_dataset", figures.dataset());
    let dataset_percent = percent(figures.dataset(), figures.beyond_startup());
    report.field(
        "used_memory_dataset_perc",
        format_args!("{dataset_percent:.2}%"),
    );
    report.field("allocator_allocated", figures.heap.allocated);
    report.field("allocator_active", figures.heap.active);
    report.field("allocator_resident", figures.heap.resident);
    // Nothing is kept in that state (jemalloc's muzzy_decay_ms is 0).
    report.zeroes(&["allocator_muzzy"]);
    report.bytes("total_system_memory", sys::process::total_memory_bytes());
    report.zeroes(&["used_memory_lua", "used_memory_vm_eval"]);
    report.field("used_memory_lua_human", human_bytes(0));
    let (scripts, script_bytes) = view.server.scripts.sizes();
    report.field("used_memory_scripts_eval", script_bytes);
    report.field("number_of_cached_scripts", scripts);
    let libraries = view.server.persistence.libraries.sizes();
    report.field("number_of_functions", libraries.functions);
    report.field("number_of_libraries", libraries.libraries);
    report.zeroes(&["used_memory_vm_functions"]);
    report.bytes("used_memory_vm_total", 0);
    report.field("used_memory_functions", libraries.bytes);
    let bytes = script_bytes + libraries.bytes;
    report.bytes("used_memory_scripts", bytes as u64);
    report.bytes("maxmemory", settings.int(Setting::MaxMemory) as u64);
    // Clients warn of a loss of data if it is another one than `noeviction`: with `offload` there is none.
    let policy = settings.choice(Setting::MaxMemoryPolicy);
    let is_offload = policy == "offload";
    let shown = if is_offload { "noeviction" } else { policy };
    report.field("maxmemory_policy", shown);
    report.field("maxmemory_offload", i32::from(is_offload));
    let names = ["allocator_frag", "allocator_rss", "rss_overhead"];
    for (name, loss) in names.into_iter().zip(figures.losses()) {
        report.line(format_args!("{name}_ratio:{:.2}", loss.ratio));
        report.line(format_args!("{name}_bytes:{}", loss.bytes));
    }
    let fragmentation = figures.fragmentation();
    report.field(
        "mem_fragmentation_ratio",
        format_args!("{fragmentation:.2}"),
    );
    report.field("mem_fragmentation_bytes", figures.fragmentation_bytes());
    report.zeroes(&[
        "mem_not_counted_for_evict",
        "mem_overhead_db_hashtable_rehashing",
        "mem_replication_backlog",
        "mem_total_replication_buffers",
        "mem_replica_full_sync_buffer",
        "mem_replicas_repl_buffer",
        "mem_clients_slaves",
    ]);
    report.field("mem_clients_normal", figures.buffers);
    report.field("mem_slow_log", figures.slow_log);
    report.field("mem_tracking_table", view.server.observers.tracking.bytes());
    report.zeroes(&[
        "mem_cluster_links",
        "mem_cluster_slot_import",
        "mem_cluster_slot_export",
    ]);
    report.field("mem_aof_buffer", figures.log);
    report.field("mem_allocator", sys::memory::ALLOCATOR);
    report.zeroes(&["active_defrag_running"]);
    let waiting = view.server.keyspace.pending_reclaims();
    report.field("lazyfree_pending_objects", waiting);
    report.field("lazyfreed_objects", view.server.reclaimed());
}

pub(super) fn persistence(report: &mut Report, view: &Overview<'_>) {
    let (server, snapshots) = (view.server, &view.server.snapshots);
    let (history, current) = (snapshots.history(), snapshots.current());
    report.field("loading", u8::from(server.is_loading()));
    report.zeroes(&["async_loading"]);
    // Copies of writers for a snapshot correspond to the copied pages of a fork.
    report.field("current_cow_peak", current.most_copied_bytes);
    report.field("current_cow_size", current.copied_bytes);
    report.field("current_cow_size_age", current.age_s);
    let done_percent = percent(current.keys, current.total).min(100.0);
    report.field("current_fork_perc", format_args!("{done_percent:.2}"));
    report.field("current_save_keys_processed", current.keys);
    report.field("current_save_keys_total", current.total);
    report.field("rdb_changes_since_last_save", snapshots.changes(server));
    report.field(
        "rdb_bgsave_in_progress",
        u8::from(current.background_s >= 0),
    );
    report.field("rdb_last_save_time", history.saved_at_s);
    let status = if history.is_ok { "ok" } else { "err" };
    report.field("rdb_last_bgsave_status", status);
    report.field("rdb_last_bgsave_time_sec", history.took_s);
    report.field("rdb_current_bgsave_time_sec", current.background_s);
    report.field("rdb_saves", history.count);
    report.field("rdb_last_cow_size", history.copied_bytes);
    let loading = snapshots.loading();
    report.field("rdb_last_load_keys_expired", loading.expired.load(Relaxed));
    report.field("rdb_last_load_keys_loaded", loading.keys.load(Relaxed));
    let persistence = &server.persistence;
    let (status, phase) = (persistence.status(), persistence.phase());
    let (rewrites, is_rewrite_ok) = persistence.rewrites();
    let is_enabled = server.settings.flag(Setting::AppendOnly);
    report.field("aof_enabled", u8::from(is_enabled));
    let is_thorough = status.as_ref().is_some_and(|status| status.is_thorough);
    let is_rewriting = is_thorough || phase == Phase::Beginning;
    report.field("aof_rewrite_in_progress", u8::from(is_rewriting));
    report.zeroes(&["aof_rewrite_scheduled"]);
    report.field("aof_last_rewrite_time_sec", -1);
    report.field("aof_current_rewrite_time_sec", -1);
    let rewrite_status = if is_rewrite_ok { "ok" } else { "err" };
    report.field("aof_last_bgrewrite_status", rewrite_status);
    report.field("aof_rewrites", rewrites);
    report.field(
        "aof_rewrites_consecutive_failures",
        u8::from(!is_rewrite_ok),
    );
    let is_refused = status
        .as_ref()
        .is_some_and(|status| status.refusal.is_some());
    let write_status = if is_refused { "err" } else { "ok" };
    report.field("aof_last_write_status", write_status);
    report.zeroes(&["aof_last_cow_size"]);
    report.zeroes(&[
        "module_fork_in_progress",
        "module_fork_last_cow_size",
        "slot_migration_fork_in_progress",
    ]);
    if let Some(status) = &status {
        log_fields(report, status);
        warming_progress(report, &persistence.warming);
    }
    if server.is_loading() {
        loading_progress(report, loading);
    }
}

/// Fields of a log that takes writes: names of Redis for the same figure, `log_` before our own.
fn log_fields(report: &mut Report, status: &ferrite_log::Status) {
    report.field("aof_current_size", status.disk_bytes);
    report.field("aof_base_size", status.live_bytes);
    report.zeroes(&["aof_pending_rewrite"]);
    let waiting = status.tail.get() - status.written.get();
    report.field("aof_buffer_length", waiting);
    report.zeroes(&["aof_pending_bio_fsync"]);
    report.field("aof_delayed_fsync", status.waits);
    report.field("log_tail", status.tail.get());
    report.field("log_durable", status.durable.get());
    report.field("log_segments", status.segments);
    report.field("log_live_bytes", status.live_bytes);
    report.field("log_large_values", status.blobs);
    report.field("log_large_value_bytes", status.blob_bytes);
    report.field("log_writes", status.writes);
    report.field("log_syncs", status.syncs);
    report.field("log_sync_us", status.sync_us);
    report.field("log_sync_us_max", status.sync_us_max);
    // -1 for as fast as it can.
    let rate = i64::try_from(status.compaction_rate).unwrap_or(-1);
    report.field("log_compaction_rate", rate);
    report.field("log_compacted_segments", status.compacted_segments);
    report.field("log_compacted_bytes", status.compacted_bytes);
    report.field("log_moved_bytes", status.moved_bytes);
}

/// Values that a start has left in the log, on their way back.
fn warming_progress(report: &mut Report, warming: &Warming) {
    let progress = warming.progress();
    report.field("warming", u8::from(progress.is_some()));
    if let Some((done, total)) = progress {
        let done_percent = percent(done, total);
        report.field("warming_total_bytes", total);
        report.field("warming_done_bytes", done);
        report.field("warming_perc", format_args!("{done_percent:.2}"));
    }
}

fn loading_progress(report: &mut Report, loading: &Loading) {
    let started_s = loading.started_s.load(Relaxed);
    let (total, loaded) = (
        loading.total_bytes.load(Relaxed),
        loading.loaded_bytes.load(Relaxed),
    );
    report.field("loading_start_time", started_s);
    report.field("loading_total_bytes", total);
    report.field("loading_rdb_used_mem", loading.used_memory.load(Relaxed));
    report.field("loading_loaded_bytes", loaded);
    let done_percent = percent(loaded, total);
    report.field("loading_loaded_perc", format_args!("{done_percent:.2}"));
    let elapsed_s = (sys::clock::realtime_ms() / 1000 - started_s).max(0) as u64;
    let left_s = match loaded {
        0 => 1,
        _ => elapsed_s * total.saturating_sub(loaded) / loaded,
    };
    report.field("loading_eta_seconds", left_s);
}

pub(super) fn stats(report: &mut Report, view: &Overview<'_>) {
    let (server, totals) = (view.server, &view.server.totals);
    let sum = |counter: fn(&WorkerStats) -> &Counter| server.sum(counter);
    report.field("total_connections_received", totals.connections.get());
    report.field("total_commands_processed", sum(|stats| &stats.commands));
    report.field(
        "instantaneous_ops_per_sec",
        totals.commands_per_second.get(),
    );
    report.field("total_net_input_bytes", sum(|stats| &stats.input_bytes));
    report.field("total_net_output_bytes", sum(|stats| &stats.output_bytes));
    report.zeroes(&[
        "total_net_repl_input_bytes",
        "total_net_repl_output_bytes",
        "total_net_cluster_slot_import_bytes",
        "total_net_cluster_slot_export_bytes",
    ]);
    let kilobytes = |per_second: &Counter| format!("{:.2}", per_second.get() as f64 / 1024.0);
    report.field(
        "instantaneous_input_kbps",
        kilobytes(&totals.input_per_second),
    );
    report.field(
        "instantaneous_output_kbps",
        kilobytes(&totals.output_per_second),
    );
    report.field("instantaneous_input_repl_kbps", "0.00");
    report.field("instantaneous_output_repl_kbps", "0.00");
    report.field("rejected_connections", totals.rejected.get());
    report.zeroes(&["sync_full", "sync_partial_ok", "sync_partial_err"]);
    removals(report, view);
    uses(report, view);
    disconnections(report, view);
}

/// Keys and clients that were removed because their time had come, or memory was short.
fn removals(report: &mut Report, view: &Overview<'_>) {
    let (server, totals) = (view.server, &view.server.totals);
    let sum = |counter: fn(&WorkerStats) -> &Counter| server.sum(counter);
    report.field("expired_keys", server.expired_keys());
    report.field("expired_subkeys", server.expired_fields());
    // The name of Valkey.
    report.field("expired_fields", server.expired_fields());
    let overdue = overdue_percent(view);
    report.field("expired_stale_perc", format_args!("{overdue:.2}"));
    report.field(
        "expired_time_cap_reached_count",
        sum(|stats| &stats.expiry_cut_short),
    );
    let expiry_ns = sys::clock::ticks_to_ns(sum(|stats| &stats.expiry_ticks));
    report.field("expire_cycle_cpu_milliseconds", expiry_ns / 1_000_000);
    report.field("evicted_keys", sum(|stats| &stats.evicted));
    report.zeroes(&["evicted_scripts"]);
    report.field("evicted_clients", totals.evicted_clients.load(Relaxed));
    let (current_ms, total_ms) = server.memory.exceeded_ms();
    report.field("total_eviction_exceeded_time", total_ms);
    report.field("current_eviction_exceeded_time", current_ms);
}

/// Uses of keys, channels and sockets.
fn uses(report: &mut Report, view: &Overview<'_>) {
    let (server, totals) = (view.server, &view.server.totals);
    let sum = |counter: fn(&WorkerStats) -> &Counter| server.sum(counter);
    report.field("keyspace_hits", sum(|stats| &stats.hits));
    report.field("keyspace_misses", sum(|stats| &stats.misses));
    let names = |kind: NameKind| server.registry.count(kind);
    report.field("pubsub_channels", names(NameKind::Channel));
    report.field("pubsub_patterns", names(NameKind::Pattern));
    report.field("pubsubshard_channels", names(NameKind::Shard));
    report.zeroes(&["latest_fork_usec", "total_forks"]);
    report.field("index_resize_slowest_usec", totals.slowest_resize_us.get());
    report.zeroes(&["migrate_cached_sockets", "slave_expires_tracked_keys"]);
    report.zeroes(&[
        "active_defrag_hits",
        "active_defrag_misses",
        "active_defrag_key_hits",
        "active_defrag_key_misses",
        "total_active_defrag_time",
        "current_active_defrag_time",
    ]);
    let tracking = &server.observers.tracking;
    report.field("tracking_total_keys", tracking.keys());
    report.field("tracking_total_items", tracking.items());
    report.field("tracking_total_prefixes", tracking.prefixes());
    report.zeroes(&["unexpected_error_replies"]);
    report.field("total_error_replies", sum(|stats| &stats.errors));
    report.zeroes(&["dump_payload_sanitizations"]);
    let (reads, writes) = (sum(|stats| &stats.reads), sum(|stats| &stats.writes));
    // All workers are such threads, if there are several; then none of them is the main one.
    let by_threads = |count| if server.workers.len() > 1 { count } else { 0 };
    report.field("total_reads_processed", reads);
    report.field("total_writes_processed", writes);
    report.field("io_threaded_reads_processed", by_threads(reads));
    report.field("io_threaded_writes_processed", by_threads(writes));
    report.zeroes(&[
        "io_threaded_total_prefetch_batches",
        "io_threaded_total_prefetch_entries",
        "io_threaded_accept_processed",
        "io_threaded_poll_processed",
        "io_threaded_freed_objects",
        "reply_buffer_shrinks",
        "reply_buffer_expands",
    ]);
}

/// Connections that were refused or closed by the server.
fn disconnections(report: &mut Report, view: &Overview<'_>) {
    let (logins, totals) = (&view.server.logins, &view.server.totals);
    report.field("auth_failures", logins.failed.load(Relaxed));
    report.field("acl_access_denied_auth", logins.failed.load(Relaxed));
    report.zeroes(&[
        "acl_access_denied_cmd",
        "acl_access_denied_key",
        "acl_access_denied_channel",
        "acl_access_denied_db",
        "acl_access_denied_tls_cert",
    ]);
    report.field("auth_delayed", logins.delayed.load(Relaxed));
    report.field("auth_refused", logins.refused.load(Relaxed));
    report.field("auth_addresses", logins.addresses());
    report.field(
        "client_query_buffer_limit_disconnections",
        totals.query_limit_disconnects.load(Relaxed),
    );
    report.field(
        "client_output_buffer_limit_disconnections",
        totals.output_limit_disconnects.load(Relaxed),
    );
}

pub(super) fn replication(report: &mut Report, view: &Overview<'_>) {
    report.field("role", "master");
    report.zeroes(&["connected_slaves", "replicas_waiting_psync"]);
    report.field("master_failover_state", "no-failover");
    report.field("master_replid", &view.server.replication_id);
    report.field("master_replid2", "0".repeat(40));
    report.zeroes(&["master_repl_offset"]);
    report.field("second_repl_offset", -1);
    report.zeroes(&[
        "repl_backlog_active",
        "repl_backlog_size",
        "repl_backlog_first_byte_offset",
        "repl_backlog_histlen",
    ]);
}

pub(super) fn cpu(report: &mut Report, _: &Overview<'_>) {
    let seconds = |time: Duration| format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    let (own, children) = (
        sys::process::cpu_times(),
        sys::process::children_cpu_times(),
    );
    let main = sys::process::main_thread_cpu_times();
    report.field("used_cpu_sys", seconds(own.system));
    report.field("used_cpu_user", seconds(own.user));
    report.field("used_cpu_sys_children", seconds(children.system));
    report.field("used_cpu_user_children", seconds(children.user));
    report.field("used_cpu_sys_main_thread", seconds(main.system));
    report.field("used_cpu_user_main_thread", seconds(main.user));
}

/// There are none; the heading alone says so.
pub(super) fn modules(_: &mut Report, _: &Overview<'_>) {}

/// The counters of a command on all workers.
pub(crate) fn counters_of<'s>(
    server: &'s Server,
    command: &Command,
) -> impl Iterator<Item = &'s CommandStats> + Clone + use<'s> {
    let id = command.id;
    server
        .workers
        .iter()
        .map(move |worker| worker.stats.command(id))
}

/// The distribution of a command's times on all workers, in ticks.
pub(super) fn distribution(server: &Server, command: &Command) -> Distribution {
    Distribution::of(counters_of(server, command).filter_map(CommandStats::run_times))
}

pub(super) fn command_stats(report: &mut Report, view: &Overview<'_>) {
    for command in table().all() {
        let (mut calls, mut ticks, mut rejected, mut failed) = (0, 0, 0, 0);
        for counters in counters_of(view.server, command) {
            calls += counters.calls.get();
            ticks += counters.ticks.get();
            rejected += counters.rejected.get();
            failed += counters.failed.get();
        }
        if calls + rejected + failed == 0 {
            continue;
        }
        let took_us = sys::clock::ticks_to_ns(ticks) as f64 / 1000.0;
        report.line(format_args!(
            "cmdstat_{}:calls={calls},usec={:.0},usec_per_call={:.2},rejected_calls={rejected},failed_calls={failed}",
            command.full_name,
            took_us.floor(),
            took_us / calls.max(1) as f64,
        ));
    }
}

pub(super) fn error_stats(report: &mut Report, view: &Overview<'_>) {
    for (code, count) in view.server.errors.all() {
        report.line(format_args!("errorstat_{code}:count={count}"));
    }
}

/// The times below which so much of a hundred calls stay, as Redis shows them unless told otherwise.
const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p99", 99.0), ("p99.9", 99.9)];

pub(super) fn latency_stats(report: &mut Report, view: &Overview<'_>) {
    for command in table().all() {
        let times = distribution(view.server, command);
        if times.calls() == 0 {
            continue;
        }
        let percentiles = PERCENTILES.map(|(name, percent)| {
            let took_ns = sys::clock::ticks_to_ns(times.percentile(percent));
            format!("{name}={:.3}", took_ns as f64 / 1000.0)
        });
        report.field(
            &format!("latency_percentiles_usec_{}", command.full_name),
            percentiles.join(","),
        );
    }
}

pub(super) fn cluster(report: &mut Report, view: &Overview<'_>) {
    let is_on = view.server.cluster.is_some();
    report.field("cluster_enabled", u8::from(is_on));
}

/// Keys looked at to tell how long keys with an expiry have to live.
const TTL_SAMPLES: usize = 128;

pub(super) fn keyspace(report: &mut Report, view: &Overview<'_>) {
    for (db, database) in view.databases() {
        let (keys, volatile) = (database.len(), database.volatile());
        if keys > 0 {
            let ttl_ms = if volatile > 0 {
                average_ttl_ms(database, view.now)
            } else {
                0
            };
            // Redis 7.4 has it always; earlier ones don't know it. The second is the name of Valkey.
            let subexpiry = match database.expiring() {
                0 => String::new(),
                hashes => format!(",subexpiry={hashes},keys_with_volatile_items={hashes}"),
            };
            report.line(format_args!(
                "db{db}:keys={keys},expires={volatile},avg_ttl={ttl_ms}{subexpiry}"
            ));
        }
    }
}

/// How many of a hundred keys with an expiry should be gone already, from samples at random places.
fn overdue_percent(view: &Overview<'_>) -> f64 {
    let (mut overdue, mut count) = (0, 0);
    for (_, database) in view.databases() {
        if database.volatile() == 0 {
            continue;
        }
        let place = fastrand::u64(..1 << 48);
        // At the beginning of time nothing has expired, so none is passed over.
        database.scan(place, TTL_SAMPLES, 0, |entry| {
            if let Some(expiry) = entry.expiry() {
                count += 1;
                overdue += u64::from(expiry < view.now);
            }
        });
    }
    percent(overdue, count)
}

/// How long keys with an expiry have to live on average, from a sample at a random place; 0 if it holds none.
fn average_ttl_ms(database: &Database, now: i64) -> i64 {
    let (mut sum, mut count) = (0i128, 0);
    let place = fastrand::u64(..1 << 48);
    database.scan(place, TTL_SAMPLES, now, |entry| {
        if let Some(expiry) = entry.expiry() {
            sum += i128::from((expiry - now).max(0));
            count += 1;
        }
    });
    (sum / i128::from(count.max(1))) as i64
}

/// Ferrite's own figures, in the words of caches: each key of a command counts, not each command.
pub(super) fn ferrite(report: &mut Report, view: &Overview<'_>) {
    let server = view.server;
    let (hits, misses) = (
        server.sum(|stats| &stats.hits),
        server.sum(|stats| &stats.misses),
    );
    let keys: usize = view.databases().map(|(_, database)| database.len()).sum();
    report.field("threads", server.workers.len());
    report.field("shards", view.server.keyspace.shards());
    report.field("gets", hits + misses);
    report.field("sets", server.sum(|stats| &stats.sets));
    report.field("dels", server.sum(|stats| &stats.dels));
    report.field("hits", hits);
    report.field("misses", misses);
    report.field("evictions", server.sum(|stats| &stats.evicted));
    report.field("expired", server.expired_keys());
    report.field("keys", keys);
}
