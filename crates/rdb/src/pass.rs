//! Passing over what is not supported: values of other types, data of modules.
//!
//! Nothing here says what such a value is, only where it ends. What each looks like:
//!
//! ```text
//! list, set            count string...
//! sorted set           count (string score)...   score: a length of one byte and digits; 253 to 255 alone;
//!                                                or 8 bytes
//! hash                 count (string string)...
//! zipmap, ziplist,
//! intset, listpack     string
//! quicklist            count string...               since version 10 a length stands before each string
//! stream               count (string string)..., counters, then groups with what is pending and consumers
//! hash with expiring
//! fields               time, then a string or count (expiry string string)...
//!                      of Valkey: count (string string expiry8)...
//! module               number (opcode value)... 0
//! ```

use std::io::Read;

use crate::decoder::Decoder;
use crate::error::Problem;
use crate::format::{VALKEY_TIMED_HASH, VALKEY_VERSION, module_name};

/// What stands for a part of what a module wrote.
mod module {
    pub(super) const END: u64 = 0;
    pub(super) const SIGNED: u64 = 1;
    pub(super) const UNSIGNED: u64 = 2;
    pub(super) const FLOAT: u64 = 3;
    pub(super) const DOUBLE: u64 = 4;
    pub(super) const STRING: u64 = 5;
}

/// From this length on, the score of a sorted set is no digits but a number of its own, or none.
const SCORE_WORDS: u8 = 253;

const VALUE: &str = "part of a value";

/// Passes over parts of a file.
pub(crate) struct Passing<'d, R> {
    pub(crate) decoder: &'d mut Decoder<R>,
    /// For strings that are read and forgotten.
    pub(crate) buffer: &'d mut Vec<u8>,
}

impl<R: Read> Passing<'_, R> {
    /// Passes over the value of a type. The type is one that the version has, and no string.
    pub(crate) fn value(&mut self, code: u8, version: u32) -> Result<(), Problem> {
        match code {
            VALKEY_TIMED_HASH if version == VALKEY_VERSION => self.each(|reader| {
                reader.strings(2)?;
                reader.bytes::<8>()
            }),
            1 | 2 | 14 => self.each(Self::string),
            3 => self.each(|reader| {
                reader.string()?;
                reader.score()
            }),
            4 => self.each(|reader| reader.strings(2)),
            5 => self.each(|reader| {
                reader.string()?;
                reader.bytes::<8>()
            }),
            7 => {
                self.decoder.length("the number of a module")?;
                self.module_parts()
            }
            9..=13 | 16 | 17 | 20 => self.string(),
            18 => self.each(|reader| {
                reader.length()?;
                reader.string()
            }),
            15 | 19 | 21 => self.stream(code),
            22 => self.each(Self::expiring_field),
            23 => self.string(),
            24 => {
                self.bytes::<8>()?;
                self.each(Self::expiring_field)
            }
            25 => {
                self.bytes::<8>()?;
                self.string()
            }
            // What modules wrote for Redis 4 has no end that others could find.
            _ => Err(self.module()),
        }
    }

    /// Passes over data of a module that belongs to no key, and says which module's it is.
    pub(crate) fn module_data(&mut self) -> Result<String, Problem> {
        let problem = self.module();
        let Problem::Module(name) = problem else {
            return Err(problem);
        };
        // When it is to be loaded.
        self.length()?;
        self.length()?;
        self.module_parts()?;
        Ok(name)
    }

    /// What is wrong with data of a module: that it is there.
    pub(crate) fn module(&mut self) -> Problem {
        match self.decoder.length("the number of a module") {
            Ok(id) => Problem::Module(module_name(id)),
            Err(problem) => problem,
        }
    }

    fn each(&mut self, pass: impl Fn(&mut Self) -> Result<(), Problem>) -> Result<(), Problem> {
        for _ in 0..self.decoder.length("the number of parts of a value")? {
            pass(self)?;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), Problem> {
        self.decoder.string(self.buffer, VALUE)
    }

    fn strings(&mut self, count: usize) -> Result<(), Problem> {
        (0..count).try_for_each(|_| self.string())
    }

    fn length(&mut self) -> Result<(), Problem> {
        self.decoder.length(VALUE).map(drop)
    }

    fn lengths(&mut self, count: usize) -> Result<(), Problem> {
        (0..count).try_for_each(|_| self.length())
    }

    fn bytes<const N: usize>(&mut self) -> Result<(), Problem> {
        self.decoder.source.array::<N>(VALUE).map(drop)
    }

    fn score(&mut self) -> Result<(), Problem> {
        let len = self.decoder.source.byte(VALUE)?;
        if len < SCORE_WORDS {
            for _ in 0..len {
                self.decoder.source.byte(VALUE)?;
            }
        }
        Ok(())
    }

    fn expiring_field(&mut self) -> Result<(), Problem> {
        self.length()?;
        self.strings(2)
    }

    /// Its nodes, its counters, its groups. Versions 2 and 3 of the type say more in each.
    fn stream(&mut self, code: u8) -> Result<(), Problem> {
        let (is_second, is_third) = (code >= 19, code >= 21);
        self.each(|reader| reader.strings(2))?;
        // The number of entries and the last of them; the first, the last deleted, all there ever were.
        self.lengths(if is_second { 8 } else { 3 })?;
        self.each(|group| {
            group.string()?;
            group.lengths(if is_second { 3 } else { 2 })?;
            group.each(|pending| {
                pending.bytes::<24>()?;
                pending.length()
            })?;
            group.each(|consumer| {
                consumer.string()?;
                consumer.bytes::<8>()?;
                if is_third {
                    consumer.bytes::<8>()?;
                }
                consumer.each(Self::bytes::<16>)
            })
        })
    }

    fn module_parts(&mut self) -> Result<(), Problem> {
        loop {
            match self.decoder.length("what comes next of a module's data")? {
                module::END => return Ok(()),
                module::SIGNED | module::UNSIGNED => self.length()?,
                module::FLOAT => self.bytes::<4>()?,
                module::DOUBLE => self.bytes::<8>()?,
                module::STRING => self.string()?,
                other => {
                    return Err(Problem::Corrupt {
                        expected: "what comes next of a module's data",
                        found: format!("the number {other}"),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
