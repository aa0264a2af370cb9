//! Scripts by the SHA-1 of their texts.
//!
//! Invariants:
//! 1. A script that SCRIPT LOAD has brought stays until SCRIPT FLUSH. Of those that EVAL has brought
//!    [`SCRIPTS_OF_EVAL`] stay, those that have run last.
//! 2. Functions that a worker has compiled in an earlier generation are not used: SCRIPT FLUSH begins a new
//!    generation.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use parking_lot::RwLock;
use sha1_smol::Sha1;

use super::places::FindPlaces;
use super::proof::{Proven, proven};
use super::{Flags, Library};
use crate::limits::{SCRIPT_QUICK_NS, SCRIPTS_OF_EVAL};

/// The SHA-1 of a text.
pub(crate) type Sha = [u8; 20];

/// A text and its properties, or a function of a library.
pub(crate) struct Script {
    /// Of the text.
    pub(crate) sha: Sha,
    /// The SHA-1 in hexadecimal digits, or the name of the function.
    pub(crate) name: String,
    /// Empty for a function.
    pub(crate) text: Box<[u8]>,
    /// The library of a function, and its place there.
    pub(crate) library: Option<Arc<Library>>,
    pub(crate) number: usize,
    pub(crate) flags: Flags,
    /// Properties of a text without a loop.
    proven: Proven,
    pace: AtomicU8,
    /// When it has run last (realtime ms).
    run_ms: AtomicI64,
}

/// How long a script takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Pace {
    /// Its last run was quick, or it has no loop.
    Quick,
    /// Its last run was slow, or it has a loop and has not run yet.
    Slow,
}

const NO_DIGIT: u8 = 0xff;
/// The value of each hexadecimal digit.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value] as usize] = value as u8;
        digits[b"0123456789ABCDEF"[value] as usize] = value as u8;
        value += 1;
    }
    digits
};

/// Words of Lua: a script that has none of them has neither loops nor functions of its own.
const LOOPS: [&[u8]; 4] = [b"while", b"for", b"repeat", b"function"];
/// The same of a library, which is made of functions.
const LOOPS_OF_LIBRARIES: [&[u8]; 3] = [b"while", b"for", b"repeat"];

impl Script {
    /// The name of a text.
    pub(crate) fn sha_of(text: &[u8]) -> Sha {
        Sha1::from(text).digest().bytes()
    }

    /// Reads 40 hexadecimal digits.
    pub(crate) fn parse_sha(digits: &[u8]) -> Option<Sha> {
        let digits: &[u8; 40] = digits.try_into().ok()?;
        let (mut sha, mut seen) = (Sha::default(), 0);
        for (byte, &[high, low]) in sha.iter_mut().zip(digits.as_chunks().0) {
            let (high, low) = (DIGITS[high as usize], DIGITS[low as usize]);
            seen |= high | low;
            *byte = high << 4 | low & 0xf;
        }
        (seen != NO_DIGIT).then_some(sha)
    }

    /// The text after the first line, if that says how to run it; its end stays, so lines keep their numbers.
    pub(crate) fn body(&self) -> &[u8] {
        let end = match self.flags.is_declared {
            true => self.text.iter().position(|&byte| byte == b'\n'),
            false => None,
        };
        &self.text[end.unwrap_or(0)..]
    }

    /// `places`: places of the keys of commands.
    pub(crate) fn new(sha: Sha, text: &[u8], flags: Flags, places: FindPlaces<'_>) -> Script {
        let mut script = Script {
            sha,
            name: sha.iter().map(|byte| format!("{byte:02x}")).collect(),
            text: text.into(),
            library: None,
            number: 0,
            flags,
            proven: Proven::default(),
            pace: AtomicU8::new(pace_of(text, &LOOPS) as u8),
            run_ms: AtomicI64::new(0),
        };
        let is_quick = script.pace() == Pace::Quick;
        let proven = is_quick.then(|| proven(script.body(), places));
        script.proven = proven.unwrap_or_default();
        script
    }

    /// Finds out about a function of a library, unless that is known. `places`: as in [`Script::new`].
    pub(crate) fn prove(&self, places: FindPlaces<'_>) {
        if let Some(library) = &self.library
            && pace_of(&library.text, &LOOPS_OF_LIBRARIES) == Pace::Quick
        {
            library.prove(places);
        }
    }

    fn proven(&self) -> Proven {
        match &self.library {
            None => self.proven,
            Some(library) => library.proven(),
        }
    }

    /// Whether it uses no keys but those of its request, and has no loop.
    pub(crate) fn names_its_keys(&self) -> bool {
        self.proven().names_its_keys
    }

    /// Whether, besides, it does nothing with ARGV but to read its items.
    pub(crate) fn only_reads_argv(&self) -> bool {
        self.proven().only_reads_argv
    }

    /// The function of a library at this place.
    pub(crate) fn of_library(library: &Arc<Library>, number: usize) -> Script {
        let listed = &library.functions[number];
        Script {
            sha: Sha::default(),
            name: listed.name.clone(),
            text: Box::default(),
            library: Some(Arc::clone(library)),
            number,
            flags: listed.flags(),
            proven: Proven::default(),
            pace: AtomicU8::new(pace_of(&library.text, &LOOPS_OF_LIBRARIES) as u8),
            run_ms: AtomicI64::new(0),
        }
    }

    /// The pace of its last run, or the one that its text suggests.
    pub(crate) fn pace(&self) -> Pace {
        match self.pace.load(Relaxed) == Pace::Quick as u8 {
            true => Pace::Quick,
            false => Pace::Slow,
        }
    }

    /// Notes that it runs.
    pub(crate) fn note_run(&self, now_ms: i64) {
        // The line is shared by all workers that run it: mostly it is only read.
        if self.run_ms.load(Relaxed) != now_ms {
            self.run_ms.store(now_ms, Relaxed);
        }
    }

    /// Notes the time of a run.
    pub(crate) fn note_pace(&self, ns: u64) {
        let pace = match ns > SCRIPT_QUICK_NS {
            true => Pace::Slow,
            false => Pace::Quick,
        };
        if pace != self.pace() {
            self.pace.store(pace as u8, Relaxed);
        }
    }
}

/// The pace that a text suggests.
fn pace_of(text: &[u8], loops: &[&[u8]]) -> Pace {
    let has = |word: &[u8]| text.windows(word.len()).any(|part| part == word);
    match loops.iter().any(|word| has(word)) {
        true => Pace::Slow,
        false => Pace::Quick,
    }
}

/// See the module.
#[derive(Default)]
pub(crate) struct Scripts {
    kept: RwLock<Kept>,
    generation: AtomicU64,
}

#[derive(Default)]
struct Kept {
    by_sha: HashMap<Sha, Arc<Script>>,
    /// Those that EVAL has brought, the oldest first.
    of_eval: Vec<Sha>,
}

impl Kept {
    /// Forgets the script of EVAL that has not run for the longest time.
    fn make_room(&mut self) {
        let run_ms = |sha: &Sha| {
            let script = self.by_sha.get(sha);
            script.map_or(0, |script| script.run_ms.load(Relaxed))
        };
        // Of equal ones the first, which is the oldest.
        let places = 0..self.of_eval.len();
        if let Some(oldest) = places.min_by_key(|&at| run_ms(&self.of_eval[at])) {
            let sha = self.of_eval.remove(oldest);
            self.by_sha.remove(&sha);
        }
    }
}

impl Scripts {
    /// The number of the generation.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(SeqCst)
    }

    pub(crate) fn get(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.kept.read().by_sha.get(sha).cloned()
    }

    /// Keeps a script that EVAL has brought.
    pub(crate) fn keep(&self, script: Arc<Script>) {
        let mut kept = self.kept.write();
        let sha = script.sha;
        if kept.by_sha.insert(sha, script).is_some() {
            return;
        }
        if kept.of_eval.len() == SCRIPTS_OF_EVAL {
            kept.make_room();
        }
        kept.of_eval.push(sha);
    }

    /// Keeps a script that SCRIPT LOAD has brought.
    pub(crate) fn load(&self, script: Arc<Script>) {
        let mut kept = self.kept.write();
        let sha = script.sha;
        kept.by_sha.insert(sha, script);
        kept.of_eval.retain(|other| *other != sha);
    }

    /// Forgets all.
    pub(crate) fn flush(&self) {
        let old = std::mem::take(&mut *self.kept.write());
        self.generation.fetch_add(1, SeqCst);
        drop(old);
    }

    /// The number of scripts, and bytes of their texts.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let kept = self.kept.read();
        let bytes = kept.by_sha.values().map(|script| script.text.len());
        (kept.by_sha.len(), bytes.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(number: usize) -> Arc<Script> {
        let text = format!("return {number}");
        let sha = Script::sha_of(text.as_bytes());
        let places = |_: &[u8], _: Option<&[u8]>| None;
        let flags = Flags::default();
        Arc::new(Script::new(sha, text.as_bytes(), flags, &places))
    }

    #[test]
    fn names_are_the_digits_of_the_hash() {
        let one = script(1);
        assert_eq!(one.name, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert_eq!(
            Script::parse_sha(one.name.to_uppercase().as_bytes()),
            Some(one.sha)
        );
        for wrong in ["", "e0", "g0e1f9fabfc9d4800c877a703b823ac0578ff8db"] {
            assert_eq!(Script::parse_sha(wrong.as_bytes()), None);
        }
    }

    #[test]
    fn loaded_scripts_stay_and_those_of_eval_make_room_for_each_other() {
        let scripts = Scripts::default();
        scripts.keep(script(0));
        scripts.load(script(0));
        scripts.load(script(1));
        for number in 2..SCRIPTS_OF_EVAL + 3 {
            scripts.keep(script(number));
        }
        let has = |number| scripts.get(&script(number).sha).is_some();
        assert!(has(0) && has(1) && !has(2) && has(3) && has(SCRIPTS_OF_EVAL + 2));
        assert_eq!(scripts.sizes().0, SCRIPTS_OF_EVAL + 2);
        // Each runs when it comes. One that runs again stays, however many others come.
        let used = scripts.get(&script(3).sha).expect("it is kept");
        used.note_run(1);
        for number in 0..3 * SCRIPTS_OF_EVAL {
            let new = script(10_000 + number);
            let now_ms = number as i64 + 1;
            new.note_run(now_ms);
            scripts.keep(new);
            used.note_run(now_ms);
        }
        let last = 10_000 + 3 * SCRIPTS_OF_EVAL - 1;
        assert!(has(1) && has(3) && !has(4) && !has(last - SCRIPTS_OF_EVAL + 1));
        assert!(has(last) && has(last - SCRIPTS_OF_EVAL + 2));
        let before = scripts.generation();
        scripts.flush();
        assert!(!has(0) && scripts.sizes() == (0, 0) && scripts.generation() > before);
    }
}
