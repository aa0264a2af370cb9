//! The section of INFO that tells what is in memory and what is in the log alone.

use std::sync::atomic::Ordering::Relaxed;

use super::info::Report;
use super::info_sections::percent;
use super::overview::Overview;

pub(super) fn offload(report: &mut Report, view: &Overview<'_>) {
    let (server, reading) = (view.server, &view.server.persistence.reading);
    let (mut keys, mut cold_keys, mut cold_bytes) = (0, 0, 0);
    for (_, database) in view.databases() {
        let (its_keys, its_bytes) = database.cold();
        keys += database.len();
        cold_keys += its_keys;
        cold_bytes += its_bytes;
    }
    let hits = server.sum(|stats| &stats.hits);
    let reads = reading.reads();
    report.field("offload_active", u8::from(server.offload.is_offloading()));
    report.field("resident_keys", keys - cold_keys.min(keys));
    report.field("cold_keys", cold_keys);
    report.field("cold_bytes", cold_bytes);
    report.field("cold_leaves", server.offload.leaves.count());
    report.field("cold_leaf_bytes", server.offload.leaves.bytes());
    report.field("offloaded_values", server.sum(|stats| &stats.offloaded));
    let searches = server.sum(|stats| &stats.offload_searches);
    report.field("offload_searches", searches);
    report.field("disk_reads", reads);
    report.field("disk_read_bytes", reading.bytes.load(Relaxed));
    report.field("disk_read_usec", reading.took_us());
    report.field("disk_reads_from_page_cache", reading.cached.load(Relaxed));
    report.field("disk_reads_not_kept", reading.served.load(Relaxed));
    let restarts = server.sum(|stats| &stats.script_restarts);
    report.field("script_restarts", restarts);
    report.field("disk_read_errors", reading.failures.load(Relaxed));
    // Of what was asked for and there.
    let from_memory = percent(hits.saturating_sub(reads), hits);
    report.field("memory_hit_ratio", format!("{from_memory:.2}%"));
    for (db, database) in view.databases() {
        let (cold, bytes) = database.cold();
        if cold > 0 {
            let resident = database.len().saturating_sub(cold);
            let memory = database.memory();
            report.line(format_args!(
                "offload_db{db}:resident_keys={resident},memory_bytes={memory},cold_keys={cold},cold_bytes={bytes}"
            ));
        }
    }
}
