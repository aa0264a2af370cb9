//! The bytes of the format by name, and the names of what this crate does not read.

use crc::{CRC_64_REDIS, Crc, Table};

/// The checksum of a file.
pub(crate) static CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// What a file of Redis begins with, before four digits of version.
pub(crate) const MAGIC: &[u8; 5] = b"REDIS";
/// What a file of Valkey begins with since its version 9.0, before three digits of version.
pub(crate) const VALKEY_MAGIC: &[u8; 6] = b"VALKEY";

/// The version that is written: the one of Redis 7.0.
pub const WRITTEN_VERSION: u32 = 10;
/// The version that is written where fields expire: the one of Redis 7.4.
pub const TIMED_VERSION: u32 = 12;
/// The oldest version that is read.
pub const OLDEST_VERSION: u32 = 1;
/// The newest version that is read: the one of Redis 7.4 and 8.
pub const NEWEST_VERSION: u32 = 12;
/// The version of Valkey 9.0 and 9.1. Redis and Valkey give types and opcodes of their own the same numbers,
/// and the version says whose they are.
pub const VALKEY_VERSION: u32 = 80;
/// The first version whose files end with a checksum.
pub(crate) const CHECKSUM_SINCE: u32 = 5;

/// What stands before something that is no key; every other byte in its place is the type of a value.
pub(crate) mod opcode {
    /// Of Valkey: an import of slots that had not ended.
    pub(crate) const SLOT_IMPORT: u8 = 243;
    pub(crate) const SLOT_INFO: u8 = 244;
    pub(crate) const FUNCTION: u8 = 245;
    pub(crate) const FUNCTION_PRE_RELEASE: u8 = 246;
    pub(crate) const MODULE_AUX: u8 = 247;
    pub(crate) const IDLE: u8 = 248;
    pub(crate) const FREQUENCY: u8 = 249;
    pub(crate) const AUX: u8 = 250;
    pub(crate) const RESIZE: u8 = 251;
    pub(crate) const EXPIRY_MS: u8 = 252;
    pub(crate) const EXPIRY_S: u8 = 253;
    pub(crate) const SELECT: u8 = 254;
    pub(crate) const END: u8 = 255;
}

/// The type of a string.
pub(crate) const STRING: u8 = 0;
/// The type of a hash whose fields may expire.
pub(crate) const TIMED_HASH: u8 = 24;
/// The type of a hash whose fields may expire, in files of Valkey.
pub(crate) const VALKEY_TIMED_HASH: u8 = 22;
/// The type of a hash in a listpack.
pub(crate) const HASH_LISTPACK: u8 = 16;
/// A set of integers.
pub(crate) const SET_INTSET: u8 = 11;
/// The types of values that modules made, which begin with the number of the module.
pub(crate) const MODULE: u8 = 6;
pub(crate) const MODULE_2: u8 = 7;

/// The first byte of a length.
pub(crate) mod length {
    /// The bits that say how long it is.
    pub(crate) const KIND: u8 = 0xc0;
    pub(crate) const BITS_6: u8 = 0x00;
    pub(crate) const BITS_14: u8 = 0x40;
    pub(crate) const BITS_32: u8 = 0x80;
    pub(crate) const BITS_64: u8 = 0x81;
    /// Of a string that is not its bytes behind their number.
    pub(crate) const ENCODED: u8 = 0xc0;
}

/// How a string is encoded, in the lower bits of the byte whose upper two say that it is.
pub(crate) mod encoding {
    pub(crate) const INT8: u8 = 0;
    pub(crate) const INT16: u8 = 1;
    pub(crate) const INT32: u8 = 2;
    pub(crate) const LZF: u8 = 3;
}

/// The type of a stream that is written.
pub(crate) const STREAM: u8 = 19;

/// The name of a type of value in a file of a version, as TYPE would say it, and how the file holds it.
pub(crate) fn type_name(code: u8, version: u32) -> Option<&'static str> {
    Some(match code {
        22.. if version == VALKEY_VERSION && code != VALKEY_TIMED_HASH => return None,
        STRING => "string",
        1 => "list",
        2 => "set",
        3 | 5 => "sorted set",
        4 => "hash",
        MODULE | MODULE_2 => "value of a module",
        9 => "hash (zipmap)",
        10 => "list (ziplist)",
        11 => "set (intset)",
        12 => "sorted set (ziplist)",
        13 => "hash (ziplist)",
        14 | 18 => "list (quicklist)",
        15 | 19 | 21 => "stream",
        16 => "hash (listpack)",
        17 => "sorted set (listpack)",
        20 => "set (listpack)",
        22..=25 => "hash with expiring fields",
        _ => return None,
    })
}

/// The name of the module whose data has this number: nine characters of six bits, before ten bits of
/// version.
pub(crate) fn module_name(id: u64) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (1..=9)
        .map(|place| char::from(ALPHABET[(id >> (64 - 6 * place)) as usize & 63]))
        .collect()
}
