//! Fields, values and members as cells ([`keyspace::collection::cell`]): a text that is an integer is kept as
//! one.

use keyspace::Kind;
use keyspace::collection::any::Held;
use keyspace::collection::cell::{Cell, DECIMAL_MAX, TEXT_MAX};
use keyspace::collection::run::Item;
use keyspace::collection::sorted::score_of;
use resp::reply::Writer;

use crate::request::{Args, Failure, failure};

/// The argument at an index as a field, a value or a member.
///
/// # Errors
/// It is longer than a cell can be.
#[inline]
pub(in crate::command) fn cell<'a>(args: &Args<'a>, at: usize) -> Result<Cell<'a>, Failure> {
    let text = args.get(at);
    match text.len() <= TEXT_MAX {
        true => Ok(Cell::of(text)),
        false => Err(failure::TOO_LONG),
    }
}

/// Answers with a field, a value or a member.
#[inline]
pub(in crate::command) fn write_cell(writer: &mut Writer<'_>, cell: Cell<'_>) {
    writer.bulk(cell.text(&mut [0; DECIMAL_MAX]));
}

/// Answers with the value of a field, or the score of a member, which each has.
#[inline]
pub(in crate::command) fn write_value<K: Held>(writer: &mut Writer<'_>, item: &Item<'_>) {
    match K::KIND {
        Kind::SortedSet => writer.score(score_of(item)),
        Kind::Hash => write_cell(writer, item.value.expect("a field of a hash has a value")),
        Kind::String | Kind::Set | Kind::List | Kind::Stream => {
            unreachable!("its items have no values")
        }
    }
}
