//! Writing a file.
//!
//! Values are written from where they are; nothing is copied but what fits the buffer. A string that is a
//! number of 32 bits takes two to five bytes, a long one is compressed if that makes it shorter, as Redis
//! does both.

use std::io::{self, Read, Write};
use std::ops::ControlFlow;

use crate::format::{
    HASH_LISTPACK, MAGIC, SET_INTSET, STRING, TIMED_HASH, TIMED_VERSION, WRITTEN_VERSION, encoding,
    length, opcode,
};
use crate::kinds::{Collection, Element, TIME_END};
use crate::lzf::{self, Compressor};
use crate::packed::{ListpackBuilder, intset_of};
use crate::sink::Sink;

/// Strings of more bytes than this are compressed.
const COMPRESSED_FROM: usize = 20;
/// Bytes that compression has to save.
const SAVED_MIN: usize = 4;
/// Up to so many bytes, the compressed form is kept to be written; that of a longer string is made twice.
const KEPT_MAX: usize = 1 << 20;
/// After so many strings in a row that did not become shorter one in so many is tried: where values are noise
/// trying takes most of the time. An odd number, so that it is not always the keys.
const FUTILE_MOST: u32 = 32;
const FUTILE_TRIES: u32 = 7;
/// Bytes of a long value that are in memory at a time, if it is read in pieces.
const PIECE_BYTES: usize = 256 << 10;

/// What a file is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whether long strings are compressed.
    pub compression: bool,
    /// Whether the file ends with a checksum; 0 stands in its place if not.
    pub checksum: bool,
    /// Whether fields of hashes may expire: then the file is of version 12, which Redis reads since 7.4.
    pub timed: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            compression: true,
            checksum: true,
            timed: false,
        }
    }
}

/// What a key has beside its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// When it expires (Unix, ms).
    pub expiry_ms: Option<i64>,
    /// Seconds since it was last used; of use to a server that evicts what was not.
    pub idle_s: Option<u64>,
    /// How often it is used, as a logarithm; of use to a server that evicts what is not.
    pub frequency: Option<u8>,
}

/// Writes one file of version 10, or 12. After an error nothing more can be written to it.
pub struct Writer<W> {
    pub(crate) sink: Sink<W>,
    /// Whether long strings are compressed.
    compresses: bool,
    /// Made for the first long string.
    compressor: Option<Box<Compressor>>,
    /// The compressed form of the string that is being written.
    compressed: Vec<u8>,
    /// Strings since the last one that became shorter.
    futile: u32,
    /// The collection that is being written, and how many elements it lacks.
    open: Option<(Collection, u64)>,
    /// Of the hash that is being written: the earliest time at which a field expires, if any does.
    first_ms: Option<u64>,
    /// The version of the file.
    pub(crate) version: u32,
    /// Whether keys are left out.
    is_payload: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// Of this and all other functions: those of `out`.
    pub fn new(out: W, options: Options) -> io::Result<Writer<W>> {
        let mut writer = Writer::of_sink(Sink::new(out, options.checksum), options.compression);
        if options.timed {
            writer.version = TIMED_VERSION;
        }
        writer.sink.put(MAGIC)?;
        let version = format!("{:04}", writer.version);
        writer.sink.put(version.as_bytes())?;
        Ok(writer)
    }

    /// Writes to what has no header, or has one already.
    pub(crate) fn of_sink(sink: Sink<W>, compresses: bool) -> Writer<W> {
        Writer {
            sink,
            compresses,
            compressor: None,
            compressed: Vec::new(),
            futile: 0,
            open: None,
            first_ms: None,
            version: WRITTEN_VERSION,
            is_payload: false,
        }
    }

    /// Writes one value without its key.
    pub(crate) fn of_payload(sink: Sink<W>, compresses: bool) -> Writer<W> {
        Writer {
            is_payload: true,
            ..Writer::of_sink(sink, compresses)
        }
    }

    /// Bytes of the file so far.
    pub fn written(&self) -> u64 {
        self.sink.len()
    }

    /// A fact about the file or its writer. Readers pass over names they don't know.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn fact(&mut self, name: &str, value: &str) -> io::Result<()> {
        self.sink.put(&[opcode::AUX])?;
        self.string(name.as_bytes())?;
        self.string(value.as_bytes())
    }

    /// The text of a library of functions.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn library(&mut self, text: &[u8]) -> io::Result<()> {
        self.sink.put(&[opcode::FUNCTION])?;
        self.string(text)
    }

    /// Says that the keys from here on are in database `number`.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn database(&mut self, number: u64) -> io::Result<()> {
        self.sink.put(&[opcode::SELECT])?;
        self.length(number)
    }

    /// Says how many keys the database has, and how many of them expire: a hint that lets a reader make room
    /// at once.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn sizes(&mut self, keys: u64, volatile: u64) -> io::Result<()> {
        self.sink.put(&[opcode::RESIZE])?;
        self.length(keys)?;
        self.length(volatile)
    }

    /// A key whose value is a string.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn key(&mut self, key: &[u8], value: &[u8], attributes: Attributes) -> io::Result<()> {
        self.key_alone(key, attributes)?;
        self.string(value)
    }

    /// A key whose value is a string of `len` bytes that are read a piece at a time. It is not compressed.
    ///
    /// # Errors
    /// See [`Writer::new`]; those of `value`, also if it is not that long.
    pub fn key_from(
        &mut self,
        key: &[u8],
        len: u64,
        value: &mut dyn Read,
        attributes: Attributes,
    ) -> io::Result<()> {
        self.key_alone(key, attributes)?;
        self.length(len)?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut left = len;
        loop {
            // Asked once more at its end, where a reader that checks what it reads may have something to say.
            let count = value.read(&mut piece)?;
            if count as u64 > left || count == 0 && left > 0 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if count == 0 {
                return Ok(());
            }
            self.sink.put(&piece[..count])?;
            left -= count as u64;
        }
    }

    /// A key whose value is a hash of a few short fields, which are the entries of a listpack, fields and
    /// values in turn.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn hash(
        &mut self,
        key: &[u8],
        listpack: &mut ListpackBuilder,
        attributes: Attributes,
    ) -> io::Result<()> {
        self.key_of(HASH_LISTPACK, key, attributes)?;
        self.string(listpack.listpack())
    }

    /// A key whose value is a set of a few integers, which ascend.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn integers(
        &mut self,
        key: &[u8],
        integers: &[i64],
        attributes: Attributes,
    ) -> io::Result<()> {
        self.key_of(SET_INTSET, key, attributes)?;
        self.string(&intset_of(integers))
    }

    /// A key whose value is a collection of so many elements, which come next.
    ///
    /// # Errors
    /// See [`Writer::new`]. A collection has elements: there is no key without. The one before has not ended.
    pub fn begin(
        &mut self,
        key: &[u8],
        kind: Collection,
        elements: u64,
        attributes: Attributes,
    ) -> io::Result<()> {
        if elements == 0 || self.open.is_some() {
            return Err(misuse("a collection of no elements, or inside of another"));
        }
        self.key_of(kind.code(), key, attributes)?;
        self.length(elements)?;
        self.open = Some((kind, elements));
        Ok(())
    }

    /// A key whose value is a hash of so many fields, which come next. The first of them to expire does at
    /// this time (Unix, ms).
    ///
    /// # Errors
    /// As of [`Writer::begin`]. The file is of a version without such hashes, or the time has more than 48
    /// bits.
    pub fn begin_timed(
        &mut self,
        key: &[u8],
        elements: u64,
        first_ms: u64,
        attributes: Attributes,
    ) -> io::Result<()> {
        if elements == 0 || self.open.is_some() || !(1..TIME_END).contains(&first_ms) {
            return Err(misuse(
                "a hash of no fields, inside of another, or without a time",
            ));
        }
        if self.is_payload {
            self.version = TIMED_VERSION;
        }
        if self.version < TIMED_VERSION {
            return Err(misuse("fields that expire in a file of an earlier version"));
        }
        self.key_of(TIMED_HASH, key, attributes)?;
        self.sink.put(&first_ms.to_le_bytes())?;
        self.length(elements)?;
        self.open = Some((Collection::Hash, elements));
        self.first_ms = Some(first_ms);
        Ok(())
    }

    /// The next element of the collection.
    ///
    /// # Errors
    /// See [`Writer::new`]. There is no collection of such elements, or it has its number of them.
    pub fn element(&mut self, element: Element<'_>) -> io::Result<()> {
        let Some((kind, left @ 1..)) = self.open else {
            return Err(misuse("an element that no collection has room for"));
        };
        match (kind, element) {
            (Collection::List | Collection::Set, Element::String(string)) => self.string(string)?,
            (
                Collection::Hash,
                Element::Field {
                    field,
                    value,
                    expiry_ms,
                },
            ) => {
                self.time(expiry_ms)?;
                self.string(field)?;
                self.string(value)?;
            }
            (Collection::SortedSet, Element::Member { member, score }) if !score.is_nan() => {
                self.string(member)?;
                self.sink.put(&score.to_le_bytes())?;
            }
            _ => return Err(misuse("an element of another kind")),
        }
        self.open = Some((kind, left - 1));
        Ok(())
    }

    /// When a field expires, in a hash whose fields may.
    fn time(&mut self, expiry_ms: Option<u64>) -> io::Result<()> {
        match (self.first_ms, expiry_ms) {
            (None, None) => Ok(()),
            (Some(_), None) => self.length(0),
            (Some(first), Some(time)) if (first..TIME_END).contains(&time) => {
                self.length(time - first + 1)
            }
            _ => Err(misuse(
                "a field that expires before the first, or among others",
            )),
        }
    }

    /// The end of the collection.
    ///
    /// # Errors
    /// See [`Writer::new`]. It has not as many elements as it began with.
    pub fn end(&mut self) -> io::Result<()> {
        self.first_ms = None;
        match self.open.take() {
            Some((_, 0)) => Ok(()),
            _ => Err(misuse("the end of a collection that lacks elements")),
        }
    }

    /// A key, with what it has beside its value.
    fn key_alone(&mut self, key: &[u8], attributes: Attributes) -> io::Result<()> {
        self.key_of(STRING, key, attributes)
    }

    /// A key whose value is of a type of the file.
    pub(crate) fn key_of(
        &mut self,
        code: u8,
        key: &[u8],
        attributes: Attributes,
    ) -> io::Result<()> {
        if self.is_payload {
            return self.sink.put(&[code]);
        }
        if let Some(expiry) = attributes.expiry_ms {
            self.sink.put(&[opcode::EXPIRY_MS])?;
            self.sink.put(&expiry.to_le_bytes())?;
        }
        if let Some(idle_s) = attributes.idle_s {
            self.sink.put(&[opcode::IDLE])?;
            self.length(idle_s)?;
        }
        if let Some(frequency) = attributes.frequency {
            self.sink.put(&[opcode::FREQUENCY, frequency])?;
        }
        self.sink.put(&[code])?;
        self.string(key)
    }

    /// Ends the file and gives back what it was written to.
    ///
    /// # Errors
    /// See [`Writer::new`].
    pub fn finish(mut self) -> io::Result<W> {
        self.sink.put(&[opcode::END])?;
        let checksum = self.sink.checksum()?;
        self.sink.put(&checksum.to_le_bytes())?;
        self.sink.finish()
    }

    pub(crate) fn length(&mut self, len: u64) -> io::Result<()> {
        match len {
            ..0x40 => self.sink.put(&[length::BITS_6 | len as u8]),
            0x40..0x4000 => self
                .sink
                .put(&(u16::from(length::BITS_14) << 8 | len as u16).to_be_bytes()),
            0x4000..0x1_0000_0000 => {
                self.sink.put(&[length::BITS_32])?;
                self.sink.put(&(len as u32).to_be_bytes())
            }
            _ => {
                self.sink.put(&[length::BITS_64])?;
                self.sink.put(&len.to_be_bytes())
            }
        }
    }

    pub(crate) fn string(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(number) = small_integer(bytes) {
            return self.integer(number);
        }
        if bytes.len() > COMPRESSED_FROM
            && bytes.len() <= lzf::INPUT_MAX
            && self.compresses
            && self.is_worth_a_try()
        {
            let mut compressor = self.compressor.take().unwrap_or_default();
            let done = self.compressed(bytes, &mut compressor);
            self.compressor = Some(compressor);
            if done? {
                self.futile = 0;
                return Ok(());
            }
        }
        self.length(bytes.len() as u64)?;
        self.sink.put(bytes)
    }

    /// Whether the next string is to be compressed. Counts it among those that did not become shorter.
    fn is_worth_a_try(&mut self) -> bool {
        self.futile = self.futile.wrapping_add(1);
        self.futile <= FUTILE_MOST || self.futile.is_multiple_of(FUTILE_TRIES)
    }

    /// A number, in as few bytes as it takes.
    fn integer(&mut self, number: i32) -> io::Result<()> {
        if let Ok(number) = i8::try_from(number) {
            self.sink.put(&[length::ENCODED | encoding::INT8])?;
            self.sink.put(&number.to_le_bytes())
        } else if let Ok(number) = i16::try_from(number) {
            self.sink.put(&[length::ENCODED | encoding::INT16])?;
            self.sink.put(&number.to_le_bytes())
        } else {
            self.sink.put(&[length::ENCODED | encoding::INT32])?;
            self.sink.put(&number.to_le_bytes())
        }
    }

    /// A string in compressed form. Returns false, and writes nothing, if that is hardly shorter.
    fn compressed(&mut self, bytes: &[u8], compressor: &mut Compressor) -> io::Result<bool> {
        let most = bytes.len() - SAVED_MIN;
        let kept = &mut self.compressed;
        kept.clear();
        let mut len = 0;
        let flow = compressor.compress(bytes, |piece| {
            len += piece.len();
            if len > most {
                return ControlFlow::Break(());
            }
            if len <= KEPT_MAX {
                kept.extend_from_slice(piece);
            }
            ControlFlow::Continue(())
        });
        if flow.is_break() {
            return Ok(false);
        }
        self.sink.put(&[length::ENCODED | encoding::LZF])?;
        self.length(len as u64)?;
        self.length(bytes.len() as u64)?;
        if len <= KEPT_MAX {
            self.sink.put(&self.compressed)?;
            return Ok(true);
        }
        let mut written = Ok(());
        let _ = compressor.compress(bytes, |piece| {
            written = self.sink.put(piece);
            if written.is_err() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        written.map(|()| true)
    }
}

/// The number that a string is the one spelling of, if it has at most 32 bits.
fn small_integer(bytes: &[u8]) -> Option<i32> {
    let digits = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let canonical = match digits {
        [b'0'] => bytes.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.len() < 10 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    str::from_utf8(bytes).ok()?.parse().ok()
}

/// What is no file if it is written.
fn misuse(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
