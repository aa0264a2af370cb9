//! The libraries of the server, and their functions by name.
//!
//! Invariants:
//! 1. The name of a function, without regard to case, is that of one function of one library.
//! 2. A worker does not use libraries of an earlier generation: every change begins a new one.
//! 3. A change is made while no other worker is inside a turn.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use parking_lot::RwLock;

use super::{Library, Script};
use crate::request::Failure;

/// The record of a library in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    /// Its address, as bits.
    pub(crate) at: NonZeroU64,
    /// Bytes of the text.
    pub(crate) bytes: usize,
}

/// The way with libraries that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// A library of the same name is an error.
    Refused,
    /// The new one takes its place.
    Replaced,
    /// All are removed first.
    Removed,
}

/// Hears the name of each library that has changed, and the record of its earlier text.
pub(crate) type Hears<'h> = &'h mut dyn FnMut(&str, Option<Recorded>);

/// See the module.
#[derive(Default)]
pub(crate) struct Libraries {
    kept: RwLock<Kept>,
    generation: AtomicU64,
}

#[derive(Clone, Default)]
struct Kept {
    by_name: BTreeMap<String, Entry>,
    /// By names in small letters.
    functions: HashMap<Vec<u8>, Arc<Script>>,
}

#[derive(Clone)]
struct Entry {
    library: Arc<Library>,
    place: Option<NonZeroU64>,
}

impl Entry {
    fn recorded(&self) -> Option<Recorded> {
        let bytes = self.library.text.len();
        self.place.map(|at| Recorded { at, bytes })
    }
}

/// Numbers of libraries and functions, and bytes of texts.
pub(crate) struct LibrarySizes {
    pub(crate) libraries: usize,
    pub(crate) functions: usize,
    pub(crate) bytes: usize,
}

impl Kept {
    fn remove(&mut self, name: &str, hears: Hears<'_>) {
        if let Some(entry) = self.by_name.remove(name) {
            let of_others = |script: &Arc<Script>| {
                let library = script.library.as_ref();
                !library.is_some_and(|library| Arc::ptr_eq(library, &entry.library))
            };
            self.functions.retain(|_, script| of_others(script));
            hears(name, entry.recorded());
        }
    }

    fn add(
        &mut self,
        library: Arc<Library>,
        replaces: bool,
        hears: Hears<'_>,
    ) -> Result<(), Failure> {
        let name = &library.name;
        if !replaces && self.by_name.contains_key(name) {
            return Err(Failure::new(format!("ERR Library '{name}' already exists")));
        }
        let is_new = !self.by_name.contains_key(name);
        self.remove(name, hears);
        for (number, listed) in library.functions.iter().enumerate() {
            let key = listed.name.to_ascii_lowercase().into_bytes();
            let script = Arc::new(Script::of_library(&library, number));
            if self.functions.insert(key, script).is_some() {
                let name = &listed.name;
                return Err(Failure::new(format!("ERR Function {name} already exists")));
            }
        }
        if is_new {
            hears(name, None);
        }
        let entry = Entry {
            library: Arc::clone(&library),
            place: None,
        };
        self.by_name.insert(library.name.clone(), entry);
        Ok(())
    }
}

impl Libraries {
    /// The number of the generation.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(SeqCst)
    }

    /// A function by its name.
    pub(crate) fn function(&self, name: &[u8]) -> Option<Arc<Script>> {
        let kept = self.kept.read();
        kept.functions.get(&name.to_ascii_lowercase()).cloned()
    }

    /// All libraries, in order of their names.
    pub(crate) fn all(&self) -> Vec<Arc<Library>> {
        let kept = self.kept.read();
        let libraries = kept.by_name.values();
        libraries.map(|entry| Arc::clone(&entry.library)).collect()
    }

    /// Their numbers, and bytes of their texts.
    pub(crate) fn sizes(&self) -> LibrarySizes {
        let kept = self.kept.read();
        let bytes = kept.by_name.values().map(|entry| entry.library.text.len());
        LibrarySizes {
            libraries: kept.by_name.len(),
            functions: kept.functions.len(),
            bytes: bytes.sum(),
        }
    }

    /// Adds libraries: all or none.
    ///
    /// # Errors
    /// One is there already, or one of its functions is another library's.
    pub(crate) fn add(
        &self,
        libraries: Vec<Arc<Library>>,
        existing: Existing,
        hears: Hears<'_>,
    ) -> Result<(), Failure> {
        let mut kept = self.kept.write();
        let mut next = kept.clone();
        let mut changed = BTreeMap::new();
        let note: Hears<'_> = &mut |name, place| {
            changed.entry(name.to_owned()).or_insert(place);
        };
        if existing == Existing::Removed {
            for name in kept.by_name.keys() {
                next.remove(name, note);
            }
        }
        for (at, library) in libraries.iter().enumerate() {
            // One that is twice among the new ones is an error in any case.
            let is_own = |other: &Arc<Library>| other.name == library.name;
            let replaces = existing == Existing::Replaced && !libraries[..at].iter().any(is_own);
            next.add(Arc::clone(library), replaces, note)?;
        }
        *kept = next;
        self.generation.fetch_add(1, SeqCst);
        drop(kept);
        for (name, place) in changed {
            hears(&name, place);
        }
        Ok(())
    }

    /// Removes a library. Returns whether there was one.
    pub(crate) fn remove(&self, name: &[u8], hears: Hears<'_>) -> bool {
        let mut kept = self.kept.write();
        let name = String::from_utf8_lossy(name);
        let is_there = kept.by_name.contains_key(&*name);
        kept.remove(&name, hears);
        self.generation.fetch_add(1, SeqCst);
        is_there
    }

    /// Removes all.
    pub(crate) fn clear(&self, hears: Hears<'_>) {
        let mut kept = self.kept.write();
        let old = std::mem::take(&mut *kept);
        self.generation.fetch_add(1, SeqCst);
        drop(kept);
        for (name, entry) in &old.by_name {
            hears(name, entry.recorded());
        }
    }

    /// A library and its record in the log.
    pub(crate) fn recorded(&self, name: &[u8]) -> Option<(Arc<Library>, Option<Recorded>)> {
        let kept = self.kept.read();
        let entry = kept.by_name.get(std::str::from_utf8(name).ok()?)?;
        Some((Arc::clone(&entry.library), entry.recorded()))
    }

    /// Notes the record of a library, unless another one has taken its place.
    pub(crate) fn set_place(&self, library: &Arc<Library>, place: NonZeroU64) {
        let mut kept = self.kept.write();
        if let Some(entry) = kept.by_name.get_mut(&library.name)
            && Arc::ptr_eq(&entry.library, library)
        {
            entry.place = Some(place);
        }
    }

    /// Calls `record` with each library that has no record, for its address.
    pub(crate) fn record_missing(&self, record: &mut dyn FnMut(&Library) -> NonZeroU64) {
        let mut kept = self.kept.write();
        for entry in kept.by_name.values_mut() {
            if entry.place.is_none() {
                entry.place = Some(record(&entry.library));
            }
        }
    }

    /// Forgets the records of all: there is no log any more.
    pub(crate) fn forget_places(&self) {
        let mut kept = self.kept.write();
        kept.by_name
            .values_mut()
            .for_each(|entry| entry.place = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::LoadBounds;

    fn library(name: &str, functions: &str) -> Arc<Library> {
        let mut text = format!("#!lua name={name}\n");
        for function in functions.split(' ') {
            text += &format!("redis.register_function('{function}', function() end)\n");
        }
        let learned = Library::learn(&Arc::from(text.as_bytes()), LoadBounds::WIDE, &|| false);
        learned.ok().expect("it is a library")
    }

    /// Adds some. Returns the names that have changed, or the error.
    fn add(all: &Libraries, new: &[(&str, &str)], existing: Existing) -> Result<String, String> {
        let new = new.iter().map(|(name, functions)| library(name, functions));
        let mut changed = Vec::new();
        let mut hears = |name: &str, _: Option<Recorded>| changed.push(name.to_owned());
        match all.add(new.collect(), existing, &mut hears) {
            Ok(()) => Ok(changed.join(" ")),
            Err(failure) => Err(String::from_utf8_lossy(&failure.0).into_owned()),
        }
    }

    fn functions(all: &Libraries) -> String {
        let mut names: Vec<_> = all.kept.read().functions.keys().cloned().collect();
        names.sort();
        String::from_utf8(names.join(&b' ')).expect("names are text")
    }

    #[test]
    fn libraries_are_added_all_or_none() {
        use Existing::{Refused, Removed, Replaced};
        let all = Libraries::default();
        assert_eq!(add(&all, &[("a", "F g")], Refused), Ok("a".into()));
        let known = |text: &str| Err(text.to_owned());
        assert_eq!(
            add(&all, &[("a", "x")], Refused),
            known("ERR Library 'a' already exists")
        );
        assert_eq!(
            add(&all, &[("b", "h"), ("c", "f")], Refused),
            known("ERR Function f already exists")
        );
        assert_eq!(functions(&all), "f g");
        assert_eq!(
            add(&all, &[("a", "h"), ("b", "f")], Replaced),
            Ok("a b".into())
        );
        assert_eq!(functions(&all), "f h");
        assert_eq!(
            add(&all, &[("c", "i"), ("c", "j")], Replaced),
            known("ERR Library 'c' already exists")
        );
        assert_eq!(
            add(&all, &[("d", "h"), ("a", "k")], Removed),
            Ok("a b d".into())
        );
        assert_eq!(functions(&all), "h k");
        let before = all.generation();
        assert!(all.function(b"H").is_some() && all.function(b"f").is_none());
        assert!(all.remove(b"d", &mut |_, _| {}) && !all.remove(b"d", &mut |_, _| {}));
        all.clear(&mut |name, _| assert_eq!(name, "a"));
        assert_eq!(functions(&all), "");
        assert!(all.generation() > before);
    }

    #[test]
    fn a_record_is_that_of_its_own_text() {
        let all = Libraries::default();
        let (old, new) = (library("a", "f"), library("a", "g"));
        let place = NonZeroU64::new(8).expect("it is not 0");
        let hears: Hears<'_> = &mut |_, _| {};
        all.add(vec![Arc::clone(&old)], Existing::Refused, hears)
            .expect("there is none");
        all.set_place(&old, place);
        let recorded = || all.recorded(b"a").and_then(|(_, record)| record);
        let at = Recorded {
            at: place,
            bytes: old.text.len(),
        };
        assert_eq!(recorded(), Some(at));
        let mut heard = None;
        all.add(
            vec![Arc::clone(&new)],
            Existing::Replaced,
            &mut |_, record| heard = record,
        )
        .expect("it replaces");
        assert_eq!(heard, Some(at));
        all.set_place(&old, place);
        assert_eq!(recorded(), None);
    }
}
