//! Strings of a locked shard. Only a string's value is bytes: a command asks for the key's [`Text`] first. A
//! key of another kind is `WRONGTYPE`.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut, Range};

use keyspace::{
    COLD_MIN_BYTES, ChangeKind, ColdValue, Encoding, Form, Key, Kind, LargeValue, New, Stored,
};

use super::{Entry, Shard};
use crate::observe::notify::Event;
use crate::request::{Failure, Reply, failure};

/// An entry of a locked shard that is a string.
pub(crate) struct Text<'g, 'a>(Entry<'g, 'a>);

impl<'g, 'a> Entry<'g, 'a> {
    /// Answers with the value of a string, wherever it is.
    ///
    /// # Errors
    /// It is no string, or cannot be read.
    #[inline(always)]
    pub(crate) fn answer_string(self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        match self.inner.plain() {
            Some(bytes) => {
                reply.one_bulk(bytes);
                Ok(())
            }
            None => self.answer_other(reply),
        }
    }

    /// [`Entry::answer_string`] for one of many values, within the limit of the reply.
    #[inline(always)]
    pub(crate) fn answer_string_of_many(self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        match self.inner.plain() {
            Some(bytes) => {
                reply.bulk(bytes);
                Ok(())
            }
            None => self.answer_other(reply),
        }
    }

    /// [`Entry::answer_string`] of what is not inside the entry.
    #[inline(never)]
    fn answer_other(self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        self.string()?.answer(reply)
    }

    /// The entry as a string.
    ///
    /// # Errors
    /// It is of another kind.
    #[inline(always)]
    pub(crate) fn string(self) -> Result<Text<'g, 'a>, Failure> {
        match self.inner.is_string() {
            true => Ok(Text(self)),
            false => Err(wrong_type()),
        }
    }
}

/// The error, as a cold call: its making stays out of the hot path.
#[cold]
fn wrong_type() -> Failure {
    failure::WRONG_TYPE
}

impl Entry<'_, '_> {
    /// The name that OBJECT ENCODING has for how Redis would hold the value. Of a string it follows from the
    /// bytes; of any other kind from its form: which limits of the packed encodings were ever passed.
    pub(crate) fn encoding(&self) -> &'static str {
        let form = self.inner.value_type().form;
        let is_packed = form == Form::Whole;
        match self.kind() {
            Kind::String => self.string_encoding(),
            Kind::List if is_packed => "listpack",
            Kind::List => "quicklist",
            Kind::Hash if is_packed && self.inner.as_ref().is_expiring() => "listpackex",
            Kind::Set if is_packed => "intset",
            Kind::Set if form == Form::Decimal => "listpack",
            Kind::Hash | Kind::SortedSet if is_packed => "listpack",
            Kind::Hash | Kind::Set => "hashtable",
            Kind::SortedSet => "skiplist",
            Kind::Stream => "stream",
        }
    }

    /// A cold value is `raw`, for its length says so; unless tests let short ones leave memory.
    fn string_encoding(&self) -> &'static str {
        let is_short = self.value_len() < COLD_MIN_BYTES;
        let encoding = if is_short
            && self.cold().is_some()
            && let Ok(bytes) = self.store.persistence.bytes_now(self.inner.as_ref())
        {
            Encoding::of(self.inner.value_type().form, &bytes)
        } else {
            self.inner.encoding()
        };
        match encoding {
            Encoding::Int => "int",
            Encoding::Embstr => "embstr",
            Encoding::Raw => "raw",
        }
    }
}

impl<'a> Shard<'a> {
    /// [`Shard::read`] for a command on strings.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline(always)]
    pub(crate) fn read_string(&mut self, key: Key<'_>) -> Result<Option<Text<'_, 'a>>, Failure> {
        match self.read(key) {
            None => Ok(None),
            Some(entry) => entry.string().map(Some),
        }
    }

    /// [`Shard::find`] for a command on strings.
    ///
    /// # Errors
    /// The key is of another kind.
    #[inline(always)]
    pub(crate) fn find_string(&mut self, key: Key<'_>) -> Result<Option<Text<'_, 'a>>, Failure> {
        match self.find(key) {
            None => Ok(None),
            Some(entry) => entry.string().map(Some),
        }
    }

    /// Makes the value of a key, empty if it is missing, at least as long as `part` reaches (zeroes are added
    /// behind), then lets `change` write to that part of it; `change` gets the whole value and says whether
    /// it did. Returns what else it says, and whether the key is another than before: it is new, or its value
    /// is longer or was written to.
    ///
    /// # Errors
    /// It is no string.
    pub(crate) fn grow<R>(
        &mut self,
        key: Key<'_>,
        part: Range<usize>,
        change: impl FnOnce(&mut [u8]) -> (R, bool),
    ) -> Result<(R, bool), Failure> {
        let before = self.find_string(key)?.map(|text| text.value_len());
        self.store
            .check_log(key, part.end.max(before.unwrap_or_default()))?;
        if before.is_none() {
            self.tell(Event::NEW, key);
            let zeroes = LargeValue::new(vec![0; part.end].into());
            self.guard.write(key, New::large(&zeroes), |_, _| None);
        }
        let mut inner = self
            .guard
            .find(key)
            .expect("it was there or has just been set");
        let len = part.end.max(inner.value_len());
        let old = inner.overwritten();
        let (result, is_written) = change(inner.resize_value(len, Form::Part));
        inner.touch();
        let is_changed = is_written || before != Some(len);
        if is_changed {
            if let Some(journal) = self.store.journal {
                journal.patched(&mut inner, old, part);
            }
            self.store.stats.sets.add(1);
            self.changed(key, ChangeKind::Written);
        }
        Ok((result, is_changed))
    }
}

impl<'g, 'a> Deref for Text<'g, 'a> {
    type Target = Entry<'g, 'a>;

    #[inline(always)]
    fn deref(&self) -> &Entry<'g, 'a> {
        &self.0
    }
}

impl DerefMut for Text<'_, '_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Text<'_, '_> {
    /// The value.
    #[inline]
    pub(crate) fn value(&self) -> Stored<'_> {
        self.0.inner.value()
    }

    /// Answers with the value, wherever it is: one in a file of its own is sent from there. Any other is in
    /// memory, or the command is served with it.
    ///
    /// # Errors
    /// It is in none of these places.
    #[inline(always)]
    pub(crate) fn answer(&self, reply: &mut Reply<'_>) -> Result<(), Failure> {
        match self.0.inner.stored() {
            Ok(value) => {
                reply.value(value);
                Ok(())
            }
            Err(cold) => self.answer_part(reply, cold, 0..cold.len),
        }
    }

    /// Answers with a part of a value that has a file of its own, or with which the command is served.
    ///
    /// # Errors
    /// It is neither.
    #[cold]
    pub(crate) fn answer_part(
        &self,
        reply: &mut Reply<'_>,
        value: ColdValue,
        part: Range<u64>,
    ) -> Result<(), Failure> {
        let key = self.0.inner.as_ref().key();
        match self.0.store.served.get(key, self.0.inner.hash()) {
            Some(value) => reply.part(value, part.start as usize..part.end as usize),
            None => reply.file(self.0.store.persistence.part_of(value, part)?),
        }
        Ok(())
    }

    /// Bytes that are allocated before anything is freed when the value is made `len` bytes long.
    pub(crate) fn growth(&self, len: usize) -> usize {
        self.0.inner.growth(len)
    }

    /// Makes the value `len` bytes long (zeroes are added behind), then lets `change` write to it, in that
    /// `part` alone. `form` is how the value counts as written from here on.
    #[inline]
    pub(crate) fn update<R>(
        &mut self,
        len: usize,
        part: Range<usize>,
        form: Form,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        let journal = self.0.store.journal;
        let old = journal.and_then(|_| self.0.inner.overwritten());
        let result = change(self.0.inner.resize_value(len, form));
        if let Some(journal) = journal {
            journal.patched(&mut self.0.inner, old, part);
        }
        self.0.inner.touch();
        self.0.store.stats.sets.add(1);
        self.0.changed(ChangeKind::Written);
        result
    }

    /// [`Text::update`] of a value that keeps its length, in two parts, each of which is logged alone; the
    /// second may be empty.
    pub(crate) fn update_parts(
        &mut self,
        parts: [Range<usize>; 2],
        form: Form,
        change: impl FnOnce(&mut [u8]),
    ) {
        let (journal, len) = (self.0.store.journal, self.0.inner.value_len());
        let mut old = journal.and_then(|_| self.0.inner.overwritten());
        change(self.0.inner.resize_value(len, form));
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            if let Some(journal) = journal {
                journal.patched(&mut self.0.inner, old, part);
                old = self.0.inner.overwritten();
            }
        }
        self.0.inner.touch();
        self.0.store.stats.sets.add(1);
        self.0.changed(ChangeKind::Written);
    }

    /// The value, wherever it is; what is in the log alone is read on the spot.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn bytes_now(&self) -> Result<Cow<'_, [u8]>, Failure> {
        self.0.store.persistence.bytes_now(self.0.inner.as_ref())
    }

    /// Removes the key.
    pub(crate) fn remove(self) {
        self.0.remove();
    }
}
