//! Connections that share one name: a sorted list while they are few, a tree when they are many.

use std::collections::BTreeMap;

use super::steps;

/// Number of members from which on a tree is used, because an insertion moves the list.
const MANY: usize = 32;

/// Database and connection id: identity and order of a member.
pub(crate) type Who = (u32, u64);

/// Connection that shares a name.
pub(crate) trait Member {
    fn who(&self) -> Who;
}

/// Members of one name, in order.
pub(crate) enum Members<M> {
    Few(Vec<M>),
    Many(BTreeMap<Who, M>),
}

impl<M: Member> Members<M> {
    /// A single member.
    pub(crate) fn of(member: M) -> Members<M> {
        Members::Few(vec![member])
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Members::Few(list) => list.is_empty(),
            Members::Many(tree) => tree.is_empty(),
        }
    }

    pub(crate) fn contains(&self, who: Who) -> bool {
        steps::add(1);
        match self {
            Members::Few(list) => list.binary_search_by_key(&who, Member::who).is_ok(),
            Members::Many(tree) => tree.contains_key(&who),
        }
    }

    /// Whether there are members of a database.
    pub(crate) fn has(&self, db: u32) -> bool {
        steps::add(1);
        match self {
            Members::Few(list) => {
                let at = list.partition_point(|member| member.who() < (db, 0));
                list.get(at).is_some_and(|member| member.who().0 == db)
            }
            Members::Many(tree) => tree.range((db, 0)..=(db, u64::MAX)).next().is_some(),
        }
    }

    /// Adds a member that is not present.
    pub(crate) fn insert(&mut self, member: M) {
        match self {
            Members::Few(list) if list.len() < MANY => {
                let at = list.partition_point(|other| other.who() < member.who());
                steps::add(1 + list.len() - at);
                list.insert(at, member);
            }
            Members::Few(list) => {
                let all = std::mem::take(list).into_iter().chain([member]);
                let tree: BTreeMap<Who, M> = all.map(|member| (member.who(), member)).collect();
                steps::add(tree.len());
                *self = Members::Many(tree);
            }
            Members::Many(tree) => {
                steps::add(1);
                tree.insert(member.who(), member);
            }
        }
    }

    pub(crate) fn remove(&mut self, who: Who) -> Option<M> {
        match self {
            Members::Few(list) => {
                let at = list.binary_search_by_key(&who, Member::who).ok()?;
                steps::add(1 + list.len() - at);
                Some(list.remove(at))
            }
            Members::Many(tree) => {
                steps::add(1);
                let removed = tree.remove(&who);
                self.settle();
                removed
            }
        }
    }

    /// Removes and returns all members of a database, in order.
    pub(crate) fn take(&mut self, db: u32) -> Vec<M> {
        let taken = match self {
            Members::Few(list) => {
                let from = list.partition_point(|member| member.who() < (db, 0));
                let until = list.partition_point(|member| member.who() <= (db, u64::MAX));
                steps::add(list.len() - from);
                list.drain(from..until).collect()
            }
            Members::Many(tree) => {
                let mut taken = tree.split_off(&(db, 0));
                if let Some(next) = db.checked_add(1) {
                    tree.append(&mut taken.split_off(&(next, 0)));
                }
                steps::add(taken.len());
                taken.into_values().collect()
            }
        };
        self.settle();
        taken
    }

    /// All members, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &M> {
        let (list, tree) = match self {
            Members::Few(list) => (Some(list), None),
            Members::Many(tree) => (None, Some(tree)),
        };
        let tree = tree.into_iter().flat_map(BTreeMap::values);
        list.into_iter().flatten().chain(tree)
    }

    /// Removes and returns the members for which `leaves` is true.
    pub(crate) fn extract(&mut self, mut leaves: impl FnMut(&M) -> bool) -> Vec<M> {
        let gone = match self {
            Members::Few(list) => {
                steps::add(list.len());
                list.extract_if(.., |member| leaves(member)).collect()
            }
            Members::Many(tree) => {
                steps::add(tree.len());
                let gone: Vec<Who> = tree
                    .iter()
                    .filter(|(_, member)| leaves(member))
                    .map(|(&who, _)| who)
                    .collect();
                gone.iter().filter_map(|who| tree.remove(who)).collect()
            }
        };
        self.settle();
        gone
    }

    /// Converts a small tree to a list. The threshold is lower than for the conversion to a tree, so that it
    /// does not alternate.
    fn settle(&mut self) {
        if let Members::Many(tree) = self
            && tree.len() <= MANY / 4
        {
            *self = Members::Few(std::mem::take(tree).into_values().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    impl Member for Who {
        fn who(&self) -> Who {
            *self
        }
    }

    #[test]
    fn members_are_those_that_were_added_and_did_not_leave() {
        for most in [10, 40, 300] {
            fastrand::seed(most);
            let (mut members, mut model) = (Members::Few(Vec::new()), BTreeSet::new());
            for round in 0..4000 {
                let who = (fastrand::u32(..3), fastrand::u64(..most));
                assert_eq!(members.contains(who), model.contains(&who));
                match fastrand::usize(..5) {
                    0 | 1 if !model.contains(&who) => {
                        members.insert(who);
                        model.insert(who);
                    }
                    2 => assert_eq!(members.remove(who).is_some(), model.remove(&who)),
                    3 if round % 50 == 0 => {
                        let gone: Vec<Who> =
                            model.iter().copied().filter(|one| one.0 == who.0).collect();
                        assert_eq!(members.has(who.0), !gone.is_empty());
                        model.retain(|one| one.0 != who.0);
                        assert_eq!(members.take(who.0), gone);
                    }
                    4 if round % 50 == 0 => {
                        members.extract(|one| one.1 % 2 == 0);
                        model.retain(|one| one.1 % 2 != 0);
                    }
                    _ => {}
                }
                assert!(members.iter().eq(model.iter()));
                assert_eq!(members.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn twice_as_many_members_take_twice_the_steps() {
        steps::assert_linear(1_000, |n| {
            let mut members = Members::Few(Vec::new());
            // The worst order for a list.
            for id in (0..n as u64).rev() {
                assert!(!members.contains((0, id)));
                members.insert((0, id));
            }
            (0..n as u64).for_each(|id| assert!(members.remove((0, id)).is_some()));
        });
    }
}
