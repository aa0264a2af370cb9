//! Reading a file.
//!
//! A [`Reader`] gives out one [`Item`] after the other, each with its bytes in buffers of the reader's. What
//! cannot be read on is an [`Error`] that says where and why; the reader is of no use after that.

use std::io::Read;

use crate::decoder::Decoder;
use crate::error::{Error, Problem};
use crate::format::{
    CHECKSUM_SINCE, MAGIC, MODULE, MODULE_2, NEWEST_VERSION, OLDEST_VERSION, STRING, VALKEY_MAGIC,
    VALKEY_VERSION, opcode, type_name,
};
use crate::kinds::{Collection, Layout, type_of};
use crate::packed::{Cursor, Form};
use crate::pass::Passing;
use crate::source::Source;
use crate::writer::Attributes;

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Item<'r> {
    /// A fact about the file or who wrote it.
    Fact {
        /// Which.
        name: &'r [u8],
        /// In Redis' words.
        value: &'r [u8],
    },
    /// The keys from here on are in this database.
    Database(u64),
    /// A hint about the database's size.
    Sizes {
        /// Keys in all.
        keys: u64,
        /// Keys with an expiry.
        volatile: u64,
    },
    /// A key.
    Entry(Entry<'r>),
    /// The text of a library of functions.
    Library(&'r [u8]),
    /// Something that was passed over. Only where [`Reader::pass_unsupported`] was called.
    Unsupported(Unsupported<'r>),
}

/// What a file holds that this crate has no use for.
#[derive(Debug, PartialEq, Eq)]
pub enum Unsupported<'r> {
    /// A key.
    Value {
        /// The key.
        key: &'r [u8],
        /// The type of its value, and how the file holds it.
        kind: &'static str,
    },
    /// Data of the module of this name that belongs to no key.
    Module(String),
}

/// A key and its value.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry<'r> {
    /// The key.
    pub key: &'r [u8],
    /// The value, in the reader's buffer for values. Whoever wants to keep it takes the vector; it has hardly
    /// more room than it needs if the value is large.
    pub value: &'r mut Vec<u8>,
    /// What the key has beside it.
    pub attributes: Attributes,
}

/// Reads one file.
pub struct Reader<R> {
    pub(crate) decoder: Decoder<R>,
    version: u32,
    /// The item's first string: a key, or the name of a fact.
    pub(crate) first: Vec<u8>,
    /// The item's second string; the first of an element.
    pub(crate) second: Vec<u8>,
    /// What was said about the next key.
    attributes: Attributes,
    /// Whether `first` is a key whose value is being read.
    in_value: bool,
    /// Whether what is not supported is passed over.
    passes: bool,
    /// Collections that are read, by whoever asks for the next part.
    pub(crate) typed: &'static [Collection],
    /// Whether there is one value, without a key, and nothing else.
    is_alone: bool,
    ended: bool,
}

impl<R: Read> Reader<R> {
    /// Begins to read a file. `checksum` says whether what is read has to agree with the checksum at the end,
    /// if there is one.
    ///
    /// # Errors
    /// It is no RDB file, or of a version that is not known.
    pub fn new(input: R, checksum: bool) -> Result<Reader<R>, Error> {
        let mut reader = Reader::of_source(Source::new(input, checksum), 0);
        match reader.header() {
            Ok(version) => reader.version = version,
            Err(problem) => return Err(Error::from(problem)),
        }
        Ok(reader)
    }

    /// Reads one value without its key, from all of an input of `len` bytes.
    pub(crate) fn of_value(input: R, len: usize, version: u32) -> Reader<R> {
        Reader {
            is_alone: true,
            ..Reader::of_source(Source::short(input, len), version)
        }
    }

    fn of_source(source: Source<R>, version: u32) -> Reader<R> {
        Reader {
            decoder: Decoder::new(source),
            version,
            first: Vec::new(),
            second: Vec::new(),
            attributes: Attributes::default(),
            in_value: false,
            passes: false,
            typed: &[],
            is_alone: false,
            ended: false,
        }
    }

    fn header(&mut self) -> Result<u32, Problem> {
        let expected = "the magic REDIS or VALKEY and a version";
        let header = self.decoder.source.array::<9>(expected)?;
        let number = |digits: &[u8]| match str::from_utf8(digits) {
            Ok(text) if digits.iter().all(u8::is_ascii_digit) => text.parse().ok(),
            _ => None,
        };
        let of = |magic: &[u8]| header.strip_prefix(magic).and_then(number);
        match (of(MAGIC), of(VALKEY_MAGIC)) {
            (Some(version @ OLDEST_VERSION..=NEWEST_VERSION), _) => Ok(version),
            (Some(version), _) => Err(Problem::Version(version)),
            (_, Some(VALKEY_VERSION)) => Ok(VALKEY_VERSION),
            (_, Some(version)) => Err(Problem::ValkeyVersion(version)),
            (None, None) => Err(Problem::NotRdb),
        }
    }

    /// From here on, what is not supported is no error but an item of its own. (Values of modules of before
    /// Redis 5 and functions of release candidates remain errors: nobody knows where they end.)
    pub fn pass_unsupported(&mut self) {
        self.passes = true;
    }

    /// The version of the format.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Bytes of the file that were read.
    pub fn offset(&self) -> u64 {
        self.decoder.source.offset()
    }

    /// The next item, or `None` once the end was reached and the checksum found right. What stands behind the
    /// end is not looked at.
    ///
    /// # Errors
    /// The file ends too early, is damaged, or holds something that is not supported.
    #[expect(
        clippy::should_implement_trait,
        reason = "an item borrows from the reader"
    )]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        match self.next_part() {
            Ok(Some(part)) => Ok(Some(self.item(part))),
            Ok(None) => Ok(None),
            Err(problem) => Err(self.error(problem)),
        }
    }

    /// A problem with its place.
    #[cold]
    pub(crate) fn error(&mut self, problem: Problem) -> Error {
        Error {
            offset: self.decoder.source.offset(),
            key: self.in_value.then(|| std::mem::take(&mut self.first)),
            problem,
        }
    }

    /// The next item. Of a collection, if they are read, nothing behind the key.
    pub(crate) fn next_part(&mut self) -> Result<Option<Part>, Problem> {
        self.in_value = false;
        match self.is_alone {
            true => self.read_alone(),
            false => self.read_item(),
        }
    }

    pub(crate) fn item(&mut self, part: Part) -> Item<'_> {
        match part {
            Part::Database(number) => Item::Database(number),
            Part::Sizes { keys, volatile } => Item::Sizes { keys, volatile },
            Part::Fact => Item::Fact {
                name: &self.first,
                value: &self.second,
            },
            Part::Entry(attributes) => Item::Entry(Entry {
                key: &self.first,
                value: &mut self.second,
                attributes,
            }),
            Part::Begin(..) => unreachable!("whoever reads collections takes it"),
            Part::Value(kind) => Item::Unsupported(Unsupported::Value {
                key: &self.first,
                kind,
            }),
            Part::Library => Item::Library(&self.first),
            Part::Module(name) => Item::Unsupported(Unsupported::Module(name)),
        }
    }

    fn read_item(&mut self) -> Result<Option<Part>, Problem> {
        while !self.ended {
            match self.decoder.source.byte("a key or the end of the file")? {
                opcode::EXPIRY_MS => {
                    let expiry = self.decoder.source.array("an expiry in milliseconds")?;
                    self.attributes.expiry_ms = Some(i64::from_le_bytes(expiry));
                }
                opcode::EXPIRY_S => {
                    let expiry = self.decoder.source.array("an expiry in seconds")?;
                    self.attributes.expiry_ms = Some(i64::from(i32::from_le_bytes(expiry)) * 1000);
                }
                opcode::IDLE => self.attributes.idle_s = Some(self.decoder.length("an idle time")?),
                opcode::FREQUENCY => {
                    self.attributes.frequency =
                        Some(self.decoder.source.byte("a frequency of use")?);
                }
                opcode::AUX => {
                    self.read_first("the name of a fact")?;
                    self.read_second("the value of a fact")?;
                    return Ok(Some(Part::Fact));
                }
                opcode::SELECT => {
                    let number = self.decoder.length("the number of a database")?;
                    return Ok(Some(Part::Database(number)));
                }
                opcode::RESIZE => {
                    let keys = self.decoder.length("the number of keys")?;
                    let volatile = self.decoder.length("the number of keys that expire")?;
                    return Ok(Some(Part::Sizes { keys, volatile }));
                }
                opcode::SLOT_INFO => {
                    // Where a cluster's slot begins, and its sizes: hints of no use here.
                    for _ in 0..3 {
                        self.decoder.length("the number or size of a slot")?;
                    }
                }
                opcode::FUNCTION => {
                    self.read_first("the text of a library")?;
                    return Ok(Some(Part::Library));
                }
                opcode::FUNCTION_PRE_RELEASE => return Err(Problem::OldFunction),
                opcode::MODULE_AUX if self.passes => {
                    return self.passing().module_data().map(Part::Module).map(Some);
                }
                opcode::MODULE_AUX => return Err(self.passing().module()),
                opcode::END => return self.end(),
                opcode::SLOT_IMPORT if self.version == VALKEY_VERSION => {
                    return Err(Problem::SlotImport);
                }
                code => return self.entry(code).map(Some),
            }
        }
        Ok(None)
    }

    /// The one value, then the end.
    fn read_alone(&mut self) -> Result<Option<Part>, Problem> {
        if !std::mem::replace(&mut self.ended, true) {
            let code = self.decoder.source.byte("the type of a value")?;
            let kind = kind_of(code, self.version)?;
            return self.value(code, kind).map(Some);
        }
        match self.decoder.source.is_at_end()? {
            true => Ok(None),
            false => Err(Problem::Corrupt {
                expected: "the end of the value",
                found: "followed by more".into(),
            }),
        }
    }

    /// A key and its value of a type.
    fn entry(&mut self, code: u8) -> Result<Part, Problem> {
        let kind = kind_of(code, self.version)?;
        self.read_first("a key")?;
        self.in_value = true;
        self.value(code, kind)
    }

    /// A value of a type, whose name is `kind`.
    fn value(&mut self, code: u8, kind: &'static str) -> Result<Part, Problem> {
        let attributes = std::mem::take(&mut self.attributes);
        match code {
            STRING => {
                self.read_second("a value")?;
                Ok(Part::Entry(attributes))
            }
            _ if let Some((kind, layout)) = type_of(code, self.version)
                && self.typed.contains(&kind) =>
            {
                Ok(Part::Begin(attributes, kind, layout))
            }
            _ if self.passes => {
                let version = self.version;
                let passed = self.passing().value(code, version);
                passed.map(|()| Part::Value(kind))
            }
            MODULE | MODULE_2 => Err(self.passing().module()),
            _ => Err(Problem::Type(kind)),
        }
    }

    fn end(&mut self) -> Result<Option<Part>, Problem> {
        let computed = self.decoder.source.checksum();
        if self.version >= CHECKSUM_SINCE {
            let stored = u64::from_le_bytes(self.decoder.source.array("a checksum")?);
            if let Some(computed) = computed
                && stored != 0
                && stored != computed
            {
                return Err(Problem::Checksum { stored, computed });
            }
        }
        self.ended = true;
        Ok(None)
    }

    fn read_first(&mut self, expected: &'static str) -> Result<(), Problem> {
        self.decoder.string(&mut self.first, expected)
    }

    pub(crate) fn read_second(&mut self, expected: &'static str) -> Result<(), Problem> {
        self.decoder.string(&mut self.second, expected)
    }

    /// Reads a packed string.
    pub(crate) fn packed(&mut self, packed: &mut Vec<u8>, form: Form) -> Result<Cursor, Problem> {
        self.decoder.string(packed, form.name())?;
        Cursor::new(form, packed).map_err(|flaw| Problem::Corrupt {
            expected: form.name(),
            found: format!("{} bytes that are none: {flaw}", packed.len()),
        })
    }

    /// Passes over what is not supported, with the buffer for values.
    fn passing(&mut self) -> Passing<'_, R> {
        Passing {
            decoder: &mut self.decoder,
            buffer: &mut self.second,
        }
    }
}

/// The name of a type of value.
fn kind_of(code: u8, version: u32) -> Result<&'static str, Problem> {
    type_name(code, version).ok_or_else(|| match version {
        VALKEY_VERSION => Problem::ValkeyType(code),
        _ => Problem::Corrupt {
            expected: "the type of a value",
            found: format!("byte {code}"),
        },
    })
}

/// An item without its strings.
pub(crate) enum Part {
    Fact,
    Database(u64),
    Sizes { keys: u64, volatile: u64 },
    Entry(Attributes),
    Begin(Attributes, Collection, Layout),
    Value(&'static str),
    Library,
    Module(String),
}
