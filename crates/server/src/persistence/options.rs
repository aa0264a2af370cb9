//! The place of the log, and the options that it is opened with.

use std::path::{Path, PathBuf};

use ferrite_log::Options;

use super::durable::Durable;
use super::redis_files;
use super::state::sync_policy;
use crate::config::Setting;
use crate::limits::{
    LEAST_LOG_RING_BYTES, LEAST_LOG_SEGMENT_BYTES, LOG_GARBAGE_SEGMENTS, LOG_HINT_SHARE,
    LOG_RING_APPENDER_BYTES, LOG_RING_SHARE, LOG_SEGMENT_DISK_SHARE,
};

/// Directory of the log.
pub(super) fn directory(server: &Durable) -> PathBuf {
    let settings = &server.settings;
    let found = server.persistence.directory.get_or_init(|| {
        // Two logs were an error at the start.
        let named = |_| Path::new(".").join(&*settings.text(Setting::AppendDirName));
        redis_files::own_directory(settings).unwrap_or_else(named)
    });
    found.clone()
}

/// Options of the log.
pub(super) fn log_options(server: &Durable) -> Options {
    let usual = Options::default();
    // Beside the workers: compaction, lost entries, the rewrite of all data or the relief of a load, and the
    // large collections of that load.
    let appenders = server.workers.len() + 4;
    let limit = server.settings.int(Setting::MaxMemory).unsigned_abs();
    let segment_bytes = segment_bytes(server);
    // A segment is at least as large as the ring.
    let ring_bytes = ring_bytes(limit, appenders, usual.ring_bytes).min(1 << segment_bytes.ilog2());
    Options {
        segment_bytes,
        ring_bytes,
        charge: sys::memory::charge,
        sync: sync_policy(&server.settings),
        appenders,
        blob_min: usual.blob_min.min(ring_bytes as u64 / 8),
        hint_bytes: match limit {
            0 => usual.hint_bytes,
            limit => limit / LOG_HINT_SHARE,
        },
        garbage_bytes: LOG_GARBAGE_SEGMENTS * segment_bytes,
        // The content of the ring always fits: a segment is at least as large as the ring.
        reserve_bytes: usual.reserve_bytes.min(segment_bytes),
        ..usual
    }
}

/// Size of a segment, bytes: the setting, but at most a part of a small file system.
fn segment_bytes(server: &Durable) -> u64 {
    let wanted = server.settings.int(Setting::LogSegmentSize);
    let wanted = wanted.unsigned_abs();
    let disk = [&*directory(server), Path::new(".")]
        .into_iter()
        .find_map(|path| sys::file::file_system_bytes(path).ok());
    // Some file systems don't report their size.
    let most = match disk {
        None | Some(0) => u64::MAX,
        Some(bytes) => (bytes / LOG_SEGMENT_DISK_SHARE).max(LEAST_LOG_SEGMENT_BYTES),
    };
    if wanted > most {
        log::info!("the file system is small: segments of the log have {most} bytes, not {wanted}");
    }
    wanted.min(most).next_multiple_of(4096)
}

/// Size of the log's ring, bytes: a part of a small `maxmemory`, and at least what the appenders need.
fn ring_bytes(limit: u64, appenders: usize, usual: usize) -> usize {
    let part = match limit {
        0 => usual,
        limit => usize::try_from(limit / LOG_RING_SHARE).unwrap_or(usual),
    };
    let least = LEAST_LOG_RING_BYTES.max((appenders * LOG_RING_APPENDER_BYTES).next_power_of_two());
    1 << part.clamp(least, usual.max(least)).ilog2()
}
