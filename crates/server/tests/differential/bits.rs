//! Requests of the bitmap commands.

use super::request::{Request, request};
use super::stream::Generator;

impl Generator {
    /// A request of one of the bitmap commands.
    pub(crate) fn bit_request(&mut self) -> Request {
        match self.rng.u8(0..30) {
            0..=5 => {
                let bit = self.bit();
                request("SETBIT")
                    .word(self.key())
                    .word(self.bit_offset())
                    .word(bit)
            }
            6..=8 => request("GETBIT").word(self.key()).word(self.bit_offset()),
            9..=12 => request("BITCOUNT")
                .word(self.key())
                .words(self.bit_range(false)),
            13..=16 => {
                let bit = self.bit();
                request("BITPOS")
                    .word(self.key())
                    .word(bit)
                    .words(self.bit_range(true))
            }
            17..=20 => {
                let operation = self.pick(&["AND", "OR", "XOR", "NOT", "NOT", "NAND"]);
                request("BITOP")
                    .word(self.cased(operation))
                    .word(self.key())
                    .words(self.keys(1, 4))
            }
            21..=27 => self.bitfield("BITFIELD"),
            _ => self.bitfield("BITFIELD_RO"),
        }
    }

    fn bit(&mut self) -> Vec<u8> {
        if self.chance(92) {
            return self.pick(&["0", "1"]).into();
        }
        self.integer()
    }

    /// A range of bytes or bits; BITPOS may leave out its end.
    fn bit_range(&mut self, may_be_open: bool) -> Vec<Vec<u8>> {
        if self.chance(30) {
            return Vec::new();
        }
        let mut words = vec![self.range_edge()];
        if may_be_open && self.chance(30) {
            return words;
        }
        words.push(self.range_edge());
        if self.chance(50) {
            let unit = self.pick(&["BYTE", "BIT", "BIT", "BYTES"]);
            words.push(self.cased(unit));
        }
        words
    }

    fn range_edge(&mut self) -> Vec<u8> {
        if self.chance(60) {
            return self.rng.i64(-40..=40).to_string().into_bytes();
        }
        self.bit_offset()
    }

    fn bitfield(&mut self, name: &str) -> Request {
        let mut bitfield = request(name).word(self.key());
        let operations = self.rng.u8(0..5);
        for _ in 0..operations {
            let operation = match name {
                "BITFIELD_RO" if self.chance(95) => "GET",
                _ => self.pick(&["GET", "SET", "INCRBY", "INCRBY", "OVERFLOW"]),
            };
            bitfield = bitfield.word(self.cased(operation));
            if operation == "OVERFLOW" {
                let behaviour = self.pick(&["WRAP", "SAT", "FAIL", "NONE"]);
                bitfield = bitfield.word(self.cased(behaviour));
                continue;
            }
            bitfield = bitfield.word(self.field_type()).word(self.field_offset());
            if operation != "GET" {
                bitfield = bitfield.word(self.field_value());
            }
        }
        bitfield
    }

    fn field_type(&mut self) -> Vec<u8> {
        if self.chance(5) {
            return self
                .pick(&[
                    "u64", "i65", "u0", "i0", "x8", "u", "i", "u-1", "8", "u 8", "U8", "",
                ])
                .into();
        }
        let (sign, limit) = self.pick(&[("u", 63), ("i", 64)]);
        let width = if self.chance(60) {
            self.pick(&[1, 2, 4, 8, 16, 32, 63])
        } else {
            self.rng.u8(1..=limit)
        };
        format!("{sign}{width}").into_bytes()
    }

    fn field_offset(&mut self) -> Vec<u8> {
        match self.rng.u8(0..10) {
            0..=4 => self.rng.u16(0..200).to_string().into_bytes(),
            5..=7 => format!("#{}", self.rng.u8(0..20)).into_bytes(),
            8 => [&b"#"[..], &self.integer()].concat(),
            _ => self.bit_offset(),
        }
    }

    fn field_value(&mut self) -> Vec<u8> {
        match self.rng.u8(0..10) {
            0..=4 => self.rng.i64(-300..=300).to_string().into_bytes(),
            5..=7 => {
                let shift = self.rng.u8(0..63);
                (self.rng.i64(..) >> shift).to_string().into_bytes()
            }
            _ => self.integer(),
        }
    }
}
