//! Changes of the store that count all or not at all.

use ferrite_log::{Address, Appender, Change, DbId, Liveness, Rebind};

use super::store::{Entry, FullKey, Op, State, TAG, blob_of, patch, string_of};
use super::trees::{self, HASH, TREE};

/// Appends and applies several changes as one.
pub(crate) fn run_batch(appender: &mut Appender, ops: &[Op], state: &mut State) {
    let mut dead: Vec<(FullKey, Entry)> = Vec::new();
    let mut note = |key: &FullKey, old: Option<Entry>| {
        dead.extend(old.map(|old| (key.clone(), old)));
    };
    let (store, mut number) = (appender.blob_store(), appender.tail().get());
    let mut batch = appender.batch();
    for op in ops {
        match op {
            Op::Set(full @ (db, key), value, expiry) => {
                match blob_of(&store, value) {
                    None => batch.set(*db, key, TAG, *expiry, value),
                    Some(blob) => batch.set_blob(*db, key, TAG, *expiry, &blob),
                }
                let entry = Entry::new(value, TAG, *expiry);
                note(full, state.entries.insert(full.clone(), entry));
            }
            Op::Hash(full @ (db, key), value) => {
                batch.set(*db, key, HASH, None, value);
                let entry = Entry::new(value, HASH, None);
                note(full, state.entries.insert(full.clone(), entry));
            }
            Op::Grow(full, value) => {
                number += 1;
                let entry = trees::grow_in(&mut batch, number, full, value);
                note(full, state.entries.insert(full.clone(), entry));
            }
            Op::Edit(full @ (db, key), leaf, bytes) => {
                if let Some((entry, data)) = trees::edit_of(state, full, *leaf, bytes) {
                    match entry.instance() {
                        None => batch.edit(*db, key, HASH, &data),
                        Some(number) => batch.edit_instance(*db, number, TREE, &data),
                    }
                }
            }
            Op::Delete(full @ (db, key)) => {
                if let Some(old) = state.entries.remove(full) {
                    batch.delete(*db, key);
                    note(full, Some(old));
                }
            }
            Op::Expire(full @ (db, key), expiry) => {
                if let Some(entry) = state.entries.get_mut(full) {
                    batch.expire(*db, key, *expiry);
                    entry.expiry = *expiry;
                }
            }
            Op::Patch(full @ (db, key), offset, bytes) => {
                if let Some(entry) = string_of(state, full) {
                    let total = (offset + bytes.len() as u64).max(entry.value.len() as u64);
                    batch.patch(*db, key, TAG, *offset, total, bytes);
                    patch(&mut entry.value, *offset, total, bytes);
                    entry.address = entry.address.map(Address::patched);
                }
            }
            Op::Clear(db) => {
                batch.bind(&[Rebind::Clear(*db)]);
                let all = state.entries.clone();
                for (full, _) in all.range((*db, vec![])..(DbId(db.0 + 1), vec![])) {
                    note(full, state.entries.remove(full));
                }
            }
            _ => unreachable!("batches hold nothing else here"),
        }
    }
    let mut made: Vec<(FullKey, Option<Address>, bool)> = Vec::new();
    batch.finish(|appender, record, address| {
        if record.is_of_instance() {
            trees::place(state, record, appender.liveness());
            return;
        }
        let is_patch = matches!(record.change, Change::Patch { .. } | Change::Edit { .. });
        made.push(((record.db, record.key.to_vec()), address, is_patch));
    });
    let liveness = appender.liveness();
    note_addresses(state, made, liveness);
    mark_dead(dead, liveness);
}

/// What entries were that a batch has replaced is dead.
fn mark_dead(dead: Vec<(FullKey, Entry)>, liveness: &mut Liveness) {
    for (full, old) in dead {
        // Without an address it was made by this batch, too, which has told of its records.
        if let Some(address) = old.address {
            liveness.dead(address, full.1.len(), old.value.len());
            old.mark_leaves_dead(liveness);
        }
    }
}

/// Appends and applies sets whose size is known before, as one change.
pub(crate) fn run_series(appender: &mut Appender, sets: &[(FullKey, Vec<u8>)], state: &mut State) {
    let bytes =
        |((_, key), value): &(FullKey, Vec<u8>)| Appender::set_bytes(key.len(), value.len());
    appender.begin_series(sets.len() as u32, sets.iter().map(bytes).sum());
    for (full, value) in sets {
        let entry = Entry {
            address: Some(appender.set_in_series(full.0, &full.1, TAG, value)),
            ..Entry::new(value, TAG, None)
        };
        state.put(full.clone(), Some(entry), appender.liveness());
    }
    appender.end_series();
}

/// Gives the entries that a batch has made their addresses.
fn note_addresses(
    state: &mut State,
    made: Vec<(FullKey, Option<Address>, bool)>,
    liveness: &mut Liveness,
) {
    for (full, address, is_patch) in made {
        // The key may be gone again: deleted later in the same batch.
        let entry = state.entries.get_mut(&full);
        if let Some(address) = address {
            match entry {
                Some(entry) => {
                    if let Some(old) = entry.address.replace(address) {
                        liveness.dead(old, full.1.len(), entry.value.len());
                    }
                }
                None => liveness.dead(address, full.1.len(), 0),
            }
        } else if let Some(entry) = entry
            && is_patch
        {
            entry.address = entry.address.map(Address::patched);
        }
    }
}
