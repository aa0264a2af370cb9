//! Lengths and strings, which all parts of a file are made of.

use std::io::Read;

use resp::number::{INTEGER_TEXT_LEN, format_i64};

use crate::error::Problem;
use crate::format::{encoding, length};
use crate::lzf;
use crate::source::Source;

/// Room kept in the buffer of values from one to the next.
const KEPT_BYTES: usize = 64 * 1024;

/// Reads lengths and strings.
pub(crate) struct Decoder<R> {
    pub(crate) source: Source<R>,
    /// Bytes that a string may have.
    pub(crate) longest: u64,
    /// Whether a string was longer.
    pub(crate) is_too_long: bool,
    /// The compressed form of a string.
    compressed: Vec<u8>,
}

impl<R: Read> Decoder<R> {
    pub(crate) fn new(source: Source<R>) -> Decoder<R> {
        Decoder {
            source,
            longest: u64::MAX,
            is_too_long: false,
            compressed: Vec::new(),
        }
    }

    /// The lengths of a string, whose bytes come next.
    pub(crate) fn lengths(&mut self) -> Result<Lengths, Problem> {
        let expected = "the length of a string";
        let (stored, claimed) = match self.any_length(expected)? {
            Length::Plain(len) => (len, len),
            Length::Encoded(encoding::LZF) => (self.length(expected)?, self.length(expected)?),
            Length::Encoded(encoding::INT8) => (1, INTEGER_TEXT_LEN as u64),
            Length::Encoded(encoding::INT16) => (2, INTEGER_TEXT_LEN as u64),
            Length::Encoded(_) => (4, INTEGER_TEXT_LEN as u64),
        };
        Ok(Lengths { stored, claimed })
    }

    /// A length that stands for itself.
    pub(crate) fn length(&mut self, expected: &'static str) -> Result<u64, Problem> {
        match self.any_length(expected)? {
            Length::Plain(len) => Ok(len),
            Length::Encoded(code) => Err(Problem::Corrupt {
                expected,
                found: format!("a string of encoding {code}"),
            }),
        }
    }

    #[inline]
    fn any_length(&mut self, expected: &'static str) -> Result<Length, Problem> {
        let byte = self.source.byte(expected)?;
        let low = byte & !length::KIND;
        Ok(Length::Plain(match byte {
            length::BITS_32 => u64::from(u32::from_be_bytes(self.source.array(expected)?)),
            length::BITS_64 => u64::from_be_bytes(self.source.array(expected)?),
            _ => match byte & length::KIND {
                length::BITS_6 => u64::from(low),
                length::BITS_14 => u64::from(low) << 8 | u64::from(self.source.byte(expected)?),
                length::ENCODED => return Ok(Length::Encoded(low)),
                _ => {
                    return Err(Problem::Corrupt {
                        expected,
                        found: format!("byte {byte}, which begins no length"),
                    });
                }
            },
        }))
    }

    /// Reads a string in any of its encodings.
    pub(crate) fn string(
        &mut self,
        output: &mut Vec<u8>,
        expected: &'static str,
    ) -> Result<(), Problem> {
        output.clear();
        if output.capacity() > KEPT_BYTES {
            *output = Vec::new();
        }
        let number = match self.any_length(expected)? {
            Length::Plain(len) => {
                self.check_length(len, expected)?;
                return self.source.append(len, output, expected);
            }
            Length::Encoded(encoding::INT8) => {
                i32::from(i8::from_le_bytes(self.source.array(expected)?))
            }
            Length::Encoded(encoding::INT16) => {
                i32::from(i16::from_le_bytes(self.source.array(expected)?))
            }
            Length::Encoded(encoding::INT32) => i32::from_le_bytes(self.source.array(expected)?),
            Length::Encoded(encoding::LZF) => return self.compressed(output, expected),
            Length::Encoded(code) => {
                return Err(Problem::Corrupt {
                    expected,
                    found: format!("a string of encoding {code}, which there is not"),
                });
            }
        };
        let mut digits = [0; INTEGER_TEXT_LEN];
        output.extend_from_slice(format_i64(number.into(), &mut digits));
        Ok(())
    }

    fn check_length(&mut self, len: u64, expected: &'static str) -> Result<(), Problem> {
        if len <= self.longest {
            return Ok(());
        }
        self.is_too_long = true;
        Err(Problem::Corrupt {
            expected,
            found: format!("{len} bytes, and {} are the most", self.longest),
        })
    }

    fn compressed(&mut self, output: &mut Vec<u8>, expected: &'static str) -> Result<(), Problem> {
        let compressed_len = self.length("the length of a compressed string")?;
        let len = self.length("the length of a string")?;
        self.check_length(len, expected)?;
        self.compressed.clear();
        if self.compressed.capacity() > KEPT_BYTES {
            self.compressed = Vec::new();
        }
        self.source
            .append(compressed_len, &mut self.compressed, expected)?;
        let corrupt = |found: String| Problem::Corrupt { expected, found };
        let most = lzf::expanded_max(self.compressed.len());
        let len = match usize::try_from(len) {
            Ok(len) if len <= most => len,
            _ => {
                return Err(corrupt(format!(
                    "{compressed_len} compressed bytes, which cannot stand for {len}"
                )));
            }
        };
        if lzf::decompress(&self.compressed, len, output) {
            Ok(())
        } else {
            Err(corrupt(format!(
                "compressed bytes that do not stand for {len} bytes"
            )))
        }
    }
}

/// Bytes of a string.
pub(crate) struct Lengths {
    /// Those that follow.
    pub(crate) stored: u64,
    /// Those that it says it has.
    pub(crate) claimed: u64,
}

/// What stands before a string.
enum Length {
    Plain(u64),
    /// An encoding instead of a length.
    Encoded(u8),
}
