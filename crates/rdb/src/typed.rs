//! Reading a file with collections, an element at a time.
//!
//! A [`TypedReader`] gives out [`Typed::Begin`], a [`Typed::Element`] for each element, and [`Typed::End`],
//! and holds no more of a collection than what the file holds in one string.
//!
//! Everything is checked but what only someone who has the whole collection can see: that no field and no
//! member comes twice. Redis refuses such a file, and takes a collection without elements for a key that is
//! not there.

use std::io::{Read, Write};
use std::ops::Range;

use crate::error::{Error, Problem};
use crate::kinds::{Collection, Element, Layout, TIME_END};
use crate::packed::{Cell, Cursor, Form};
use crate::reader::{Item, Part, Reader};
use crate::stream::groups::GroupsPlace;
use crate::stream::read::Reading;
use crate::writer::Attributes;

/// A part of a file, as [`TypedReader::next`] gives it.
#[derive(Debug, PartialEq)]
pub enum Typed<'r> {
    /// What is no collection.
    Item(Item<'r>),
    /// A key whose value is a collection. Its elements come next.
    Begin {
        /// The key.
        key: &'r [u8],
        /// What it is.
        kind: Collection,
        /// How many elements the file claims that there are, if it does at once. Not to be believed.
        claimed: Option<u64>,
        /// What the key has beside it.
        attributes: Attributes,
    },
    /// The next element of the collection.
    Element(Element<'r>),
    /// The collection has no more elements.
    End,
}

/// The collection that is being read.
struct Open {
    kind: Collection,
    layout: Layout,
    /// Elements that stand for themselves, or nodes, that are left.
    left: u64,
    /// What times are counted from, less one: 0 if they are not.
    base_ms: u64,
    /// Where in the packed string it is that was read last.
    cursor: Option<(Form, Cursor)>,
    /// Of a stream: how far it was read.
    stream: Option<Box<Reading>>,
}

/// A string of an element: in the buffer that is its own, or a part of the packed string.
type Place = Option<Range<usize>>;

/// An element without its strings.
enum Found {
    One(Place),
    /// A field, its value, and when it expires.
    Two(Place, Place, Option<u64>),
    Scored(Place, f64),
    /// A part of a stream, which is in its reading.
    Part,
}

/// Digits of a score; none that a server writes has as many.
const SCORE_DIGITS: usize = 127;

/// Reads one file with collections.
pub struct TypedReader<R> {
    reader: Reader<R>,
    /// The second string of an element; the first is in the reader's buffer for values.
    second: Vec<u8>,
    /// The elements that are in one string.
    packed: Vec<u8>,
    /// The collection that is being read.
    open: Option<Open>,
}

impl<R: Read> TypedReader<R> {
    /// As [`Reader::new`].
    ///
    /// # Errors
    /// It is no RDB file, or of a version that is not known.
    pub fn new(input: R, checksum: bool) -> Result<TypedReader<R>, Error> {
        Reader::new(input, checksum).map(TypedReader::of)
    }

    pub(crate) fn of(mut reader: Reader<R>) -> TypedReader<R> {
        reader.typed = Collection::ALL;
        TypedReader {
            reader,
            second: Vec::new(),
            packed: Vec::new(),
            open: None,
        }
    }

    /// As [`Reader::pass_unsupported`].
    pub fn pass_unsupported(&mut self) {
        self.reader.pass_unsupported();
    }

    /// From here on, only collections of these kinds are read. Any other is not supported.
    pub fn only(&mut self, kinds: &'static [Collection]) {
        self.reader.typed = kinds;
    }

    /// From here on, a longer string is an error.
    pub fn limit_strings(&mut self, bytes: u64) {
        self.reader.decoder.longest = bytes;
    }

    /// Whether the error was that of [`TypedReader::limit_strings`].
    pub fn was_too_long(&self) -> bool {
        self.reader.decoder.is_too_long
    }

    /// The version of the format.
    pub fn version(&self) -> u32 {
        self.reader.version()
    }

    /// Bytes of the file that were read.
    pub fn offset(&self) -> u64 {
        self.reader.offset()
    }

    /// Where the groups of the stream are that is being read. `None` but directly after its state.
    pub fn groups_place(&self) -> Option<GroupsPlace> {
        let stream = self.open.as_ref()?.stream.as_ref()?;
        let groups = stream.groups_ahead()?;
        Some(GroupsPlace::new(self.offset(), stream.version(), groups))
    }

    /// The next part, or `None` once the end was reached and the checksum found right. That an element was
    /// given out is no promise that the next one is right.
    ///
    /// # Errors
    /// As of [`Reader::next`]; or a collection is not as it should be.
    #[expect(
        clippy::should_implement_trait,
        reason = "a part borrows from the reader"
    )]
    pub fn next(&mut self) -> Result<Option<Typed<'_>>, Error> {
        if self.open.is_some() {
            return match self.element() {
                Ok(Some(found)) => Ok(Some(Typed::Element(self.found(&found)))),
                Ok(None) => Ok(Some(Typed::End)),
                Err(problem) => Err(self.reader.error(problem)),
            };
        }
        let part = match self.reader.next_part() {
            Ok(None) => return Ok(None),
            Ok(Some(Part::Begin(attributes, kind, layout))) => self
                .begin(kind, layout)
                .map(|()| Part::Begin(attributes, kind, layout)),
            Ok(Some(part)) => Ok(part),
            Err(problem) => Err(problem),
        };
        match part {
            Ok(Part::Begin(attributes, ..)) => Ok(Some(self.begun(attributes))),
            Ok(part) => Ok(Some(Typed::Item(self.reader.item(part)))),
            Err(problem) => Err(self.reader.error(problem)),
        }
    }

    /// Begins to read a collection.
    fn begin(&mut self, kind: Collection, layout: Layout) -> Result<(), Problem> {
        let (mut left, mut cursor, mut base_ms) = (0, None, 0);
        if let Layout::Timed { has_first: true } | Layout::TimedPacked { has_first: true } = layout
        {
            let first = self.reader.decoder.source.array("the time of a field")?;
            base_ms = time_of(u64::from_le_bytes(first))?.map_or(0, |first| first - 1);
        }
        match layout {
            Layout::Packed(form) => cursor = Some((form, self.packed(form)?)),
            Layout::TimedPacked { .. } => {
                base_ms = 0;
                cursor = Some((Form::Listpack, self.packed(Form::Listpack)?));
            }
            _ => {
                left = self
                    .reader
                    .decoder
                    .length("the number of parts of a value")?
            }
        }
        self.open = Some(Open {
            kind,
            layout,
            left,
            base_ms,
            cursor,
            stream: match layout {
                Layout::Stream(form) => Some(Box::new(Reading::new(form, left))),
                _ => None,
            },
        });
        Ok(())
    }

    fn begun(&mut self, attributes: Attributes) -> Typed<'_> {
        let open = self.open.as_ref().expect("it was begun");
        let cells = match open.layout {
            Layout::Stream(_) => 1,
            Layout::TimedPacked { .. } => open.kind.cells() + 1,
            _ => open.kind.cells(),
        };
        let claimed = match (&open.cursor, open.layout) {
            (Some((_, cursor)), _) => cursor.claimed().map(|claimed| claimed / cells),
            (None, Layout::Plain | Layout::Digits | Layout::Timed { .. } | Layout::TimedBehind) => {
                Some(open.left)
            }
            (None, _) => None,
        };
        Typed::Begin {
            key: &self.reader.first,
            kind: open.kind,
            claimed,
            attributes,
        }
    }

    /// Reads a packed string.
    fn packed(&mut self, form: Form) -> Result<Cursor, Problem> {
        self.reader.packed(&mut self.packed, form)
    }

    /// The next element; `None` at the end of the collection, which is none after that.
    fn element(&mut self) -> Result<Option<Found>, Problem> {
        let mut open = self
            .open
            .take()
            .expect("whoever asks knows that there is one");
        if let Some(mut stream) = open.stream.take() {
            let has_more = stream.next(&mut self.reader, &mut self.packed)?;
            open.stream = Some(stream);
            self.open = has_more.then_some(open);
            return Ok(has_more.then_some(Found::Part));
        }
        loop {
            if open.cursor.is_some() {
                if let Some(found) = self.packed_element(&mut open)? {
                    self.open = Some(open);
                    return Ok(Some(found));
                }
                open.cursor = None;
            }
            if open.left == 0 {
                return Ok(None);
            }
            open.left -= 1;
            let found = match open.layout {
                Layout::Plain | Layout::Digits | Layout::Timed { .. } | Layout::TimedBehind => {
                    Some(self.plain_element(&open)?)
                }
                Layout::Ziplists => {
                    open.cursor = Some((Form::Ziplist, self.packed(Form::Ziplist)?));
                    None
                }
                Layout::Listpacks => self.node(&mut open)?,
                Layout::Packed(_) | Layout::TimedPacked { .. } | Layout::Stream(_) => {
                    unreachable!("it has one string, and nothing is left")
                }
            };
            if found.is_some() {
                self.open = Some(open);
                return Ok(found);
            }
        }
    }

    /// A node of a list: its element, if it has only one.
    fn node(&mut self, open: &mut Open) -> Result<Option<Found>, Problem> {
        match self.reader.decoder.length("the form of a list's node")? {
            1 => {
                self.reader.read_second("an element")?;
                Ok(Some(Found::One(None)))
            }
            2 => {
                open.cursor = Some((Form::Listpack, self.packed(Form::Listpack)?));
                Ok(None)
            }
            other => Err(Problem::Corrupt {
                expected: "the form of a list's node",
                found: format!("the number {other}"),
            }),
        }
    }

    fn plain_element(&mut self, open: &Open) -> Result<Found, Problem> {
        match open.kind {
            Collection::List | Collection::Set => {
                self.reader.read_second("an element")?;
                Ok(Found::One(None))
            }
            Collection::Hash => {
                let expiry_ms = match open.layout {
                    Layout::Timed { .. } => {
                        let time = self.reader.decoder.length("the time of a field")?;
                        time_of(if time > 0 {
                            time.saturating_add(open.base_ms)
                        } else {
                            0
                        })?
                    }
                    _ => None,
                };
                self.reader.read_second("a field")?;
                let what = "the value of a field";
                self.reader.decoder.string(&mut self.second, what)?;
                let expiry_ms = match open.layout {
                    Layout::TimedBehind => {
                        let time = self.reader.decoder.source.array("the time of a field")?;
                        valkey_time_of(i64::from_le_bytes(time))?
                    }
                    _ => expiry_ms,
                };
                Ok(Found::Two(None, None, expiry_ms))
            }
            Collection::Stream => unreachable!("its parts are read by themselves"),
            Collection::SortedSet => {
                self.reader.read_second("a member")?;
                let score = match open.layout {
                    Layout::Digits => self.score_in_digits()?,
                    _ => f64::from_le_bytes(self.reader.decoder.source.array("a score")?),
                };
                if score.is_nan() {
                    return Err(no_score(b"no number"));
                }
                Ok(Found::Scored(None, score))
            }
        }
    }

    /// A score as Redis 2.4 wrote it.
    fn score_in_digits(&mut self) -> Result<f64, Problem> {
        match self.reader.decoder.source.byte("a score")? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => {
                let mut digits = Vec::new();
                self.reader
                    .decoder
                    .source
                    .append(u64::from(len), &mut digits, "a score")?;
                score_of(&digits)
            }
        }
    }

    /// The next element of the packed string, if it has one more.
    fn packed_element(&mut self, open: &mut Open) -> Result<Option<Found>, Problem> {
        let Some(one) = self.cell(open)? else {
            return Ok(None);
        };
        let one = place_of(one, &mut self.reader.second);
        if open.kind.cells() == 1 {
            return Ok(Some(Found::One(one)));
        }
        let other = self.cell(open)?.ok_or_else(|| Problem::Corrupt {
            expected: "the second half of an element",
            found: "the end of the collection".into(),
        })?;
        if open.kind == Collection::SortedSet {
            let score = match other {
                Cell::Number(number) => number as f64,
                Cell::Bytes(range) => score_of(&self.packed[range])?,
            };
            return Ok(Some(Found::Scored(one, score)));
        }
        let other = place_of(other, &mut self.second);
        let expiry_ms = match open.layout {
            Layout::TimedPacked { .. } => self.packed_time(open)?,
            _ => None,
        };
        Ok(Some(Found::Two(one, other, expiry_ms)))
    }

    /// The time behind a field and its value in a packed string.
    fn packed_time(&mut self, open: &mut Open) -> Result<Option<u64>, Problem> {
        match self.cell(open)? {
            Some(Cell::Number(time)) if time >= 0 => time_of(time as u64),
            Some(Cell::Number(time)) => Err(no_time(format!("the number {time}"))),
            Some(Cell::Bytes(_)) => Err(no_time("a string".into())),
            None => Err(no_time("the end of the collection".into())),
        }
    }

    fn cell(&mut self, open: &mut Open) -> Result<Option<Cell>, Problem> {
        let (form, cursor) = open.cursor.as_mut().expect("its string was read");
        cursor.next(&self.packed).map_err(|flaw| Problem::Corrupt {
            expected: form.name(),
            found: format!("{} bytes that are none: {flaw}", self.packed.len()),
        })
    }

    fn found(&self, found: &Found) -> Element<'_> {
        let second = |place: &Place| match place {
            None => &self.reader.second[..],
            Some(range) => &self.packed[range.clone()],
        };
        match found {
            Found::Part => {
                let stream = self.open.as_ref().and_then(|open| open.stream.as_ref());
                Element::Stream(stream.expect("its part was read").part())
            }
            Found::One(one) => Element::String(second(one)),
            Found::Scored(one, score) => Element::Member {
                member: second(one),
                score: *score,
            },
            Found::Two(one, other, expiry_ms) => Element::Field {
                field: second(one),
                expiry_ms: *expiry_ms,
                value: match other {
                    None => &self.second,
                    Some(range) => &self.packed[range.clone()],
                },
            },
        }
    }
}

/// Where the string of a cell is. A number is written into `buffer`.
fn place_of(cell: Cell, buffer: &mut Vec<u8>) -> Place {
    match cell {
        Cell::Bytes(range) => Some(range),
        Cell::Number(number) => {
            buffer.clear();
            write!(buffer, "{number}").expect("a vector takes everything");
            None
        }
    }
}

/// The time that a number is; none, if it is 0.
fn time_of(number: u64) -> Result<Option<u64>, Problem> {
    match number {
        0 => Ok(None),
        TIME_END.. => Err(no_time(format!("the number {number}"))),
        time => Ok(Some(time)),
    }
}

/// The time that a number of Valkey is, which takes any from 0 on. One that others do not have is thousands
/// of years away, and becomes the last that there is.
fn valkey_time_of(number: i64) -> Result<Option<u64>, Problem> {
    match number {
        -1 => Ok(None),
        ..-1 => Err(no_time(format!("the number {number}"))),
        time => Ok(Some(time.unsigned_abs().clamp(1, TIME_END - 1))),
    }
}

fn no_time(found: String) -> Problem {
    Problem::Corrupt {
        expected: "the time of a field",
        found,
    }
}

fn score_of(digits: &[u8]) -> Result<f64, Problem> {
    let text = str::from_utf8(digits)
        .ok()
        .filter(|text| text.len() <= SCORE_DIGITS);
    let score = text.and_then(|text| text.parse::<f64>().ok());
    score
        .filter(|score| !score.is_nan())
        .ok_or_else(|| no_score(digits))
}

fn no_score(digits: &[u8]) -> Problem {
    let shown = &digits[..digits.len().min(SCORE_DIGITS)];
    Problem::Corrupt {
        expected: "a score",
        found: format!("\"{}\"", shown.escape_ascii()),
    }
}

#[cfg(test)]
mod tests;
