//! What each version of each key is, derived from a seed: nothing of it has to be remembered.
//!
//! Keys come in groups. A group is written as a whole: one key by SET, several by MSET, and now and then
//! all of them are deleted by DEL. Each write of a group has the next version, from 1 on.
//!
//! A value names the run, its group, its place in the group, its version and its length, and then goes on
//! with bytes that depend on all of that: a value that was cut, mixed or left over from another write
//! does not look like any that was written.
//!
//! ```text
//! v1:9f86d081884c7d65:17:0:3:120:jX3kQ...
//!    run              |  | | |   bytes to the end
//!                 group  | | length of the whole
//!                    place version
//! ```

use crate::load::data::Data;
use crate::load::sizes::Sizes;
use crate::options::Options;
use fastrand::Rng;

/// Every so many versions is a deletion.
const DELETE_ONE_IN: u64 = 16;

/// Every so many groups have several keys.
const LARGE_ONE_IN: u64 = 4;

/// What is written, by whom, when.
#[derive(Debug)]
pub(super) struct History {
    /// Names the run; also the seed of everything in it.
    run: u64,
    groups: u64,
    /// Keys of a group that has several.
    group_keys: u64,
    sizes: Sizes,
    data: Data,
}

/// What a value says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) group: u64,
    pub(super) place: u64,
    pub(super) version: u64,
}

/// What a value is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// Nothing that this run has written.
    Foreign,
    /// It begins like one of this run's, and is not what was written.
    Torn,
}

impl History {
    /// The history that options ask for.
    pub(super) fn new(options: &Options) -> History {
        let mut bytes = [0; 8];
        // Without the kernel's randomness two runs may have the same name, and nothing else.
        let _ = sys::random::fill(&mut bytes);
        let run = options.seed.unwrap_or(u64::from_le_bytes(bytes));
        let groups = options.keyspace.unwrap_or(10_000);
        let group_keys = options.multi_keys as u64;
        let sizes = match options.sizes {
            // Too short to say who they are.
            Sizes::Fixed(0..=3) => Sizes::Range(8, 400),
            ref sizes => sizes.clone(),
        };
        History::of(run, groups, group_keys, sizes)
    }

    /// The history of a run by its name and its numbers.
    pub(super) fn of(run: u64, groups: u64, group_keys: u64, sizes: Sizes) -> History {
        History {
            run,
            groups,
            group_keys,
            sizes,
            data: Data::new(run),
        }
    }

    /// Its name and numbers, from which it can be made again.
    pub(super) fn parts(&self) -> (u64, u64, u64, &Sizes) {
        (self.run, self.groups, self.group_keys, &self.sizes)
    }

    pub(super) fn groups(&self) -> u64 {
        self.groups
    }

    /// How many keys a group has.
    pub(super) fn keys_of(&self, group: u64) -> u64 {
        match group % LARGE_ONE_IN {
            0 => self.group_keys,
            _ => 1,
        }
    }

    /// The name of a key.
    pub(super) fn key(&self, group: u64, place: u64) -> Vec<u8> {
        format!("verify:{group}:{place}").into_bytes()
    }

    /// The version deletes its group.
    pub(super) fn is_deletion(&self, group: u64, version: u64) -> bool {
        self.rng(group, u64::MAX, version).u64(..DELETE_ONE_IN) == 0
    }

    /// The newest deletion of a group among the versions up to `newest`; 0, where nothing had been
    /// written, if there is none.
    pub(super) fn deletion_before(&self, group: u64, newest: u64) -> u64 {
        let mut version = newest;
        while version > 0 && !self.is_deletion(group, version) {
            version -= 1;
        }
        version
    }

    /// The value of a key in a version that is no deletion.
    pub(super) fn value(&self, stamp: Stamp) -> Vec<u8> {
        let Stamp {
            group,
            place,
            version,
        } = stamp;
        let mut rng = self.rng(group, place, version);
        let wanted = self.sizes.draw(&mut rng);
        let head = |len: u64| format!("v1:{:016x}:{group}:{place}:{version}:{len}:", self.run);
        // The length's own digits count as well, and a value is never shorter than its head.
        let shortest = head(0).len() as u64 + 20;
        let len = wanted.max(shortest);
        let mut value = head(len).into_bytes();
        let rest = len - value.len() as u64;
        self.data.copy(rng.u64(..), rest, &mut value);
        value
    }

    /// Reads a value.
    ///
    /// # Errors
    /// It is none that this run has written.
    pub(super) fn read(&self, value: &[u8]) -> Result<Stamp, Damage> {
        let start = format!("v1:{:016x}:", self.run);
        if !value.starts_with(start.as_bytes()) {
            // A value that was cut that early says nothing.
            let is_cut = start.as_bytes().starts_with(value);
            return Err(if is_cut {
                Damage::Torn
            } else {
                Damage::Foreign
            });
        }
        let mut fields = value[start.len()..].splitn(4, |&byte| byte == b':');
        let mut number = || {
            let digits = fields.next()?;
            resp::parse_u64(digits)
        };
        let (Some(group), Some(place), Some(version)) = (number(), number(), number()) else {
            return Err(Damage::Torn);
        };
        let stamp = Stamp {
            group,
            place,
            version,
        };
        if self.value(stamp) == value {
            Ok(stamp)
        } else {
            Err(Damage::Torn)
        }
    }

    /// The commands of a version of a group.
    pub(super) fn write(&self, group: u64, version: u64, out: &mut Vec<u8>) {
        let places = 0..self.keys_of(group);
        let keys = places.clone().map(|place| self.key(group, place));
        if self.is_deletion(group, version) {
            let words = std::iter::once(b"DEL".to_vec()).chain(keys);
            return request(words.collect(), out);
        }
        let pairs = keys.zip(places).flat_map(|(key, place)| {
            let stamp = Stamp {
                group,
                place,
                version,
            };
            [key, self.value(stamp)]
        });
        let name: &[u8] = if self.keys_of(group) == 1 {
            b"SET"
        } else {
            b"MSET"
        };
        request(std::iter::once(name.to_vec()).chain(pairs).collect(), out);
    }

    /// Randomness that belongs to a version of a key.
    fn rng(&self, group: u64, place: u64, version: u64) -> Rng {
        let mut rng = Rng::with_seed(self.run ^ group.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let seed = rng.u64(..) ^ place.rotate_left(32) ^ version;
        Rng::with_seed(seed)
    }
}

fn request(words: Vec<Vec<u8>>, out: &mut Vec<u8>) {
    let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
    resp::write_request(out, &words);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        History::of(7, 100, 3, Sizes::Range(1, 300))
    }

    fn stamp(group: u64, place: u64, version: u64) -> Stamp {
        Stamp {
            group,
            place,
            version,
        }
    }

    #[test]
    fn a_value_says_whose_it_is() {
        let history = history();
        for group in 0..20 {
            for version in 1..20 {
                let stamp = stamp(group, version % 3, version);
                assert_eq!(history.read(&history.value(stamp)), Ok(stamp));
            }
        }
    }

    #[test]
    fn a_value_that_was_cut_or_changed_is_torn() {
        let history = history();
        let value = history.value(stamp(5, 0, 9));
        for len in 1..value.len() {
            assert_eq!(history.read(&value[..len]), Err(Damage::Torn), "{len}");
        }
        for index in 0..value.len() {
            let mut changed = value.clone();
            changed[index] ^= 1;
            assert!(history.read(&changed).is_err(), "{index}");
        }
        let longer = [&value[..], b"x"].concat();
        assert_eq!(history.read(&longer), Err(Damage::Torn));
        assert_eq!(history.read(b"something else"), Err(Damage::Foreign));
        let other = History::of(8, 100, 3, Sizes::Range(1, 300));
        assert_eq!(other.read(&value), Err(Damage::Foreign));
    }

    #[test]
    fn some_versions_are_deletions() {
        let history = history();
        let deletions = (1..=1_600)
            .filter(|&version| history.is_deletion(1, version))
            .count();
        assert!((60..150).contains(&deletions), "{deletions}");
        let last = history.deletion_before(1, 1_600);
        assert!(history.is_deletion(1, last));
        assert!((last + 1..=1_600).all(|version| !history.is_deletion(1, version)));
        assert_eq!(history.deletion_before(1, 0), 0);
    }

    #[test]
    fn groups_are_written_as_a_whole() {
        let history = history();
        let words = |group, version| {
            let mut out = Vec::new();
            history.write(group, version, &mut out);
            let (value, len) = resp::parse_value(&out).expect("valid").expect("whole");
            assert_eq!(len, out.len());
            match value {
                resp::Value::Array(words) => words.len(),
                other => panic!("{other:?} is no request"),
            }
        };
        let write = |group| {
            (1..)
                .find(|&version| !history.is_deletion(group, version))
                .unwrap_or(0)
        };
        let deletion = |group| {
            (1..)
                .find(|&version| history.is_deletion(group, version))
                .unwrap_or(0)
        };
        assert_eq!((words(0, write(0)), words(1, write(1))), (7, 3));
        assert_eq!((words(0, deletion(0)), words(1, deletion(1))), (4, 2));
    }
}
