//! Bitmaps: strings seen as bits. Bit 0 is the highest of the first byte.
//!
//! The table of the family is here; its handlers are in the files below, in table order:
//!
//! | file | commands |
//! |---|---|
//! | `bit` | SETBIT GETBIT |
//! | `search` | BITCOUNT BITPOS |
//! | `operation` | BITOP |
//! | `field` | BITFIELD BITFIELD_RO |
//!
//! `words` is what they do to bytes, many at a time; `integer` reads and writes an integer of any width at
//! any bit. Values are strings like all others: nothing here is stored in a form of its own.

mod bit;
mod field;
mod integer;
mod operation;
mod search;
mod words;

use resp::number;

use super::{Arg, ArgKind, Failure, Group, KeySpec, Makes, Spec, access, flag::*};
use crate::server::Server;

const OFFSET: Failure = Failure::of("ERR bit offset is not an integer or out of range");

/// The bit offset that an argument means: a number, or `#` and a number that counts in widths of `bits`. It
/// must lie in the first `proto-max-bulk-len` bytes.
fn bit_offset(server: &Server, text: &[u8], bits: Option<u32>) -> Result<usize, Failure> {
    let offset = match (text, bits) {
        ([b'#', number @ ..], Some(bits)) => {
            // A product that is too large counts modulo 2^64, as in Redis.
            number::parse_i64(number).map(|number| number.wrapping_mul(i64::from(bits)))
        }
        _ => number::parse_i64(text),
    };
    let end = server.longest_made() as i64;
    match offset {
        Some(offset) if offset >= 0 && offset / 8 < end => Ok(offset as usize),
        _ => Err(OFFSET),
    }
}

const KEY: Arg = Arg::key("key");
const OFFSET_ARG: Arg = Arg::of("offset", ArgKind::Integer);
const ENCODING: Arg = Arg::of("encoding", ArgKind::String);

/// Whether positions count bytes or bits.
const UNIT: Arg = Arg::one_of(
    "index_unit",
    &[Arg::word("byte", "BYTE"), Arg::word("bit", "BIT")],
)
.optional()
.since("7.0.0");

/// What BITOP does.
const OPERATION: Arg = Arg::one_of(
    "operation",
    &[
        Arg::word("and", "AND"),
        Arg::word("or", "OR"),
        Arg::word("xor", "XOR"),
        Arg::word("not", "NOT"),
        Arg::word("diff", "DIFF").since("8.2.0"),
        Arg::word("diff1", "DIFF1").since("8.2.0"),
        Arg::word("andor", "ANDOR").since("8.2.0"),
        Arg::word("one", "ONE").since("8.2.0"),
    ],
);

const UNIT_HISTORY: &[(&str, &str)] = &[("7.0.0", "`BYTE` and `BIT` came.")];

/// One key that is read.
const READ: &[KeySpec] = &[KeySpec::one(1, access::RO | access::ACCESS)];

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "setbit",
        makes: Makes::Value,
        arity: 4,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec::one(
            1,
            access::RW | access::ACCESS | access::UPDATE,
        )],
        group: Group::Bitmap,
        since: "2.2.0",
        summary: "Sets one bit of a value, which grows as needed, and returns what it was",
        args: &[KEY, OFFSET_ARG, Arg::of("value", ArgKind::Integer)],
        handler: bit::setbit,
        ..Spec::BASE
    },
    Spec {
        name: "getbit",
        makes: Makes::Little,
        arity: 3,
        flags: READONLY | FAST,
        keys: READ,
        group: Group::Bitmap,
        since: "2.2.0",
        summary: "Returns one bit of a value, 0 behind its end",
        args: &[KEY, OFFSET_ARG],
        handler: bit::getbit,
        ..Spec::BASE
    },
    Spec {
        name: "bitcount",
        makes: Makes::Little,
        arity: -2,
        flags: READONLY,
        keys: READ,
        group: Group::Bitmap,
        since: "2.6.0",
        summary: "Counts the ones in a value or a part of it",
        complexity: "O(N) for N bytes",
        args: &[
            KEY,
            Arg::block(
                "index",
                &[
                    Arg::of("start", ArgKind::Integer),
                    Arg::block("end_index", &[Arg::of("end", ArgKind::Integer), UNIT]).optional(),
                ],
            )
            .optional(),
        ],
        history: UNIT_HISTORY,
        handler: search::bitcount,
        ..Spec::BASE
    },
    Spec {
        name: "bitpos",
        makes: Makes::Little,
        arity: -3,
        flags: READONLY,
        keys: READ,
        group: Group::Bitmap,
        since: "2.8.7",
        summary: "Finds the first 1 or the first 0 in a value or a part of it",
        complexity: "O(N) for N bytes",
        args: &[
            KEY,
            Arg::of("bit", ArgKind::Integer),
            Arg::block(
                "index",
                &[
                    Arg::of("start", ArgKind::Integer),
                    Arg::block("end_index", &[Arg::of("end", ArgKind::Integer), UNIT]).optional(),
                ],
            )
            .optional(),
        ],
        history: UNIT_HISTORY,
        handler: search::bitpos,
        ..Spec::BASE
    },
    Spec {
        name: "bitop",
        makes: Makes::Value,
        arity: -4,
        flags: WRITE | DENYOOM,
        keys: &[
            KeySpec::one(2, access::OW | access::UPDATE),
            KeySpec::rest(3, 1, access::RO | access::ACCESS),
        ],
        group: Group::Bitmap,
        since: "2.6.0",
        summary: "Combines the bits of several values and stores the result",
        complexity: "O(N) for N bytes in all",
        args: &[
            OPERATION,
            Arg::key("destkey"),
            Arg {
                key_spec: Some(1),
                ..KEY
            }
            .multiple(),
        ],
        history: &[("8.2.0", "`DIFF`, `DIFF1`, `ANDOR` and `ONE` came.")],
        needs: |_, at| at > 2,
        handler: operation::bitop,
        ..Spec::BASE
    },
    Spec {
        name: "bitfield",
        makes: Makes::Value,
        arity: -2,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec {
            notes: Some("Written to only with `SET` or `INCRBY`"),
            ..KeySpec::one(
                1,
                access::RW | access::ACCESS | access::UPDATE | access::VARIABLE_FLAGS,
            )
        }],
        group: Group::Bitmap,
        since: "3.2.0",
        summary: "Reads and writes integers of any width at any bit of a value",
        complexity: "O(1) for each operation",
        args: &[
            KEY,
            Arg::one_of("operation", &[GET_FIELD, WRITE_FIELD])
                .optional()
                .multiple(),
        ],
        handler: field::bitfield,
        ..Spec::BASE
    },
    Spec {
        name: "bitfield_ro",
        makes: Makes::Little,
        arity: -2,
        flags: READONLY | FAST,
        keys: READ,
        group: Group::Bitmap,
        since: "6.0.0",
        summary: "Reads integers of any width at any bit of a value",
        complexity: "O(1) for each operation",
        args: &[
            KEY,
            Arg {
                multiple_token: true,
                ..GET_FIELD.optional().multiple()
            },
        ],
        handler: field::bitfield_ro,
        ..Spec::BASE
    },
];

/// `GET encoding offset` of BITFIELD.
const GET_FIELD: Arg = Arg::block("encoding_offset", &[ENCODING, OFFSET_ARG]).token("GET");

/// `[OVERFLOW behaviour] SET encoding offset value` of BITFIELD, or the same with INCRBY.
const WRITE_FIELD: Arg = Arg::block(
    "write",
    &[
        Arg::one_of(
            "wrap_sat_fail",
            &[
                Arg::word("wrap", "WRAP"),
                Arg::word("sat", "SAT"),
                Arg::word("fail", "FAIL"),
            ],
        )
        .token("OVERFLOW")
        .optional(),
        Arg::one_of(
            "write_operation",
            &[
                Arg::block(
                    "encoding_offset_value",
                    &[ENCODING, OFFSET_ARG, Arg::of("value", ArgKind::Integer)],
                )
                .token("SET"),
                Arg::block(
                    "encoding_offset_increment",
                    &[ENCODING, OFFSET_ARG, Arg::of("increment", ArgKind::Integer)],
                )
                .token("INCRBY"),
            ],
        ),
    ],
);
