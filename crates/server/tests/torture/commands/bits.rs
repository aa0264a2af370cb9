//! What commands of bits do to the model.

use crate::support::Value;
use crate::torture::model::{Call, Expect, number};
use crate::torture::script::Arg;

fn bit_of(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at / 8)
        .map_or(0, |byte| u64::from(byte >> (7 - at % 8) & 1))
}

fn put_bit(bytes: &mut [u8], at: usize, bit: u64) {
    let mask = 0x80 >> (at % 8);
    bytes[at / 8] = if bit == 0 {
        bytes[at / 8] & !mask
    } else {
        bytes[at / 8] | mask
    };
}

fn grow(bytes: &mut Vec<u8>, len: usize) {
    if bytes.len() < len {
        bytes.resize(len, 0);
    }
}

pub(super) fn setbit(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let at: usize = number(&args[1]).expect("a shape has an offset here");
    let bit = u64::from(args[2] == b"1");
    if call.has_no_room(at / 8) {
        return Expect::Error("OOM");
    }
    let old = call.change(&args[0], |bytes| {
        grow(bytes, at / 8 + 1);
        let old = bit_of(bytes, at);
        put_bit(bytes, at, bit);
        old
    });
    Expect::int(old)
}

pub(super) fn getbit(call: &mut Call<'_>) -> Expect {
    let at: usize = number(&call.args[1]).expect("a shape has an offset here");
    Expect::int(bit_of(call.string(&call.args[0]).unwrap_or_default(), at))
}

pub(super) fn bitcount(call: &mut Call<'_>) -> Expect {
    let bytes = call.string(&call.args[0]).unwrap_or_default();
    Expect::int(
        bytes
            .iter()
            .map(|byte| u64::from(byte.count_ones()))
            .sum::<u64>(),
    )
}

/// An integer of a BITFIELD: its sign, its width, where it begins.
struct Field {
    is_signed: bool,
    bits: usize,
    at: usize,
}

impl Field {
    fn parse(kind: &[u8], offset: &[u8]) -> Field {
        let bits = number(&kind[1..]).expect("a shape has a type here");
        let at = match offset.strip_prefix(b"#") {
            Some(count) => number::<usize>(count).map(|count| count * bits),
            None => number(offset),
        };
        Field {
            is_signed: kind[0] == b'i',
            bits,
            at: at.expect("a shape has an offset here"),
        }
    }

    fn read(&self, bytes: &[u8]) -> i128 {
        let bits = self.at..self.at + self.bits;
        let value = bits.fold(0_i128, |value, at| {
            value << 1 | i128::from(bit_of(bytes, at))
        });
        self.wrap(value)
    }

    fn write(&self, bytes: &mut Vec<u8>, value: i128) {
        grow(bytes, (self.at + self.bits).div_ceil(8));
        for index in 0..self.bits {
            let bit = value >> (self.bits - 1 - index) & 1;
            put_bit(bytes, self.at + index, bit as u64);
        }
    }

    fn wrap(&self, value: i128) -> i128 {
        let size = 1_i128 << self.bits;
        let value = value.rem_euclid(size);
        if self.is_signed && value >= size / 2 {
            value - size
        } else {
            value
        }
    }

    fn saturate(&self, value: i128) -> i128 {
        let half = 1_i128 << (self.bits - 1);
        if self.is_signed {
            value.clamp(-half, half - 1)
        } else {
            value.clamp(0, 2 * half - 1)
        }
    }
}

pub(super) fn bitfield(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let word = |at: usize| args[at].to_ascii_uppercase();
    // Vast offsets stand in shapes of one SET.
    let vast = number::<usize>(args.get(3).map_or(b"", |word| &word[..]));
    if args[1] == b"SET" && vast.is_some_and(|bit| call.has_no_room(bit / 8)) {
        return Expect::Error("OOM");
    }
    let is_change = (1..args.len()).any(|at| matches!(&word(at)[..], b"SET" | b"INCRBY"));
    let run = |bytes: &mut Vec<u8>| {
        let (mut at, mut saturates, mut replies) = (1, false, Vec::new());
        while at < args.len() {
            if word(at) == b"OVERFLOW" {
                saturates = word(at + 1) == b"SAT";
                at += 2;
                continue;
            }
            let field = Field::parse(&args[at + 1], &args[at + 2]);
            let old = field.read(bytes);
            let fit = |value| {
                if saturates {
                    field.saturate(value)
                } else {
                    field.wrap(value)
                }
            };
            let operand = || number::<i128>(&args[at + 3]).expect("a shape has a number here");
            let (reply, width) = match &word(at)[..] {
                b"GET" => (old, 3),
                b"SET" => {
                    field.write(bytes, fit(operand()));
                    (old, 4)
                }
                _ => {
                    let new = fit(old + operand());
                    field.write(bytes, new);
                    (new, 4)
                }
            };
            replies.push(Expect::Is(Value::Int(reply as i64)));
            at += width;
        }
        replies
    };
    Expect::All(if is_change {
        call.change(&args[0], run)
    } else {
        run(&mut call.string(&args[0]).unwrap_or_default().to_vec())
    })
}

/// A byte of what BITOP makes of several sources.
fn combined(operation: &[u8], sources: &[&[u8]], at: usize) -> u8 {
    let byte = |source: &&[u8]| source.get(at).copied().unwrap_or(0);
    let (first, others) = (byte(&sources[0]), sources[1..].iter().map(byte));
    match operation {
        b"AND" => others.fold(first, |one, two| one & two),
        b"OR" => others.fold(first, |one, two| one | two),
        b"XOR" => others.fold(first, |one, two| one ^ two),
        b"NOT" => !first,
        b"DIFF" => first & !others.fold(0, |one, two| one | two),
        b"DIFF1" => !first & others.fold(0, |one, two| one | two),
        b"ANDOR" => first & others.fold(0, |one, two| one | two),
        _ => {
            let (any, several) = others.fold((first, 0), |(any, several), other| {
                (any | other, several | any & other)
            });
            any & !several
        }
    }
}

pub(super) fn bitop(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let sources: Vec<&[u8]> = args[2..]
        .iter()
        .map(|name| call.string(name).unwrap_or_default())
        .collect();
    let len = sources
        .iter()
        .map(|source| source.len())
        .max()
        .unwrap_or_default();
    let operation = args[0].to_ascii_uppercase();
    let result: Vec<u8> = (0..len)
        .map(|at| combined(&operation, &sources, at))
        .collect();
    if len == 0 {
        call.remove(&args[1]);
    } else {
        call.set(&args[1], result, None);
    }
    Expect::int(len as u64)
}

/// What a BITFIELD of the plan does.
pub(crate) fn fields(random: &mut fastrand::Rng) -> Vec<Arg> {
    let mut args = Vec::new();
    let mut word = |text: String| args.push(Arg::word(text));
    for _ in 0..random.usize(1..4) {
        if random.u8(..4) == 0 {
            word("OVERFLOW".to_owned());
            word(if random.bool() { "WRAP" } else { "SAT" }.to_owned());
        }
        let kind = ["u8", "i8", "u16", "i5", "u63", "i64", "u1"][random.usize(..7)];
        let at = match random.u8(..10) {
            0 => random.usize(..4_000_000),
            1..4 => random.usize(..200_000),
            _ => random.usize(..400),
        };
        let at = if random.bool() {
            format!("#{}", at / 8)
        } else {
            at.to_string()
        };
        match random.u8(..3) {
            0 => ["GET", kind, &at]
                .iter()
                .for_each(|text| word((*text).to_owned())),
            1 => ["SET", kind, &at, &random.u8(..).to_string()]
                .iter()
                .for_each(|text| word((*text).to_owned())),
            _ => ["INCRBY", kind, &at, &random.i16(..).to_string()]
                .iter()
                .for_each(|text| word((*text).to_owned())),
        }
    }
    args
}
