//! Collections that a file holds in one string: listpack, ziplist, intset, zipmap.
//!
//! Redis keeps small collections in memory in these forms and writes them as they are. What each looks like
//! stands in its module. They are read a cell at a time and nothing in them is believed: each length is
//! checked against the bytes that are there before it is used, what is said twice has to agree (the lengths
//! of entries forwards and backwards, the number of cells, the place of the last one), and the end has to be
//! where the bytes end. Each byte is looked at once. No form can hold another. Listpacks are made here, too.

mod build;
mod cell;
mod intset;
mod listpack;
#[cfg(test)]
mod tests;
mod ziplist;
mod zipmap;

pub use build::ListpackBuilder;
pub use cell::{Cell, Flaw};
use intset::Intset;
pub(crate) use intset::intset_of;
use listpack::Listpack;
use ziplist::Ziplist;
use zipmap::Zipmap;

/// Which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Since Redis 7 the form of all small collections, and of a list's nodes.
    Listpack,
    /// The same of Redis 2.2 to 6.2.
    Ziplist,
    /// Integers in ascending order.
    Intset,
    /// Small hashes of Redis 2.2 and before.
    Zipmap,
}

impl Form {
    /// With its article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Form::Listpack => "a listpack",
            Form::Ziplist => "a ziplist",
            Form::Intset => "an intset",
            Form::Zipmap => "a zipmap",
        }
    }
}

/// A place in a string of some form. The bytes stay with whoever has them, and are given anew each time, the
/// same ones.
#[derive(Clone, Debug)]
pub struct Cursor(Place);

#[derive(Clone, Debug)]
enum Place {
    Listpack(Listpack),
    Ziplist(Ziplist),
    Intset(Intset),
    Zipmap(Zipmap),
}

impl Cursor {
    /// Begins to read.
    ///
    /// # Errors
    /// The bytes do not begin as they should, or are not as many as they say.
    pub fn new(form: Form, bytes: &[u8]) -> Result<Cursor, Flaw> {
        Ok(Cursor(match form {
            Form::Listpack => Place::Listpack(Listpack::new(bytes)?),
            Form::Ziplist => Place::Ziplist(Ziplist::new(bytes)?),
            Form::Intset => Place::Intset(Intset::new(bytes)?),
            Form::Zipmap => Place::Zipmap(Zipmap::new(bytes)?),
        }))
    }

    /// The next cell, or `None` once the end was reached and found right.
    ///
    /// # Errors
    /// The bytes are not as they should be. Nothing behind is known.
    pub fn next(&mut self, bytes: &[u8]) -> Result<Option<Cell>, Flaw> {
        match &mut self.0 {
            Place::Listpack(place) => place.next(bytes),
            Place::Ziplist(place) => place.next(bytes),
            Place::Intset(place) => place.next(bytes),
            Place::Zipmap(place) => place.next(bytes),
        }
    }

    /// How many cells there are, if the bytes say so: only believed once all of them were read.
    pub fn claimed(&self) -> Option<u64> {
        match &self.0 {
            Place::Listpack(place) => place.count.claimed(),
            Place::Ziplist(place) => place.count.claimed(),
            Place::Intset(place) => Some(place.claimed()),
            Place::Zipmap(place) => place.claimed(),
        }
    }
}
