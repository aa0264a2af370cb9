//! Making a listpack, an entry at a time. `listpack` draws its bytes.

use resp::number::parse_i64;

use super::cell::END;
use super::listpack::{HEADER, back_of};

/// A listpack that is being made.
#[derive(Clone, Debug)]
pub struct ListpackBuilder {
    /// Header, entries, end.
    bytes: Vec<u8>,
    count: usize,
}

impl Default for ListpackBuilder {
    fn default() -> ListpackBuilder {
        let mut builder = ListpackBuilder {
            bytes: Vec::new(),
            count: 0,
        };
        builder.clear();
        builder
    }
}

impl ListpackBuilder {
    /// Forgets all entries, and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(HEADER, 0);
        self.bytes.push(END);
        self.count = 0;
    }

    /// Appends a string; as a number, if it is the decimal form of one.
    ///
    /// # Panics
    /// The listpack has 4 GiB.
    pub fn push(&mut self, text: &[u8]) {
        if let Some(number) = parse_i64(text) {
            return self.push_number(number);
        }
        let begin = self.begin();
        match text.len() {
            len @ ..64 => self.bytes.push(0x80 | len as u8),
            len @ 64..4096 => self.bytes.extend([0xe0 | (len >> 8) as u8, len as u8]),
            len => {
                let len = u32::try_from(len).expect("a listpack has less than 4 GiB");
                self.bytes.push(0xf0);
                self.bytes.extend(len.to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(text);
        self.end(begin);
    }

    /// Appends a number.
    pub fn push_number(&mut self, number: i64) {
        let begin = self.begin();
        let fits = |bits: u32| number >> (bits - 1) == number >> 63;
        let (code, len) = match number {
            0..=127 => (number as u8, 0),
            _ if fits(13) => {
                let [high, low] = (number as i16).to_be_bytes();
                self.bytes.extend([0xc0 | high & 0x1f, low]);
                return self.end(begin);
            }
            _ if fits(16) => (0xf1, 2),
            _ if fits(24) => (0xf2, 3),
            _ if fits(32) => (0xf3, 4),
            _ => (0xf4, 8),
        };
        self.bytes.push(code);
        self.bytes.extend_from_slice(&number.to_le_bytes()[..len]);
        self.end(begin);
    }

    /// Where the next entry begins.
    fn begin(&mut self) -> usize {
        self.bytes.pop();
        self.bytes.len()
    }

    /// Writes how long the entry is, behind it.
    fn end(&mut self, begin: usize) {
        let (back, len) = back_of(self.bytes.len() - begin);
        self.bytes.extend_from_slice(&back[back.len() - len..]);
        self.bytes.push(END);
        self.count += 1;
    }

    /// The listpack. More entries may follow.
    ///
    /// # Panics
    /// It has 4 GiB.
    pub fn listpack(&mut self) -> &[u8] {
        let len = u32::try_from(self.bytes.len()).expect("a listpack has less than 4 GiB");
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        self.bytes[..4].copy_from_slice(&len.to_le_bytes());
        self.bytes[4..HEADER].copy_from_slice(&count.to_le_bytes());
        &self.bytes
    }
}
