//! Reading the values of a snapshot that are only in the log.
//!
//! Several values are read at a time, in the order of their addresses, for disks with parallel reads and for
//! adjacent values. A value with a file of its own is not read here; it is passed on as a stream.

use ferrite_log::{Address, BlobStream, Hold};
use keyspace::{ColdValue, LargeValue, Record, RecordValue, Records};

use super::save::{Stop, unreadable};
use crate::config::Setting;
use crate::limits::{SNAPSHOT_READ_BYTES, SNAPSHOT_READ_SHARE, SNAPSHOT_READERS};
use crate::persistence::durable::Durable;
use crate::persistence::reading::Sought;

/// Keys with their values.
pub(super) enum Found<'r> {
    /// Keys with values in memory.
    Values(Records),
    /// Key with a value to be read a piece at a time.
    File {
        key: &'r [u8],
        expiry: Option<i64>,
        len: u64,
        stream: BlobStream,
    },
}

/// Whether a value is only in the log.
pub(super) fn is_in(records: &Records) -> bool {
    let mut values = records.iter().map(|record| record.value);
    values.any(|value| matches!(value, RecordValue::Cold(_)))
}

/// Calls `give` with all keys and their values, in memory or as a stream.
///
/// # Errors
/// A value is unreadable, or an error of `give`.
pub(super) fn read<'r>(
    server: &Durable,
    records: &'r Records,
    hold: Option<&Hold>,
    mut give: impl FnMut(Found<'r>) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let most = match server.settings.int(Setting::MaxMemory).unsigned_abs() {
        0 => SNAPSHOT_READ_BYTES,
        limit => SNAPSHOT_READ_BYTES.min(limit / SNAPSHOT_READ_SHARE),
    };
    let (mut values, mut wanted, mut bytes) = (Records::default(), Vec::new(), 0);
    for record in records.iter() {
        let RecordValue::Cold(cold) = record.value else {
            values.push_typed(record.key, (record.of, record.value), record.expiry);
            continue;
        };
        let stream = server.persistence.stream_held(record.key, cold, hold);
        if let Some(stream) = stream.map_err(unreadable)? {
            let (key, expiry) = (record.key, record.expiry);
            give(Found::File {
                key,
                expiry,
                len: cold.len,
                stream,
            })?;
            continue;
        }
        bytes += cold.len;
        wanted.push((record, cold));
        if bytes >= most {
            fill(server, &mut wanted, hold, &mut values)?;
            give(Found::Values(std::mem::take(&mut values)))?;
            bytes = 0;
        }
    }
    fill(server, &mut wanted, hold, &mut values)?;
    give(Found::Values(values))
}

/// Reads the wanted values and adds them with their keys to `values`.
fn fill(
    server: &Durable,
    wanted: &mut Vec<(Record<'_>, ColdValue)>,
    hold: Option<&Hold>,
    values: &mut Records,
) -> Result<(), Stop> {
    wanted.sort_unstable_by_key(|(_, cold)| {
        Address::from_bits(cold.address.0.get()).map(|address| address.lsn())
    });
    let read = |part: &[(Record<'_>, ColdValue)]| -> Result<Vec<LargeValue>, Stop> {
        let values = part.iter().map(|(record, cold)| {
            let value = server
                .persistence
                .read_settled(Sought::value(record.key, *cold), hold);
            value.map_err(|failure| unreadable(failure).into())
        });
        values.collect()
    };
    let share = wanted.len().div_ceil(SNAPSHOT_READERS).max(1);
    let read = std::thread::scope(|scope| {
        let mut parts = wanted.chunks(share);
        let own = parts.next();
        let others: Vec<_> = parts
            .map(|part| {
                let reader = std::thread::Builder::new().name("snapshot-reader".into());
                (part, reader.spawn_scoped(scope, move || read(part)))
            })
            .collect();
        let mut all = read(own.unwrap_or_default())?;
        for (part, reader) in others {
            all.extend(match reader {
                Ok(reader) => reader.join().expect("a reader does not panic")?,
                // Without another thread this one reads.
                Err(_) => read(part)?,
            });
        }
        Ok::<_, Stop>(all)
    })?;
    for ((record, _), value) in wanted.drain(..).zip(read) {
        let value = RecordValue::Large(value);
        values.push_typed(record.key, (record.of, value), record.expiry);
    }
    Ok(())
}
