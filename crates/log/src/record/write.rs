//! Making records.
//!
//! Budget of a plain `Set`: one pass of copying, one checksum over what was copied while it is in the
//! cache, no allocation, no branch on the kind (everything about it is known where it is inlined).

use super::layout::{
    BlobRef, EXPIRY, FLAG_EXPIRY, FLAG_INNER, FLAG_TREE, FORM_SHIFT, HEADER, INSTANCE, Kind, Tag,
    VALUE_KIND_SHIFT, record_bytes, seed,
};
use crate::address::{DbId, Lsn};

/// What a record is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) kind: Kind,
    pub(crate) tag: Tag,
    pub(crate) is_inner: bool,
    pub(crate) db: DbId,
    pub(crate) expiry: Option<i64>,
    pub(crate) key: &'a [u8],
    facts: Facts,
    pub(crate) data: &'a [u8],
}

/// What a kind has between key and data.
#[derive(Clone, Copy, Debug)]
enum Facts {
    None,
    One(u64),
    Two(u64, u64),
    Blob(BlobRef),
}

impl Facts {
    #[inline]
    const fn len(self) -> usize {
        match self {
            Facts::None => 0,
            Facts::One(_) => 8,
            Facts::Two(..) => 16,
            Facts::Blob(_) => BlobRef::BYTES,
        }
    }
}

impl<'a> Draft<'a> {
    #[inline]
    const fn new(kind: Kind, db: DbId, key: &'a [u8]) -> Draft<'a> {
        Draft {
            kind,
            tag: Tag::new(Tag::STRING, 0),
            is_inner: false,
            db,
            expiry: None,
            key,
            facts: Facts::None,
            data: &[],
        }
    }

    #[inline]
    pub(crate) fn set(
        db: DbId,
        key: &'a [u8],
        tag: Tag,
        expiry: Option<i64>,
        value: &'a [u8],
    ) -> Draft<'a> {
        Draft {
            tag,
            expiry,
            data: value,
            ..Draft::new(Kind::Set, db, key)
        }
    }

    pub(crate) fn set_blob(
        db: DbId,
        key: &'a [u8],
        tag: Tag,
        expiry: Option<i64>,
        blob: BlobRef,
    ) -> Draft<'a> {
        Draft {
            tag,
            expiry,
            facts: Facts::Blob(blob),
            ..Draft::new(Kind::SetBlob, db, key)
        }
    }

    #[inline]
    pub(crate) fn delete(db: DbId, key: &'a [u8]) -> Draft<'a> {
        Draft::new(Kind::Delete, db, key)
    }

    #[inline]
    pub(crate) fn expire(db: DbId, key: &'a [u8], expiry: Option<i64>) -> Draft<'a> {
        Draft {
            expiry,
            ..Draft::new(Kind::Expire, db, key)
        }
    }

    #[inline]
    pub(crate) fn patch(
        db: DbId,
        key: &'a [u8],
        tag: Tag,
        offset: u64,
        total: u64,
        bytes: &'a [u8],
    ) -> Draft<'a> {
        Draft {
            tag,
            facts: Facts::Two(offset, total),
            data: bytes,
            ..Draft::new(Kind::Patch, db, key)
        }
    }

    /// `instance` is the number of an instance, as [`u64::to_le_bytes`] gives it.
    #[inline]
    pub(crate) fn leaf(
        db: DbId,
        instance: &'a [u8; INSTANCE],
        tag: Tag,
        bytes: &'a [u8],
    ) -> Draft<'a> {
        Draft {
            tag: tag.in_leaf(),
            data: bytes,
            ..Draft::new(Kind::Leaf, db, instance)
        }
    }

    #[inline]
    pub(crate) fn edit(db: DbId, key: &'a [u8], tag: Tag, bytes: &'a [u8]) -> Draft<'a> {
        Draft {
            tag: tag.in_edit(false),
            data: bytes,
            ..Draft::new(Kind::Edit, db, key)
        }
    }

    /// `instance` as in [`Draft::leaf`].
    #[inline]
    pub(crate) fn edit_instance(
        db: DbId,
        instance: &'a [u8; INSTANCE],
        tag: Tag,
        bytes: &'a [u8],
    ) -> Draft<'a> {
        Draft {
            tag: tag.in_edit(true),
            data: bytes,
            ..Draft::new(Kind::Edit, db, instance)
        }
    }

    pub(crate) fn bind(changes: &'a [u8]) -> Draft<'a> {
        Draft {
            data: changes,
            ..Draft::new(Kind::Bind, DbId(0), &[])
        }
    }

    pub(crate) fn mark(durable: Lsn) -> Draft<'a> {
        Draft {
            facts: Facts::One(durable.0),
            ..Draft::new(Kind::Mark, DbId(0), &[])
        }
    }

    pub(crate) fn retire(segment: Lsn) -> Draft<'a> {
        Draft {
            facts: Facts::One(segment.0),
            ..Draft::new(Kind::Retire, DbId(0), &[])
        }
    }

    /// `zeroes` is what the record is filled with.
    pub(crate) fn void(zeroes: &'a [u8]) -> Draft<'a> {
        Draft {
            data: zeroes,
            ..Draft::new(Kind::Void, DbId(0), &[])
        }
    }

    /// The same record, inside a batch.
    #[inline]
    pub(crate) fn inner(self) -> Draft<'a> {
        Draft {
            is_inner: true,
            ..self
        }
    }

    /// Bytes of the record without the zeroes behind it.
    #[inline]
    pub(crate) fn length(&self) -> u64 {
        let expiry = if self.expiry.is_some() { EXPIRY } else { 0 };
        (HEADER + expiry + self.facts.len()) as u64 + self.key.len() as u64 + self.data.len() as u64
    }

    /// Bytes that the record takes.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        let rest = (self.facts.len() + self.data.len()) as u64;
        record_bytes(self.key.len() as u64, rest, self.expiry.is_some())
    }

    #[inline]
    fn length_field(&self) -> u32 {
        u32::try_from(self.length())
            .expect("records are below MAX_RECORD, which is checked where they come in")
    }

    #[inline]
    fn header(&self, checksum: u32) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let kind = self.kind as u8 | self.tag.kind << VALUE_KIND_SHIFT;
        let flags = self.tag.form << FORM_SHIFT
            | if self.is_inner { FLAG_INNER } else { 0 }
            | if self.tag.is_tree { FLAG_TREE } else { 0 }
            | if self.expiry.is_some() {
                FLAG_EXPIRY
            } else {
                0
            };
        header[..4].copy_from_slice(&self.length_field().to_le_bytes());
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        header[8] = kind;
        header[9] = flags;
        header[10..12].copy_from_slice(&self.db.0.to_le_bytes());
        header[12..].copy_from_slice(&(self.key.len() as u32).to_le_bytes());
        header
    }
}

/// Writes `draft` as the record at `lsn` into `slot`, which has exactly its bytes.
#[inline]
pub(crate) fn write(slot: &mut [u8], lsn: Lsn, draft: &Draft<'_>) {
    debug_assert_eq!(slot.len() as u64, draft.bytes());
    // The zeroes behind the record, before what they are behind of.
    if let Some(last) = slot.last_chunk_mut::<8>() {
        *last = [0; 8];
    }
    slot[..HEADER].copy_from_slice(&draft.header(0));
    let mut at = HEADER;
    let mut put = |bytes: &[u8]| {
        slot[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    if let Some(expiry) = draft.expiry {
        put(&expiry.to_le_bytes());
    }
    put(draft.key);
    match draft.facts {
        Facts::None => {}
        Facts::One(word) => put(&word.to_le_bytes()),
        Facts::Two(one, two) => {
            put(&one.to_le_bytes());
            put(&two.to_le_bytes());
        }
        Facts::Blob(blob) => put(&blob.to_bytes()),
    }
    put(draft.data);
    let checksum = crc32c::crc32c_append(seed(lsn, draft.length_field()), &slot[8..]);
    slot[4..8].copy_from_slice(&checksum.to_le_bytes());
}

/// The same for a record that is not wanted in one piece: `put` gets its bytes from the first to the last.
pub(crate) fn write_in_parts(lsn: Lsn, draft: &Draft<'_>, mut put: impl FnMut(&[u8])) {
    let padding = [0; 8];
    let padding = &padding[..(draft.bytes() - draft.length()) as usize];
    let expiry = draft.expiry.map(i64::to_le_bytes);
    let expiry = expiry.as_ref().map_or(&[][..], |bytes| &bytes[..]);
    let facts = match draft.facts {
        Facts::None => Vec::new(),
        Facts::One(word) => word.to_le_bytes().to_vec(),
        Facts::Two(one, two) => [one.to_le_bytes(), two.to_le_bytes()].concat(),
        Facts::Blob(blob) => blob.to_bytes().to_vec(),
    };
    let header = draft.header(0);
    let checksum = [&header[8..], expiry, draft.key, &facts, draft.data, padding]
        .iter()
        .fold(seed(lsn, draft.length_field()), |crc, part| {
            crc32c::crc32c_append(crc, part)
        });
    put(&draft.header(checksum));
    for part in [expiry, draft.key, &facts, draft.data, padding] {
        put(part);
    }
}

/// The header of a batch of `count` records that take `inside` bytes together.
pub(crate) fn batch_header(lsn: Lsn, count: u32, inside: u64) -> [u8; HEADER] {
    let length = u32::try_from(HEADER as u64 + inside).expect("batches are below MAX_RECORD");
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[8] = Kind::Batch as u8;
    header[12..].copy_from_slice(&count.to_le_bytes());
    let checksum = crc32c::crc32c_append(seed(lsn, length), &header[8..]);
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// The header of a `Void` record of `bytes` bytes, which are zeroes behind it.
pub(crate) fn void_header(lsn: Lsn, bytes: u64) -> [u8; HEADER] {
    const ZEROES: [u8; 4096] = [0; 4096];
    let length = u32::try_from(bytes).expect("a claim is below MAX_RECORD");
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&length.to_le_bytes());
    header[8] = Kind::Void as u8;
    let mut checksum = crc32c::crc32c_append(seed(lsn, length), &header[8..]);
    let mut left = bytes.saturating_sub(HEADER as u64) as usize;
    while left > 0 {
        let count = left.min(ZEROES.len());
        checksum = crc32c::crc32c_append(checksum, &ZEROES[..count]);
        left -= count;
    }
    header[4..8].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Appends a hint: the position of a record, and what there is of it before its data.
pub(crate) fn write_hint(out: &mut Vec<u8>, lsn: Lsn, before_data: &[u8]) {
    out.extend_from_slice(&lsn.0.to_le_bytes());
    out.extend_from_slice(before_data);
    out.resize(out.len().next_multiple_of(8), 0);
}
