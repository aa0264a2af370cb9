//! Records that are gathered beside the ring, until their batch is complete.

use std::ops::Range;
use std::sync::Arc;

use crate::address::{DbId, Lsn};
use crate::bindings::Rebind;
use crate::blob::Blob;
use crate::record::{Change, Draft, INSTANCE, Record, Tag, Value};

/// An appender keeps no more room than this for its next batch.
const KEEP: usize = 1 << 20;

/// What was gathered.
#[derive(Default)]
pub(crate) struct Scratch {
    /// Keys and values of all records.
    pub(crate) bytes: Vec<u8>,
    pub(crate) records: Vec<Gathered>,
}

/// A record of a batch, with ranges of the gathered bytes.
pub(crate) struct Gathered {
    pub(crate) db: DbId,
    pub(crate) key: Range<usize>,
    pub(crate) change: GatheredChange,
    pub(crate) data: Range<usize>,
}

pub(crate) enum GatheredChange {
    Set(Tag, Option<i64>),
    SetBlob(Tag, Option<i64>, Arc<Blob>),
    Delete,
    Expire(Option<i64>),
    Patch(Tag, u64, u64),
    /// The tag says whether it is about an instance.
    Edit(Tag),
    Leaf(Tag),
    Bind(Vec<Rebind>),
}

impl Scratch {
    /// Forgets all records, and keeps some room.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.records.clear();
        self.bytes.shrink_to(KEEP);
        self.records.shrink_to(KEEP / size_of::<Gathered>());
    }
}

/// What a gathered record is in the log.
pub(crate) fn draft<'b>(bytes: &'b [u8], record: &Gathered) -> Draft<'b> {
    let (db, key, data) = (
        record.db,
        &bytes[record.key.clone()],
        &bytes[record.data.clone()],
    );
    match record.change {
        GatheredChange::SetBlob(tag, expiry, ref blob) => {
            Draft::set_blob(db, key, tag, expiry, blob.reference())
        }
        GatheredChange::Set(tag, expiry) => Draft::set(db, key, tag, expiry, data),
        GatheredChange::Delete => Draft::delete(db, key),
        GatheredChange::Expire(expiry) => Draft::expire(db, key, expiry),
        GatheredChange::Patch(tag, offset, total) => {
            Draft::patch(db, key, tag, offset, total, data)
        }
        GatheredChange::Edit(tag) if tag.is_tree => {
            Draft::edit_instance(db, instance_of(key), tag, data)
        }
        GatheredChange::Edit(tag) => Draft::edit(db, key, tag, data),
        GatheredChange::Leaf(tag) => Draft::leaf(db, instance_of(key), tag, data),
        GatheredChange::Bind(_) => Draft::bind(data),
    }
}

fn instance_of(key: &[u8]) -> &[u8; INSTANCE] {
    key.try_into()
        .expect("an instance is gathered by its number")
}

pub(crate) fn record_of<'b>(lsn: Lsn, gathered: &Gathered, bytes: &'b [u8]) -> Record<'b> {
    let data = Value::Bytes(&bytes[gathered.data.clone()]);
    let change = match gathered.change {
        GatheredChange::Set(tag, expiry) => Change::Set {
            tag,
            expiry,
            value: data,
        },
        GatheredChange::SetBlob(tag, expiry, ref blob) => Change::Set {
            tag,
            expiry,
            value: Value::Blob(blob.reference()),
        },
        GatheredChange::Delete => Change::Delete,
        GatheredChange::Expire(expiry) => Change::Expire(expiry),
        GatheredChange::Patch(tag, offset, total) => Change::Patch {
            tag,
            offset,
            total,
            bytes: data,
        },
        GatheredChange::Edit(tag) => Change::Edit { tag, bytes: data },
        GatheredChange::Leaf(tag) => Change::Leaf { tag, bytes: data },
        GatheredChange::Bind(_) => unreachable!("bindings are about no key"),
    };
    Record {
        lsn,
        db: gathered.db,
        key: &bytes[gathered.key.clone()],
        change,
    }
}
