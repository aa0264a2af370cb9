//! Values that were changed in part, and for which there is no memory while the log is replayed.
//!
//! No record of the log has such a value whole, and the log takes no records yet. So the value goes to a
//! spill file, with the address of its record. A later record of the key brings it back. After the last
//! record the log is opened, and what is still in the file is written to it.
//!
//! ```text
//!  log address of the entry   | 1 | position in the spill file |    the first bit marks it
//!  in the spill file          | address (8 B) | value ...
//! ```

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::Relaxed;

use ferrite_log::{Address, Appender, DbId};
use keyspace::{ColdValue, EntryMut, Guard, Key, LargeValue, LogAddress, Offloading, Overwritten};

use super::{BEFORE_ALL, Loader, note};
use crate::persistence::journal::{Replaced, address_of, stored, tag_of};

/// Marks the address of an entry whose value is in the spill file. No log is so long.
const SPILLED: u64 = 1 << 63;

/// Bytes of the record's address before a value.
const HEAD: usize = size_of::<u64>();

/// Position in the spill file, if the value is there.
fn position(address: LogAddress) -> Option<u64> {
    let bits = address.0.get();
    (address.is_known() && bits & SPILLED != 0).then_some(bits & !SPILLED)
}

/// The record of a cold value; `None` if it is in the spill file.
pub(super) fn record_of(cold: ColdValue) -> Option<Address> {
    match position(cold.address) {
        Some(_) => None,
        None => Address::from_bits(cold.address.0.get()),
    }
}

impl Loader {
    /// Whether a value leaves memory. One that was changed in part is put into the spill file.
    pub(super) fn let_go(&self, entry: &mut EntryMut<'_, '_>) -> Offloading {
        let Some(address) = address_of(entry) else {
            return Offloading::Stays;
        };
        match (address.is_patched(), address.is_blob()) {
            (false, false) => return Offloading::Goes,
            (false, true) => return Offloading::Stays,
            (true, _) => {}
        }
        let mut bytes = address.to_bits().to_le_bytes().to_vec();
        bytes.extend_from_slice(entry.value().bytes());
        let at = self.spill.put(&bytes);
        let at = at.and_then(|at| NonZeroU64::new(at | SPILLED));
        let Some(at) = at else {
            return Offloading::Stays;
        };
        entry.set_log_address(LogAddress(at));
        note(&self.has_spilled);
        Offloading::Goes
    }

    /// Takes a value out of the spill file, with the address of its record.
    fn take_spilled(&self, at: u64) -> Result<(Address, Vec<u8>), String> {
        let mut bytes = self.spill.take(at)?;
        let head = bytes.first_chunk().copied().map(u64::from_le_bytes);
        let address = head.and_then(Address::from_bits);
        let address = address.ok_or("the spill file has no address before a value")?;
        bytes.drain(..HEAD);
        Ok((address, bytes))
    }

    /// Gives an entry its value back that was left in the log or is in the spill file.
    pub(super) fn bring_back(
        &self,
        guard: &mut Guard<'_>,
        key: Key<'_>,
        cold: ColdValue,
    ) -> Result<(), String> {
        let (address, value) = match position(cold.address) {
            Some(at) => self.take_spilled(at)?,
            None => {
                let address = record_of(cold).ok_or("a value has no record")?;
                let value = self.read(address.lsn(), key, cold.len)?;
                self.fetches.fetch_add(1, Relaxed);
                (address, value)
            }
        };
        let value = LargeValue::new(value.into());
        if let Some(entry) = guard.find(key) {
            entry.warm(cold.address, value);
        }
        if let Some(mut entry) = guard.find(key) {
            entry.set_log_address(stored(address));
        }
        Ok(())
    }

    /// The record of an entry that is replaced or removed. What it had in the spill file is taken out.
    pub(super) fn replaced(&self, old: Option<Overwritten>) -> Option<Replaced> {
        let old = old?;
        let Some(at) = position(old.address) else {
            return Replaced::of(Some(old));
        };
        match self.take_spilled(at) {
            Ok((address, _)) => Some(Replaced::at(address, old.value_len)),
            Err(problem) => {
                self.give_up(format!("cannot load the log: {problem}"));
                None
            }
        }
    }

    /// Writes the values that are in the spill file to the log, which takes records again.
    ///
    /// # Errors
    /// The spill file cannot be read.
    pub(super) fn log_spilled(&self, appender: &mut Appender) -> Result<(), String> {
        if !self.has_spilled.load(Relaxed) {
            return Ok(());
        }
        let keyspace = &self.server.keyspace;
        let mut turn = keyspace.turns().register();
        for (db, id) in self.server.persistence.ids.iter().enumerate() {
            let id = DbId(id.load(Relaxed));
            for shard in (0..keyspace.shards()).map(keyspace::ShardId) {
                let mut position = Some(0);
                while let Some(at) = position {
                    turn.enter();
                    let database = keyspace.existing(&turn, db);
                    let next = database.map(|database| {
                        let mut guard = database.lock_shard(shard, BEFORE_ALL);
                        self.log_some_spilled(&mut guard, at, id, appender)
                    });
                    turn.leave();
                    position = next.transpose()?.flatten();
                }
            }
        }
        Ok(())
    }

    /// Writes those of a bucket. Returns the next bucket.
    fn log_some_spilled(
        &self,
        guard: &mut Guard<'_>,
        at: u64,
        id: DbId,
        appender: &mut Appender,
    ) -> Result<Option<u64>, String> {
        let mut names: Vec<Box<[u8]>> = Vec::new();
        let next = guard.visit_cold(at, &mut |name, cold| {
            if position(cold.address).is_some() {
                names.push(name.into());
            }
        });
        for name in names {
            let hash = self.server.keyspace.hash(&name);
            self.log_one_spilled(guard, Key { bytes: &name, hash }, id, appender)?;
        }
        Ok(next)
    }

    fn log_one_spilled(
        &self,
        guard: &mut Guard<'_>,
        key: Key<'_>,
        id: DbId,
        appender: &mut Appender,
    ) -> Result<(), String> {
        let Some(mut entry) = guard.find(key) else {
            return Ok(());
        };
        let cold = entry.cold();
        let Some((cold, at)) = cold.and_then(|cold| Some((cold, position(cold.address)?))) else {
            return Ok(());
        };
        let (old, value) = self.take_spilled(at)?;
        let needed = Appender::bytes_of(key.bytes.len(), value.len());
        if appender.ensure(needed).is_err() {
            // The disk is full: it stays in memory, as if there had been enough.
            entry.set_log_address(stored(old));
            entry.warm(stored(old), LargeValue::new(value.into()));
            return Ok(());
        }
        let (tag, expiry) = (tag_of(entry.as_ref()), entry.expiry());
        let address = appender.set(id, key.bytes, tag, expiry, &value);
        entry.set_log_address(stored(address));
        Replaced::at(old, cold.len as usize).mark_dead(key.bytes.len(), appender.liveness());
        // Readers of the value have to wait until it is written.
        appender.commit();
        Ok(())
    }
}
