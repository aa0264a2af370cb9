//! What a record consists of: kinds, flags, values, and how many bytes they take.

use crate::address::{Address, DbId, Lsn};

/// Bytes in front of every record.
pub(crate) const HEADER: usize = 16;
pub(super) const EXPIRY: usize = 8;

/// The most bytes one record may have: what its length field can say, with room to pad.
pub const MAX_RECORD: u64 = u32::MAX as u64 - 7;

/// What a record does. The low half of the byte; the high half is the kind of the value, for those that have
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key has this value from here on, and this expiry or none. No facts; the data is the value.
    Set = 1,
    /// The key is gone.
    Delete = 2,
    /// The key's expiry is this from here on, or none.
    Expire = 3,
    /// Part of the key's value changes. Facts: offset (u64), length of the value afterwards (u64). The data
    /// is what is at the offset from here on; what the value grows by otherwise is zeroes.
    Patch = 4,
    /// Bindings change. The data is a list of changes (see [`crate::bindings`]).
    Bind = 5,
    /// The records inside count all or not at all. The key length field is their number; no key.
    Batch = 6,
    /// As `Set`, with the value in a file. Facts: [`BlobRef`].
    SetBlob = 7,
    /// Everything below a position was durable before this was written. Facts: the position (u64).
    Mark = 8,
    /// The segment that begins at a position is no part of the log any more. Facts: the position (u64).
    Retire = 9,
    /// Nothing: fills the place of what a repair has cut out.
    Void = 10,
    /// A part of an instance is exactly this. The key is the number of the instance; the data is opaque.
    Leaf = 11,
    /// The value of the key changes by operations; with [`FLAG_TREE`] the leaves of an instance, whose number
    /// the key is, or none is left of it if there are no operations. The data is opaque.
    Edit = 12,
}

impl Kind {
    pub(super) fn from_bits(bits: u8) -> Option<Kind> {
        Some(match bits {
            1 => Kind::Set,
            2 => Kind::Delete,
            3 => Kind::Expire,
            4 => Kind::Patch,
            5 => Kind::Bind,
            6 => Kind::Batch,
            7 => Kind::SetBlob,
            8 => Kind::Mark,
            9 => Kind::Retire,
            10 => Kind::Void,
            11 => Kind::Leaf,
            12 => Kind::Edit,
            _ => return None,
        })
    }

    /// Whether a record of this kind can say this of a value. Only strings change in part, only collections
    /// by operations, and only those have trees.
    pub(super) const fn knows(self, tag: Tag) -> bool {
        match self {
            Kind::Set => tag.is_known(),
            Kind::SetBlob => tag.is_known() && !tag.is_tree,
            Kind::Patch => tag.kind == Tag::STRING && tag.is_known(),
            Kind::Leaf => tag.is_collection() && tag.form == 0 && tag.is_tree,
            Kind::Edit => tag.is_collection() && tag.is_known(),
            Kind::Delete
            | Kind::Expire
            | Kind::Bind
            | Kind::Batch
            | Kind::Mark
            | Kind::Retire
            | Kind::Void => tag.kind == 0 && tag.form == 0 && !tag.is_tree,
        }
    }

    /// Whether the flag [`FLAG_TREE`] has a meaning.
    pub(super) const fn has_trees(self) -> bool {
        matches!(self, Kind::Set | Kind::Leaf | Kind::Edit)
    }

    /// Bytes of facts between key and data.
    pub(super) const fn facts(self) -> usize {
        match self {
            Kind::Set | Kind::Delete | Kind::Expire | Kind::Bind | Kind::Batch => 0,
            Kind::Void | Kind::Leaf | Kind::Edit => 0,
            Kind::Patch => 16,
            Kind::SetBlob => BlobRef::BYTES,
            Kind::Mark | Kind::Retire => 8,
        }
    }
}

pub(super) const KIND_BITS: u8 = 0x0f;
pub(super) const VALUE_KIND_SHIFT: u32 = 4;
pub(super) const FLAG_EXPIRY: u8 = 1;
/// The record is inside a batch.
pub(super) const FLAG_INNER: u8 = 2;
pub(super) const FORM_SHIFT: u32 = 2;
/// The value is a tree, an instance; or the record is about one, by its number.
pub(super) const FLAG_TREE: u8 = 16;
pub(super) const FLAGS_KNOWN: u8 = FLAG_EXPIRY | FLAG_INNER | 3 << FORM_SHIFT | FLAG_TREE;
/// Bytes of the number of an instance, which is the key of its records.
pub(crate) const INSTANCE: usize = 8;

/// What the log keeps about a value. The log knows which kinds and forms there are (docs/format.md has the
/// table), and not what they mean: a record with any other is of a later version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// The type of the value, below 16.
    pub kind: u8,
    /// How it was written, below 4.
    pub form: u8,
    /// Whether it is a tree: an *instance*, whose records have its number in place of a key. The value that a
    /// `Set` has then names it.
    pub is_tree: bool,
}

impl Tag {
    /// The kind of a string, in one of three forms.
    pub const STRING: u8 = 0;
    /// The kind of a list, in the forms 0 and 2.
    pub const LIST: u8 = 1;
    /// The kind of a hash, in one of four forms.
    pub const HASH: u8 = 2;
    /// The kind of a set, in one of three forms.
    pub const SET: u8 = 3;
    /// The kind of a sorted set, in one of three forms.
    pub const SORTED_SET: u8 = 4;
    /// The kind of a stream, in form 0.
    pub const STREAM: u8 = 5;

    /// Of a value that is no tree.
    #[inline]
    pub const fn new(kind: u8, form: u8) -> Tag {
        Tag {
            kind,
            form,
            is_tree: false,
        }
    }

    /// Whether this version reads values of this kind and form. One that it does not read stops a start.
    #[inline]
    pub const fn is_known(self) -> bool {
        match self.kind {
            Tag::STRING => self.form < 3 && !self.is_tree,
            Tag::LIST => matches!(self.form, 0 | 2),
            Tag::HASH => self.form < 4,
            Tag::SET | Tag::SORTED_SET => self.form < 3,
            Tag::STREAM => self.form == 0,
            _ => false,
        }
    }

    /// The same in an `Edit` of a key, or of an instance.
    ///
    /// # Panics
    /// If the value is no collection that is known.
    #[inline]
    pub(crate) const fn in_edit(self, is_tree: bool) -> Tag {
        let tag = Tag { is_tree, ..self };
        assert!(
            Kind::Edit.knows(tag),
            "only collections change by operations"
        );
        tag
    }

    /// The same in a `Leaf`, which says nothing of the value's form.
    ///
    /// # Panics
    /// If the value is no collection.
    #[inline]
    pub(crate) const fn in_leaf(self) -> Tag {
        let tag = Tag {
            form: 0,
            is_tree: true,
            ..self
        };
        assert!(Kind::Leaf.knows(tag), "only collections have leaves");
        tag
    }

    /// Whether the value consists of elements.
    const fn is_collection(self) -> bool {
        matches!(
            self.kind,
            Tag::LIST | Tag::HASH | Tag::SET | Tag::SORTED_SET | Tag::STREAM
        )
    }
}

/// A value in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Names the file.
    pub id: u64,
    /// Bytes of the value.
    pub len: u64,
    /// CRC-32C of the value.
    pub checksum: u32,
}

impl BlobRef {
    pub(super) const BYTES: usize = 24;

    pub(super) fn to_bytes(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }
}

/// One change of one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record<'a> {
    /// Where it is.
    pub lsn: Lsn,
    /// The database's identity, not its number.
    pub db: DbId,
    /// The key; of a record of an instance its number (see [`Record::instance`]).
    pub key: &'a [u8],
    /// What happens to it.
    pub change: Change<'a>,
}

/// What a record does to its key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change<'a> {
    /// The key has this value and this expiry (Unix, ms) from here on, whatever it had before.
    Set {
        /// Type and form of the value.
        tag: Tag,
        /// When it expires. May have passed: a later `Expire` can take it back.
        expiry: Option<i64>,
        /// The value.
        value: Value<'a>,
    },
    /// The key is gone.
    Delete,
    /// The expiry (Unix, ms) is this from here on; the value stays.
    Expire(Option<i64>),
    /// Part of the value changes, which is then `total` bytes long; what it grows by beyond `bytes` is
    /// zeroes.
    Patch {
        /// Type and form of the value from here on.
        tag: Tag,
        /// Where `bytes` go.
        offset: u64,
        /// Bytes of the value from here on.
        total: u64,
        /// What is written; `Stored` if it is still on disk.
        bytes: Value<'a>,
    },
    /// Elements of the value change. If the tag says that it is a tree, the record is about the instance, and
    /// none is left of that if there are no bytes.
    Edit {
        /// Type and form of the value from here on.
        tag: Tag,
        /// What happens to which elements; `Stored` if it is still on disk.
        bytes: Value<'a>,
    },
    /// A part of an instance is exactly this.
    Leaf {
        /// Type of the value.
        tag: Tag,
        /// Which part, and its elements; `Stored` if it is still on disk.
        bytes: Value<'a>,
    },
}

/// The bytes of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Here.
    Bytes(&'a [u8]),
    /// On disk, so many bytes: `Log::read_value` fetches them.
    Stored(u64),
    /// In a file of its own: `Log::read_blob` fetches it.
    Blob(BlobRef),
}

impl Value<'_> {
    /// Bytes of the value.
    pub fn len(&self) -> u64 {
        match self {
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::Stored(len) => *len,
            Value::Blob(blob) => blob.len,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Record<'_> {
    /// What the entry keeps that this record makes; `None` if it is not a `Set`.
    pub fn address(&self) -> Option<Address> {
        match self.change {
            Change::Set { expiry, value, .. } => {
                let is_blob = matches!(value, Value::Blob(_));
                Some(Address::new(self.lsn, is_blob, expiry.is_some()))
            }
            _ => None,
        }
    }

    /// Whether it is about an instance, by its number, and not about a key.
    pub fn is_of_instance(&self) -> bool {
        match self.change {
            Change::Leaf { .. } => true,
            Change::Edit { tag, .. } => tag.is_tree,
            Change::Set { .. } | Change::Delete | Change::Expire(_) | Change::Patch { .. } => false,
        }
    }

    /// The number of the instance that it is about, if it is about one.
    pub fn instance(&self) -> Option<u64> {
        let number = self.key.try_into().ok().filter(|_| self.is_of_instance())?;
        Some(u64::from_le_bytes(number))
    }

    /// Bytes that the record takes in the log.
    pub fn bytes(&self) -> u64 {
        let (expiry, rest) = match self.change {
            Change::Set {
                expiry,
                value: Value::Blob(_),
                ..
            } => (expiry.is_some(), BlobRef::BYTES as u64),
            Change::Set { expiry, value, .. } => (expiry.is_some(), value.len()),
            Change::Delete => (false, 0),
            Change::Expire(expiry) => (expiry.is_some(), 0),
            Change::Patch { bytes, .. } => (false, 16 + bytes.len()),
            Change::Edit { bytes, .. } | Change::Leaf { bytes, .. } => (false, bytes.len()),
        };
        record_bytes(self.key.len() as u64, rest, expiry)
    }
}

/// Bytes that a record takes in the log, with so many bytes of key and of facts and data.
#[inline]
pub(crate) const fn record_bytes(key: u64, rest: u64, has_expiry: bool) -> u64 {
    let expiry = if has_expiry { EXPIRY as u64 } else { 0 };
    (HEADER as u64 + expiry + key + rest).next_multiple_of(8)
}

/// Bytes that the base record of an entry takes in the log.
#[inline]
pub(crate) const fn base_bytes(address: Address, key: u64, value: u64) -> u64 {
    let rest = if address.is_blob() {
        BlobRef::BYTES as u64
    } else {
        value
    };
    record_bytes(key, rest, address.is_volatile())
}

/// What the checksum of a record begins with: another for every position and length.
#[inline]
pub(super) fn seed(lsn: Lsn, length: u32) -> u32 {
    let place = lsn.0 >> 3;
    (place as u32) ^ (place >> 32) as u32 ^ length.rotate_left(16)
}

const _: () = {
    assert!(HEADER == 16);
    // The overhead that docs/format.md promises: header and padding, and eight bytes for an expiry.
    assert!(record_bytes(1, 0, false) == 24 && record_bytes(8, 8, false) == 32);
    assert!(record_bytes(1, 0, true) == 32);
    assert!(BlobRef::BYTES.is_multiple_of(8));
};
