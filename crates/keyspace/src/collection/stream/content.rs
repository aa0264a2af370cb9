//! The content of an entry: its fields and their values.
//!
//! ```text
//!  content   shape | value, value, ...                       cells; the shape has the names
//!            0xff  | name, value, name, value, ...
//!  shape     name, name, ...                                 cells
//! ```
//!
//! A shape never changes while its stream is there.

use crate::collection::cell::Cell;

/// In the place of a shape's number: names come before their values.
const NO_SHAPE: u8 = 0xff;
/// Shapes of a stream, at most.
pub const SHAPES_MAX: usize = 128;
/// Bytes of the shapes of a stream, at most.
pub const SHAPE_BYTES_MAX: usize = 4096;

/// Bytes that a buffer keeps between entries, at most.
const KEPT: usize = 64 << 10;

/// A content, or the value of a shape, that is written.
#[derive(Clone, Debug, Default)]
pub struct Content(Vec<u8>);

impl Content {
    /// Without values yet. `shape`: the number of the shape that has the names.
    pub fn begin(&mut self, shape: Option<u8>) {
        self.0.clear();
        self.0.push(shape.unwrap_or(NO_SHAPE));
    }

    /// A shape without names yet.
    pub fn begin_shape(&mut self) {
        self.0.clear();
    }

    /// Adds a name, or a value.
    #[inline]
    pub fn push(&mut self, cell: Cell<'_>) {
        push(&mut self.0, cell);
    }

    /// Gives back memory of a long content.
    pub(super) fn slim(&mut self) {
        slim(&mut self.0);
    }

    /// All bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Gives back memory of a buffer that has got long.
pub(super) fn slim(bytes: &mut Vec<u8>) {
    if bytes.capacity() > KEPT {
        *bytes = Vec::new();
    }
}

/// Adds a cell at the end of these bytes.
#[inline]
pub(super) fn push(bytes: &mut Vec<u8>, cell: Cell<'_>) {
    let at = bytes.len();
    bytes.resize(at + cell.size(), 0);
    cell.encode(&mut bytes[at..]);
}

/// The fields of an entry: names and values.
#[derive(Clone, Copy, Debug)]
pub struct EntryFields<'a> {
    /// The names; `None`: they are before the values.
    names: Option<&'a [u8]>,
    values: &'a [u8],
}

/// The cell at the start of these bytes, and the bytes after it.
fn first(bytes: &[u8]) -> Option<(Cell<'_>, &[u8])> {
    if bytes.is_empty() {
        return None;
    }
    let (cell, end) = Cell::check(bytes, 0, false).ok()?;
    Some((cell, &bytes[end..]))
}

impl<'a> EntryFields<'a> {
    /// The fields in a content, of a stream of these shapes. Content of which nothing is known may have none.
    pub fn of(content: &'a [u8], shapes: &[&'a [u8]]) -> EntryFields<'a> {
        match content.split_first() {
            None => EntryFields {
                names: None,
                values: &[],
            },
            Some((&NO_SHAPE, values)) => EntryFields {
                names: None,
                values,
            },
            Some((&number, values)) => EntryFields {
                names: Some(shapes.get(usize::from(number)).copied().unwrap_or(&[])),
                values,
            },
        }
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.count()
    }

    /// Whether there are none.
    pub fn is_empty(mut self) -> bool {
        self.next().is_none()
    }
}

impl<'a> Iterator for EntryFields<'a> {
    type Item = (Cell<'a>, Cell<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Cell<'a>, Cell<'a>)> {
        let name = match &mut self.names {
            Some(names) => {
                let (name, rest) = first(names)?;
                *names = rest;
                name
            }
            None => {
                let (name, rest) = first(self.values)?;
                self.values = rest;
                name
            }
        };
        let (value, rest) = first(self.values)?;
        self.values = rest;
        Some((name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_with_and_without_a_shape() {
        let pairs = [("temp", "21"), ("", "a text"), ("7", "")].map(|(name, value)| {
            let of = |text: &'static str| Cell::of(text.as_bytes());
            (of(name), of(value))
        });
        let (mut shape, mut content) = (Content::default(), Content::default());
        shape.begin_shape();
        content.begin(Some(1));
        for (name, value) in pairs {
            shape.push(name);
            content.push(value);
        }
        let fields = EntryFields::of(content.bytes(), &[b"other", shape.bytes()]);
        assert_eq!(fields.collect::<Vec<_>>(), pairs);
        assert_eq!(fields.len(), 3);
        // A shape that is not there, and no content at all.
        assert!(EntryFields::of(content.bytes(), &[b"other"]).is_empty());
        assert!(EntryFields::of(b"", &[]).is_empty());
        content.begin(None);
        for (name, value) in pairs {
            content.push(name);
            content.push(value);
        }
        assert_eq!(
            EntryFields::of(content.bytes(), &[]).collect::<Vec<_>>(),
            pairs
        );
        for cut in 0..content.bytes().len() {
            assert!(EntryFields::of(&content.bytes()[..cut], &[]).len() <= 2);
        }
    }
}
