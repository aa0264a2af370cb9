//! Bytes from a disk or from a client: whether they are a run.

use super::layout::{
    BARE, DEQUE, EXPIRING, EXPIRY_LEN, FEW, GROUP, HEADER, INTEGERS, ITEMS_MAX, NUMBERED, PAIRS,
    TAGGED, has_tags, tag_at,
};
use super::packed::{Item, Run, expiry_at, tag};
use crate::collection::cell::{self, Cell};

/// Why bytes are no run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// They end too soon, or go on behind the last item.
    Length,
    /// A flag that this build does not know, or another byte where there is a zero.
    Flags,
    /// A tag is not its name's.
    Tag,
    /// An offset is not its item's.
    Offset,
    /// A cell is none, or a name has not its shortest form.
    Item,
    /// An expiry where the run says that there is none.
    Expiry,
    /// Two items have one name, or integers do not ascend.
    Twice,
    /// It is a run, but not one of this kind of collection.
    Kind,
    /// An item does not belong into the leaf, or to the place where it is.
    Order,
}

impl From<Damage> for std::io::Error {
    fn from(damage: Damage) -> std::io::Error {
        let text = format!("a part of a collection makes no sense ({damage:?})");
        std::io::Error::new(std::io::ErrorKind::InvalidData, text)
    }
}

impl<'a> Run<'a> {
    /// A run from bytes of which nothing is known. Takes no more memory than fourteen times theirs.
    pub fn check(bytes: &'a [u8]) -> Result<Run<'a>, Damage> {
        Run::check_items(bytes, |_| Ok(()))
    }

    /// [`Run::check`] that shows each item, and ends with the first damage that `visit` finds. An item is
    /// shown before those that follow are checked.
    #[inline]
    pub(in crate::collection) fn check_items(
        bytes: &'a [u8],
        mut visit: impl FnMut(&Item<'a>) -> Result<(), Damage>,
    ) -> Result<Run<'a>, Damage> {
        let header = bytes.first_chunk::<HEADER>().ok_or(Damage::Length)?;
        let whole = match header[2] {
            flags if flags & INTEGERS != 0 => Run { bytes }.check_integers()?,
            flags if flags & DEQUE != 0 => Run::check_cells(bytes, &mut |_| Ok(()))?,
            _ => return Run::check_cells(bytes, &mut visit),
        };
        whole.iter().try_for_each(|item| visit(&item))?;
        Ok(whole)
    }

    /// [`Run::check_items`] of a run of cells. Of a deque no item is shown.
    #[inline]
    fn check_cells(
        bytes: &'a [u8],
        visit: &mut impl FnMut(&Item<'a>) -> Result<(), Damage>,
    ) -> Result<Run<'a>, Damage> {
        let header = bytes.first_chunk::<HEADER>().ok_or(Damage::Length)?;
        if header[2] & !(TAGGED | PAIRS | EXPIRING | BARE | NUMBERED | DEQUE) != 0 || header[3] != 0
        {
            return Err(Damage::Flags);
        }
        if header[2] & NUMBERED != 0 && header[2] & !DEQUE != NUMBERED {
            return Err(Damage::Flags);
        }
        let run = Run { bytes };
        if header[2] & DEQUE != 0 {
            return run.check_deque();
        }
        let (count, flags, items_at) = (run.count(), run.flags(), run.items_at());
        if items_at > bytes.len() || flags & BARE != 0 && count > FEW {
            return Err(Damage::Length);
        }
        if count > GROUP && bytes.len() - items_at > ITEMS_MAX {
            return Err(Damage::Length);
        }
        let mut names = Names::new(if flags & TAGGED != 0 { count } else { 0 });
        let mut at = items_at;
        for index in 0..count {
            if index % GROUP == 0 && flags & BARE == 0 && run.offset(index / GROUP) != at - items_at
            {
                return Err(Damage::Offset);
            }
            let mut expiry = None;
            if bytes.get(at) == Some(&cell::EXPIRY) {
                if flags & EXPIRING == 0 {
                    return Err(Damage::Expiry);
                }
                if bytes.len() - at < EXPIRY_LEN {
                    return Err(Damage::Item);
                }
                expiry = Some(expiry_at(bytes, at));
                at += EXPIRY_LEN;
            }
            let name_at = at;
            let (name, end) = Cell::check(bytes, at, true).map_err(|_| Damage::Item)?;
            at = end;
            let mut value = None;
            if flags & PAIRS != 0 {
                let (cell, end) = Cell::check(bytes, at, false).map_err(|_| Damage::Item)?;
                (value, at) = (Some(cell), end);
            }
            if flags & TAGGED != 0 {
                let tag = tag(name);
                if has_tags(flags) && bytes[tag_at(flags, index)] != tag {
                    return Err(Damage::Tag);
                }
                if names.add(bytes, name, (tag, name_at)) {
                    return Err(Damage::Twice);
                }
            }
            visit(&Item {
                name,
                value,
                expiry,
            })?;
        }
        if at != bytes.len() {
            return Err(Damage::Length);
        }
        if flags & TAGGED != 0 {
            let mut free = count..count.next_multiple_of(GROUP);
            if has_tags(flags) && free.any(|index| bytes[tag_at(flags, index)] != 0) {
                return Err(Damage::Tag);
            }
            if names.looks == 0 && names.any_twice(bytes) {
                return Err(Damage::Twice);
            }
        }
        Ok(run)
    }

    /// [`Run::check`] of bytes that have the flag of a deque. A log has none.
    fn check_deque(self) -> Result<Run<'a>, Damage> {
        let count = self.count();
        if self.flags() & NUMBERED == 0 {
            return Err(Damage::Flags);
        }
        let least = Run::size_of(NUMBERED, count, count);
        if self.bytes.len() < least || count > 1 && self.bytes.len() > ITEMS_MAX {
            return Err(Damage::Length);
        }
        let mut at = self.places().first();
        for _ in 0..count {
            (_, at) = Cell::check(self.bytes, at, true).map_err(|_| Damage::Item)?;
        }
        if at != self.bytes.len() {
            return Err(Damage::Length);
        }
        match self.has_offsets() {
            true => Ok(self),
            false => Err(Damage::Offset),
        }
    }

    /// Whether offsets, of bytes of which nothing is known, are those of a deque. Its items are looked at.
    fn has_offsets(self) -> bool {
        let (count, places) = (self.count(), self.places());
        let (mut at, phase) = (places.first(), places.phase());
        let mut is_right = at >= places.gap_at();
        for index in 0..count {
            if index == 0 || (phase + index).is_multiple_of(GROUP) {
                is_right &= places.offset((phase + index) / GROUP) == at;
            }
            at = self.item_end(at);
        }
        is_right
    }

    /// [`Run::check`] of bytes that have the flag of a run of integers.
    fn check_integers(self) -> Result<Run<'a>, Damage> {
        let integers = self.integers();
        if self.flags() != TAGGED | INTEGERS || !(1..=8).contains(&integers.width()) {
            return Err(Damage::Flags);
        }
        if !integers.has_its_length() || self.bytes.len() - self.items_at() > ITEMS_MAX {
            return Err(Damage::Length);
        }
        match integers.ascend() {
            true => Ok(self),
            false => Err(Damage::Twice),
        }
    }
}

/// The names of a run, to find one that comes twice. Names with different tags are different, so only names
/// with the same tag are compared. If too many have the same tag, all names are sorted at the end instead.
struct Names {
    /// Of each tag the last name.
    last: [u16; 1 << u8::BITS],
    names: Vec<Earlier>,
    /// How many names may still be compared.
    looks: usize,
}

/// A name of a run.
struct Earlier {
    at: usize,
    /// The name before it that has its tag.
    before: u16,
}

const NONE: u16 = u16::MAX;

impl Names {
    fn new(count: usize) -> Names {
        Names {
            last: [NONE; 1 << u8::BITS],
            names: Vec::with_capacity(count),
            looks: count * 4,
        }
    }

    /// Adds a name that begins at `at`. Returns whether the same name was found among those before it. Once
    /// `looks` names were compared, no more are.
    #[inline]
    fn add(&mut self, bytes: &[u8], name: Cell<'_>, (tag, at): (u8, usize)) -> bool {
        let last = &mut self.last[usize::from(tag)];
        let before = std::mem::replace(last, self.names.len() as u16);
        let mut next = before;
        while next != NONE && self.looks > 0 {
            let earlier = &self.names[usize::from(next)];
            if Cell::decode(bytes, earlier.at).0 == name {
                return true;
            }
            next = earlier.before;
            self.looks -= 1;
        }
        self.names.push(Earlier { at, before });
        false
    }

    /// Whether a name comes twice, by sorting all names.
    fn any_twice(&self, bytes: &[u8]) -> bool {
        let name = |earlier: &Earlier| Cell::decode(bytes, earlier.at).0;
        let mut names: Vec<Cell<'_>> = self.names.iter().map(name).collect();
        names.sort_unstable_by_key(|&name| match name {
            Cell::Int(integer) => (Some(integer), &[][..]),
            Cell::Bytes(bytes) => (None, bytes),
        });
        names.windows(2).any(|pair| pair[0] == pair[1])
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Names, tag};

    /// Whether the names of a list are found to come twice.
    fn comes_twice(names: &[Cell<'_>]) -> bool {
        let mut bytes = vec![0; names.iter().map(|name| name.size()).sum()];
        let (mut all, mut at) = (Names::new(names.len()), 0);
        let mut is_found = false;
        for &name in names {
            let end = at + name.encode(&mut bytes[at..]);
            is_found |= all.add(&bytes, name, (tag(name), at));
            at = end;
        }
        is_found || all.looks == 0 && all.any_twice(&bytes)
    }

    #[test]
    fn a_name_that_comes_twice_is_found_among_many_of_one_tag() {
        let same = (0..).map(Cell::Int).filter(|&name| tag(name) == 7);
        let mut names: Vec<_> = same.take(500).collect();
        assert!(!comes_twice(&names));
        names.push(names[3]);
        assert!(comes_twice(&names));
        names.rotate_right(400);
        assert!(comes_twice(&names));
        let different: Vec<_> = (0..5000).map(Cell::Int).collect();
        assert!(!comes_twice(&different));
        assert!(comes_twice(&[different, vec![Cell::Int(4999)]].concat()));
    }
}
