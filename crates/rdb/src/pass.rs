//! Passing over what is not supported: values of other types, functions, data of modules.
//!
//! Nothing here says what such a value is, only where it ends. What each looks like:
//!
//! ```text
//! list, set            count string...
//! sorted set           count (string score)...       score: a length of one byte and digits; 253 to 255 alone; or 8 bytes
//! hash                 count (string string)...
//! zipmap, ziplist,
//! intset, listpack     string
//! quicklist            count string...               since version 10 a length stands before each string
//! stream               count (string string)..., counters, then groups with what is pending and consumers
//! hash with expiring
//! fields               time, then a string or count (expiry string string)...
//! module               number (opcode value)... 0
//! ```

use std::io::Read;

use crate::error::Problem;
use crate::reader::Reader;

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

impl<R: Read> Reader<R> {
    /// Passes over the value of a type. The type is one that the format has, and no string.
    pub(crate) fn pass_value(&mut self, code: u8) -> Result<(), Problem> {
        match code {
            1 | 2 | 14 => self.pass_each(Self::pass_string),
            3 => self.pass_each(|reader| {
                reader.pass_string()?;
                reader.pass_score()
            }),
            4 => self.pass_each(|reader| reader.pass_strings(2)),
            5 => self.pass_each(|reader| {
                reader.pass_string()?;
                reader.pass_bytes::<8>()
            }),
            7 => {
                self.length("the number of a module")?;
                self.pass_module()
            }
            9..=13 | 16 | 17 | 20 => self.pass_string(),
            18 => self.pass_each(|reader| {
                reader.pass_length()?;
                reader.pass_string()
            }),
            15 | 19 | 21 => self.pass_stream(code),
            22 => self.pass_each(Self::pass_expiring_field),
            23 => self.pass_string(),
            24 => {
                self.pass_bytes::<8>()?;
                self.pass_each(Self::pass_expiring_field)
            }
            25 => {
                self.pass_bytes::<8>()?;
                self.pass_string()
            }
            // What modules wrote for Redis 4 has no end that others could find.
            _ => Err(self.module()),
        }
    }

    /// Passes over data of a module that belongs to no key, and says which module's it is.
    pub(crate) fn pass_module_data(&mut self) -> Result<String, Problem> {
        let problem = self.module();
        let Problem::Module(name) = problem else {
            return Err(problem);
        };
        // When it is to be loaded.
        self.pass_length()?;
        self.pass_length()?;
        self.pass_module()?;
        Ok(name)
    }

    fn pass_each(
        &mut self,
        pass: impl Fn(&mut Reader<R>) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        for _ in 0..self.length("the number of parts of a value")? {
            pass(self)?;
        }
        Ok(())
    }

    fn pass_string(&mut self) -> Result<(), Problem> {
        self.read_second(VALUE)
    }

    fn pass_strings(&mut self, count: usize) -> Result<(), Problem> {
        (0..count).try_for_each(|_| self.pass_string())
    }

    fn pass_length(&mut self) -> Result<(), Problem> {
        self.length(VALUE).map(drop)
    }

    fn pass_lengths(&mut self, count: usize) -> Result<(), Problem> {
        (0..count).try_for_each(|_| self.pass_length())
    }

    fn pass_bytes<const N: usize>(&mut self) -> Result<(), Problem> {
        self.source().array::<N>(VALUE).map(drop)
    }

    fn pass_score(&mut self) -> Result<(), Problem> {
        let len = self.source().byte(VALUE)?;
        if len < SCORE_WORDS {
            for _ in 0..len {
                self.source().byte(VALUE)?;
            }
        }
        Ok(())
    }

    fn pass_expiring_field(&mut self) -> Result<(), Problem> {
        self.pass_length()?;
        self.pass_strings(2)
    }

    /// Its nodes, its counters, its groups. Versions 2 and 3 of the type say more in each.
    fn pass_stream(&mut self, code: u8) -> Result<(), Problem> {
        let (is_second, is_third) = (code >= 19, code >= 21);
        self.pass_each(|reader| reader.pass_strings(2))?;
        // The number of entries and the last of them; the first, the last deleted, all there ever were.
        self.pass_lengths(if is_second { 8 } else { 3 })?;
        self.pass_each(|group| {
            group.pass_string()?;
            group.pass_lengths(if is_second { 3 } else { 2 })?;
            group.pass_each(|pending| {
                pending.pass_bytes::<24>()?;
                pending.pass_length()
            })?;
            group.pass_each(|consumer| {
                consumer.pass_string()?;
                consumer.pass_bytes::<8>()?;
                if is_third {
                    consumer.pass_bytes::<8>()?;
                }
                consumer.pass_each(Reader::pass_bytes::<16>)
            })
        })
    }

    fn pass_module(&mut self) -> Result<(), Problem> {
        loop {
            match self.length("what comes next of a module's data")? {
                module::END => return Ok(()),
                module::SIGNED | module::UNSIGNED => self.pass_length()?,
                module::FLOAT => self.pass_bytes::<4>()?,
                module::DOUBLE => self.pass_bytes::<8>()?,
                module::STRING => self.pass_string()?,
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
