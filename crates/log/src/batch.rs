//! A batch: several records that count all or not at all, next to each other in the log.
//!
//! How large it will be is known only at its end, so its records are gathered beside the ring and go into it
//! together. Their positions are known then: an entry gets its address in [`Batch::finish`].

use std::sync::Arc;

use crate::address::{Address, DbId, Lsn};
use crate::appender::Appender;
use crate::bindings::{Rebind, encode_changes};
use crate::blob::Blob;
use crate::claims::Claims;
use crate::gathered::{Gathered, GatheredChange, Scratch, draft, record_of};
use crate::lock::lock;
use crate::record::{self, HEADER, MAX_RECORD, Record, Tag};

/// See the module. Locks of all shards it touches are held from its beginning to its end; dropping it
/// without [`Batch::finish`] leaves nothing in the log.
pub struct Batch<'a> {
    appender: &'a mut Appender,
    scratch: Scratch,
    /// Bytes of the records in the log.
    inside: u64,
}

impl Appender {
    /// Begins a batch: its records count all or not at all.
    pub fn batch(&mut self) -> Batch<'_> {
        Batch::new(self)
    }
}

impl<'a> Batch<'a> {
    fn new(appender: &'a mut Appender) -> Batch<'a> {
        Batch {
            scratch: std::mem::take(&mut appender.scratch),
            appender,
            inside: 0,
        }
    }

    /// As [`Appender::set`].
    pub fn set(&mut self, db: DbId, key: &[u8], tag: Tag, expiry: Option<i64>, value: &[u8]) {
        self.gather(db, key, GatheredChange::Set(tag, expiry), value);
    }

    /// As [`Appender::set_blob`].
    pub fn set_blob(
        &mut self,
        db: DbId,
        key: &[u8],
        tag: Tag,
        expiry: Option<i64>,
        blob: &Arc<Blob>,
    ) {
        self.gather(
            db,
            key,
            GatheredChange::SetBlob(tag, expiry, blob.clone()),
            &[],
        );
    }

    /// As [`Appender::delete`].
    pub fn delete(&mut self, db: DbId, key: &[u8]) {
        self.gather(db, key, GatheredChange::Delete, &[]);
    }

    /// As [`Appender::expire`].
    pub fn expire(&mut self, db: DbId, key: &[u8], expiry: Option<i64>) {
        self.gather(db, key, GatheredChange::Expire(expiry), &[]);
    }

    /// As [`Appender::patch`].
    ///
    /// # Panics
    /// If `bytes` do not fit into `total`.
    pub fn patch(&mut self, db: DbId, key: &[u8], tag: Tag, offset: u64, total: u64, bytes: &[u8]) {
        assert!(
            offset + bytes.len() as u64 <= total,
            "a patch is part of the value"
        );
        self.gather(db, key, GatheredChange::Patch(tag, offset, total), bytes);
    }

    /// As [`Appender::edit`].
    ///
    /// # Panics
    /// If the value is no collection.
    pub fn edit(&mut self, db: DbId, key: &[u8], tag: Tag, bytes: &[u8]) {
        self.gather(db, key, GatheredChange::Edit(tag.in_edit(false)), bytes);
    }

    /// As [`Appender::edit_instance`].
    ///
    /// # Panics
    /// If the value is no collection.
    pub fn edit_instance(&mut self, db: DbId, instance: u64, tag: Tag, bytes: &[u8]) {
        let change = GatheredChange::Edit(tag.in_edit(true));
        self.gather(db, &instance.to_le_bytes(), change, bytes);
    }

    /// As [`Appender::leaf`].
    ///
    /// # Panics
    /// If the value is no collection.
    pub fn leaf(&mut self, db: DbId, instance: u64, tag: Tag, bytes: &[u8]) {
        let change = GatheredChange::Leaf(tag.in_leaf());
        self.gather(db, &instance.to_le_bytes(), change, bytes);
    }

    /// As [`Appender::bind`].
    pub fn bind(&mut self, changes: &[Rebind]) {
        let data = encode_changes(changes);
        self.gather(DbId(0), &[], GatheredChange::Bind(changes.to_vec()), &data);
    }

    /// Records gathered so far.
    pub fn len(&self) -> usize {
        self.scratch.records.len()
    }

    /// Whether nothing was gathered.
    pub fn is_empty(&self) -> bool {
        self.scratch.records.is_empty()
    }

    /// Bytes that the batch takes in the log so far. At [`MAX_RECORD`] it is full.
    pub fn log_bytes(&self) -> u64 {
        HEADER as u64 + self.inside
    }

    fn gather(&mut self, db: DbId, key: &[u8], change: GatheredChange, data: &[u8]) {
        let Scratch { bytes, records } = &mut self.scratch;
        let key_at = bytes.len();
        bytes.extend_from_slice(key);
        let data_at = bytes.len();
        bytes.extend_from_slice(data);
        let record = Gathered {
            db,
            key: key_at..data_at,
            change,
            data: data_at..bytes.len(),
        };
        self.inside += draft(bytes, &record).bytes();
        records.push(record);
    }

    /// Appends the batch. `each` is told of every record of a key or an instance, in order, and what an entry
    /// keeps if it is a `Set`. A single record goes without the container.
    ///
    /// # Panics
    /// If it takes [`MAX_RECORD`] bytes or more.
    pub fn finish(self, mut each: impl FnMut(&mut Appender, &Record<'_>, Option<Address>)) {
        assert!(self.log_bytes() < MAX_RECORD, "a batch is below 4 GiB");
        let Scratch { bytes, records } = &self.scratch;
        let header = match records.len() {
            0 => return,
            1 => 0,
            _ => HEADER as u64,
        };
        let start = self.appender.claims.claim(header + self.inside);
        match &records[..] {
            [alone] => self.appender.claims.fill(start, &draft(bytes, alone)),
            _ => fill(&mut self.appender.claims, start, &self.scratch, self.inside),
        }
        self.appender.claims.filled();
        let mut at = Lsn(start + header);
        for gathered in records {
            if let GatheredChange::SetBlob(_, _, blob) = &gathered.change {
                self.appender.claims.engine.blobs.name(at, blob);
            }
            if let GatheredChange::Bind(changes) = &gathered.change {
                lock(&self.appender.claims.engine.bindings).push(at, changes);
            } else {
                let record = record_of(at, gathered, bytes);
                each(self.appender, &record, record.address());
            }
            at = at.offset(draft(bytes, gathered).bytes());
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.scratch.clear();
        self.appender.scratch = std::mem::take(&mut self.scratch);
    }
}

/// Fills the claim of a batch of several records.
fn fill(claims: &mut Claims, start: u64, scratch: &Scratch, inside: u64) {
    let Scratch { bytes, records } = scratch;
    let header = record::batch_header(Lsn(start), records.len() as u32, inside);
    let bytes_in_all = HEADER as u64 + inside;
    let mut at = Lsn(start + HEADER as u64);
    let slot = usize::try_from(bytes_in_all)
        .ok()
        .and_then(|len| claims.slot(start, len));
    if let Some(slot) = slot {
        let (first, mut rest) = slot.split_at_mut(HEADER);
        first.copy_from_slice(&header);
        for gathered in records {
            let draft = draft(bytes, gathered).inner();
            let (slot, behind) = rest.split_at_mut(draft.bytes() as usize);
            record::write(slot, at, &draft);
            at = at.offset(draft.bytes());
            rest = behind;
        }
        return;
    }
    let mut parts = claims.parts(start, bytes_in_all);
    parts.put(&header);
    for gathered in records {
        let draft = draft(bytes, gathered).inner();
        record::write_in_parts(at, &draft, |bytes| parts.put(bytes));
        at = at.offset(draft.bytes());
    }
}
