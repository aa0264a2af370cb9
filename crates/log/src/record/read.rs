//! Taking records apart. Nothing on a disk is trusted: every length is checked against what is there, and the
//! checksum comes before any meaning.

use std::fmt;

use super::layout::{
    BlobRef, Change, EXPIRY, FLAG_EXPIRY, FLAG_INNER, FLAG_TREE, FLAGS_KNOWN, FORM_SHIFT, HEADER,
    INSTANCE, KIND_BITS, Kind, Record, Tag, VALUE_KIND_SHIFT, Value, seed,
};
use crate::address::{DbId, Lsn};
use crate::bindings::decode_changes;

/// A record, where it was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Found<'a> {
    pub(crate) entry: Entry<'a>,
    /// Bytes to the next record at this level: a batch's cover what is inside.
    pub(crate) bytes: usize,
    /// Bytes of the record that come before its data.
    pub(crate) before_data: usize,
    /// Whether it says that it is inside a batch.
    pub(crate) is_inner: bool,
}

/// What a record can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Entry<'a> {
    /// A change of a key.
    Key(Record<'a>),
    /// So many records follow inside of it.
    Batch(u32),
    /// Changes of bindings, which can be decoded.
    Bind(&'a [u8]),
    Mark(Lsn),
    Retire(Lsn),
    Void,
}

/// Why there is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Zeroes: nothing was written here.
    Nothing,
    /// It would need so many bytes, and there are fewer.
    Incomplete(u64),
    /// No record has this length.
    Length(u32),
    Checksum,
    /// The checksum is right, but this version does not know what it says: another version wrote it.
    Unknown(Unknown),
    /// The records inside of a batch do not fit into it.
    Batch,
}

/// What this version does not know of a record whose checksum is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// The kind of the record.
    Kind(u8),
    /// Flags; all of them.
    Flags(u8),
    /// The kind and the form of the value.
    Value(Tag),
    /// No record of this kind has such a length, such facts or such data.
    Content(u8),
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::Kind(kind) => write!(f, "a record of kind {kind}"),
            Unknown::Flags(flags) => write!(f, "a record with the flags {flags:#04x}"),
            Unknown::Value(Tag {
                kind,
                form,
                is_tree,
            }) => {
                write!(f, "a value of kind {kind}")?;
                if *form > 0 {
                    write!(f, " in form {form}")?;
                }
                f.write_str(if *is_tree { " in a tree" } else { "" })
            }
            Unknown::Content(kind) => write!(f, "content of a record of kind {kind}"),
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Nothing => f.write_str("zeroes where a record should be"),
            Flaw::Incomplete(bytes) => write!(f, "a record of {bytes} bytes that ends too early"),
            Flaw::Length(length) => write!(f, "a record with the impossible length {length}"),
            Flaw::Checksum => f.write_str("the checksum does not match"),
            Flaw::Unknown(what) => write!(f, "{what}, which this version does not know"),
            Flaw::Batch => f.write_str("the records of a batch do not fit into it"),
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(
        *bytes[at..]
            .first_chunk()
            .expect("callers have checked the length"),
    )
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(
        *bytes[at..]
            .first_chunk()
            .expect("callers have checked the length"),
    )
}

/// Reads the record at `lsn`, which begins where `bytes` begin. The records of a batch are read one by one,
/// behind its header.
pub(crate) fn read(bytes: &[u8], lsn: Lsn) -> Result<Found<'_>, Flaw> {
    let (length, covered) = covered(bytes)?;
    let checksum = crc32c::crc32c_append(seed(lsn, length), &bytes[8..covered]);
    if checksum == u32_at(bytes, 4) {
        return parse(bytes, lsn);
    }
    // A fuzzer would never come past the checksum. What it makes up is not of another version.
    if cfg!(fuzzing)
        && let Ok(found) = parse(bytes, lsn)
    {
        return Ok(found);
    }
    Err(Flaw::Checksum)
}

/// The length of the record that `bytes` begin with, if it is one, and how many of them the checksum covers,
/// all of which are there.
fn covered(bytes: &[u8]) -> Result<(u32, usize), Flaw> {
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Err(if bytes.iter().all(|&byte| byte == 0) {
            Flaw::Nothing
        } else {
            Flaw::Incomplete(HEADER as u64)
        });
    };
    let length = u32_at(header, 0);
    if *header == [0; HEADER] {
        return Err(Flaw::Nothing);
    }
    if (length as usize) < HEADER {
        return Err(Flaw::Length(length));
    }
    let padded = (length as usize).next_multiple_of(8);
    let is_batch = header[8] & KIND_BITS == Kind::Batch as u8;
    let covered = if is_batch { HEADER } else { padded };
    if bytes.len() < covered {
        return Err(Flaw::Incomplete(covered as u64));
    }
    Ok((length, covered))
}

/// The same for a record that [`read`] has found to be one: the checksum is not looked at again.
pub(crate) fn parse(bytes: &[u8], lsn: Lsn) -> Result<Found<'_>, Flaw> {
    let header = bytes.first_chunk::<HEADER>().ok_or(Flaw::Nothing)?;
    let length = u32_at(header, 0);
    let padded = (length as usize).next_multiple_of(8);
    let is_batch = header[8] & KIND_BITS == Kind::Batch as u8;
    let before_data = if is_batch {
        HEADER
    } else {
        before_data(header)
    };
    if before_data > length as usize {
        return Err(Flaw::Unknown(unknown(header)));
    }
    let data = if is_batch {
        &[][..]
    } else {
        &bytes[before_data..length as usize]
    };
    let entry = meaning(lsn, &bytes[..before_data], Value::Bytes(data))
        .ok_or_else(|| Flaw::Unknown(unknown(header)))?;
    if !is_batch && bytes[length as usize..padded].iter().any(|&byte| byte != 0) {
        return Err(Flaw::Unknown(unknown(header)));
    }
    Ok(Found {
        entry,
        bytes: padded,
        before_data,
        is_inner: header[9] & FLAG_INNER != 0,
    })
}

/// What of a record with this header is not known; its content, if the header says nothing unknown.
fn unknown(header: &[u8; HEADER]) -> Unknown {
    let (bits, flags, tag) = (header[8] & KIND_BITS, header[9], tag_of(header));
    match Kind::from_bits(bits) {
        None => Unknown::Kind(bits),
        Some(_) if flags & !FLAGS_KNOWN != 0 => Unknown::Flags(flags),
        Some(kind) if flags & FLAG_TREE != 0 && !kind.has_trees() => Unknown::Flags(flags),
        Some(kind) if !kind.knows(tag) => Unknown::Value(tag),
        Some(_) => Unknown::Content(bits),
    }
}

/// What a record's header says of its value.
fn tag_of(header: &[u8]) -> Tag {
    Tag {
        kind: header[8] >> VALUE_KIND_SHIFT,
        form: header[9] >> FORM_SHIFT & 3,
        is_tree: header[9] & FLAG_TREE != 0,
    }
}

/// What a record seems to say that may be damaged, without its data, and how far the next one is; of a batch,
/// the first inside.
pub(crate) fn guess(bytes: &[u8], lsn: Lsn) -> Option<(Entry<'_>, usize)> {
    let header = bytes.first_chunk::<HEADER>()?;
    let (length, before_data) = (u64::from(u32_at(header, 0)), before_data(header));
    let entry = if header[8] & KIND_BITS == Kind::Batch as u8 {
        meaning(lsn, header, Value::Stored(0))?
    } else {
        let data = length.checked_sub(before_data as u64)?;
        meaning(lsn, bytes.get(..before_data)?, Value::Stored(data))?
    };
    Some((entry, usize::try_from(stride(header)).ok()?))
}

/// What a header says of a record that may be at any place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peeked {
    /// Bytes to the next record.
    pub(crate) bytes: u64,
    /// Bytes of them that the checksum covers, with the header.
    pub(crate) covered: u64,
}

/// Looks at bytes that may be the header of a record at the top level: `None` if they are none.
pub(crate) fn peek(header: &[u8; HEADER]) -> Option<Peeked> {
    let kind = Kind::from_bits(header[8] & KIND_BITS)?;
    let flags = header[9];
    let length = u32_at(header, 0);
    let bytes = u64::from(length).next_multiple_of(8);
    if flags & !FLAGS_KNOWN != 0 || flags & FLAG_INNER != 0 || !kind.knows(tag_of(header)) {
        return None;
    }
    let is_batch = kind == Kind::Batch;
    let least = if is_batch {
        HEADER
    } else {
        before_data(header)
    };
    (least as u64 <= u64::from(length)).then_some(Peeked {
        bytes,
        covered: if is_batch { HEADER as u64 } else { bytes },
    })
}

/// The position that a record has, whose bytes as far as the checksum covers them these are, if it is one.
/// Any bytes give one. Of those that are possible, the first that is not far before `near`.
pub(crate) fn position_of(bytes: &[u8], near: Lsn) -> Lsn {
    let place = undo_checksum(u32_at(bytes, 4), &bytes[8..]) ^ u32_at(bytes, 0).rotate_left(16);
    let high = near.0 >> 35;
    let at = |high: u64| (high << 32 | u64::from(place ^ high as u32)) << 3;
    // Positions that differ in their upper half only have different lower halves for the same place.
    Lsn(if at(high) >= near.0 {
        at(high)
    } else {
        at(high + 1)
    })
}

/// What a checksum began with that became this one by these bytes.
fn undo_checksum(checksum: u32, bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(!checksum, |state, &byte| {
        let (index, entry) = UNDO[(state >> 24) as usize];
        (state ^ entry) << 8 | u32::from(index ^ byte)
    }) ^ u32::MAX
}

/// The entry of the table of CRC-32C that has this highest byte, and its index.
const UNDO: [(u8, u32); 256] = {
    let mut table = [(0, 0); 256];
    let mut index = 0;
    while index < 256 {
        let (mut entry, mut bit) = (index as u32, 0);
        while bit < 8 {
            entry = if entry & 1 == 1 {
                entry >> 1 ^ 0x82f6_3b78
            } else {
                entry >> 1
            };
            bit += 1;
        }
        table[(entry >> 24) as usize] = (index as u8, entry);
        index += 1;
    }
    table
};

/// Bytes from this header to the next, going into batches; more than any segment has if it is no header.
pub(crate) fn stride(header: &[u8; HEADER]) -> u64 {
    let length = u32_at(header, 0);
    if header[8] & KIND_BITS == Kind::Batch as u8 {
        HEADER as u64
    } else if (length as usize) < HEADER {
        u64::MAX / 2
    } else {
        u64::from(length).next_multiple_of(8)
    }
}

/// What a header says of its record, for those who only count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Glance {
    /// A whole value, or a part of an instance.
    Base,
    /// The key is gone.
    Tombstone,
    /// A new expiry, or part of a value.
    Amendment,
    /// Operations on the elements of a collection.
    Edit,
    /// A batch; bytes of all of it.
    Batch(u64),
    /// About no key.
    Other,
}

/// See [`Glance`]. `header` was written by an appender.
pub(crate) fn glance(header: &[u8; HEADER]) -> Glance {
    match Kind::from_bits(header[8] & KIND_BITS) {
        Some(Kind::Set | Kind::SetBlob | Kind::Leaf) => Glance::Base,
        Some(Kind::Delete) => Glance::Tombstone,
        Some(Kind::Expire | Kind::Patch) => Glance::Amendment,
        Some(Kind::Edit) => Glance::Edit,
        Some(Kind::Batch) => Glance::Batch(u64::from(u32_at(header, 0)).next_multiple_of(8)),
        Some(Kind::Bind | Kind::Mark | Kind::Retire | Kind::Void) | None => Glance::Other,
    }
}

/// Bytes of header, expiry, key and facts, as the header says; more than any record's length if it says
/// nonsense.
pub(crate) fn before_data(header: &[u8; HEADER]) -> usize {
    let expiry = if header[9] & FLAG_EXPIRY != 0 {
        EXPIRY
    } else {
        0
    };
    let facts = Kind::from_bits(header[8] & KIND_BITS).map_or(0, Kind::facts);
    HEADER + expiry + u32_at(header, 12) as usize + facts
}

/// What the record says whose bytes before the data these are.
fn meaning<'a>(lsn: Lsn, bytes: &'a [u8], data: Value<'a>) -> Option<Entry<'a>> {
    let kind = Kind::from_bits(bytes[8] & KIND_BITS)?;
    let flags = bytes[9];
    let tag = tag_of(bytes);
    let db = DbId(u16::from_le_bytes([bytes[10], bytes[11]]));
    let key_len = u32_at(bytes, 12) as usize;
    if flags & !FLAGS_KNOWN != 0 || !kind.knows(tag) {
        return None;
    }
    if kind == Kind::Batch {
        let is_plain = db == DbId(0) && flags == 0;
        return is_plain.then_some(Entry::Batch(key_len as u32));
    }
    let (expiry, at) = if flags & FLAG_EXPIRY != 0 {
        (Some(u64_at(bytes, HEADER).cast_signed()), HEADER + EXPIRY)
    } else {
        (None, HEADER)
    };
    let (key, facts) = bytes[at..].split_at(key_len);
    let change = match kind {
        Kind::Set => Change::Set {
            tag,
            expiry,
            value: data,
        },
        Kind::SetBlob => {
            let blob = BlobRef {
                id: u64_at(facts, 0),
                len: u64_at(facts, 8),
                checksum: u32_at(facts, 16),
            };
            let is_plain = data.is_empty() && u32_at(facts, 20) == 0;
            return is_plain.then_some(Entry::Key(Record {
                lsn,
                db,
                key,
                change: Change::Set {
                    tag,
                    expiry,
                    value: Value::Blob(blob),
                },
            }));
        }
        Kind::Delete if expiry.is_none() && data.is_empty() => Change::Delete,
        Kind::Expire if data.is_empty() => Change::Expire(expiry),
        Kind::Patch if expiry.is_none() => {
            let (offset, total) = (u64_at(facts, 0), u64_at(facts, 8));
            if offset.checked_add(data.len()).is_none_or(|end| end > total) {
                return None;
            }
            Change::Patch {
                tag,
                offset,
                total,
                bytes: data,
            }
        }
        Kind::Leaf if expiry.is_none() && key_len == INSTANCE => Change::Leaf { tag, bytes: data },
        Kind::Edit if expiry.is_none() && (key_len == INSTANCE || !tag.is_tree) => {
            Change::Edit { tag, bytes: data }
        }
        Kind::Delete | Kind::Expire | Kind::Patch | Kind::Leaf | Kind::Edit => return None,
        _ => return control(kind, flags, db, key, facts, data),
    };
    Some(Entry::Key(Record {
        lsn,
        db,
        key,
        change,
    }))
}

/// What a record says that is about no key.
fn control<'a>(
    kind: Kind,
    flags: u8,
    db: DbId,
    key: &[u8],
    facts: &[u8],
    data: Value<'a>,
) -> Option<Entry<'a>> {
    if flags & !FLAG_INNER != 0 || db != DbId(0) || !key.is_empty() {
        return None;
    }
    let position = || {
        let position = u64_at(facts, 0);
        (position.is_multiple_of(8) && data.is_empty()).then_some(Lsn(position))
    };
    match (kind, data) {
        (Kind::Bind, Value::Bytes(changes)) => {
            decode_changes(changes).map(|_| Entry::Bind(changes))
        }
        (Kind::Mark, _) => position().map(Entry::Mark),
        (Kind::Retire, _) => position().map(Entry::Retire),
        (Kind::Void, _) => Some(Entry::Void),
        _ => None,
    }
}

/// One record of a hint file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hinted<'a> {
    pub(crate) record: Record<'a>,
    /// Bytes to the next one in the hint file.
    pub(crate) bytes: usize,
}

/// Reads the hint at the beginning of `bytes`; `None` if it is none. The checksum of hints is the file's.
pub(crate) fn read_hint(bytes: &[u8]) -> Option<Hinted<'_>> {
    let (lsn, rest) = bytes.split_first_chunk::<8>()?;
    let lsn = u64::from_le_bytes(*lsn);
    let header = rest.first_chunk::<HEADER>()?;
    let before_data = before_data(header);
    let data = (u32_at(header, 0) as usize).checked_sub(before_data)?;
    if !lsn.is_multiple_of(8) || rest.len() < before_data {
        return None;
    }
    match meaning(Lsn(lsn), &rest[..before_data], Value::Stored(data as u64))? {
        Entry::Key(record) => Some(Hinted {
            record,
            bytes: (8 + before_data).next_multiple_of(8),
        }),
        _ => None,
    }
}

/// Whether these bytes could begin a `Mark` that is no part of a batch: a cheap question before [`read`].
pub(crate) fn looks_like_a_mark(bytes: &[u8]) -> bool {
    bytes.len() >= HEADER + 8
        && bytes[8] == Kind::Mark as u8
        && u32_at(bytes, 0) as usize == HEADER + 8
}
