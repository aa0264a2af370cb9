//! What commands of sets do to the model.

use std::sync::Arc;

use crate::torture::model::{Call, Expect};
use crate::torture::script::Arg;
use crate::torture::values::{Data, Members};

/// Members that requests name, and those of which many are added at once.
const MEMBERS: u32 = 30;
const MANY_MEMBERS: u32 = 900;

/// A member: half of them are integers.
fn member(number: u32) -> Arg {
    match number % 2 {
        0 => Arg::word(number.to_string()),
        _ => Arg::word(format!("member {number}")),
    }
}

/// What stands in the place of a word of a shape, if it is one about members.
pub(crate) fn words(random: &mut fastrand::Rng, token: &str) -> Option<Vec<Arg>> {
    Some(match token {
        "m" => vec![member(random.u32(..MEMBERS))],
        "ms" => (0..random.usize(1..6))
            .map(|_| member(random.u32(..MEMBERS)))
            .collect(),
        "mmany" => {
            let first = random.u32(..MANY_MEMBERS);
            (first..first + random.u32(20..300)).map(member).collect()
        }
        "mwide" => (0..random.usize(20..100))
            .map(|_| random.u32(..400))
            .map(|seed| Arg::Text {
                len: 1000 + 10 * seed as usize,
                seed,
            })
            .collect(),
        _ => return None,
    })
}

/// The members of a key; those of a missing key are none. `None`: it is of another type.
fn members(call: &Call<'_>, name: &[u8]) -> Option<Members> {
    match call.get(name).map(|entry| &entry.data) {
        Some(Data::Set(members)) => Some(Members::clone(members)),
        Some(_) => None,
        None => Some(Members::new()),
    }
}

fn wrong_type() -> Expect {
    Expect::Error("WRONGTYPE")
}

/// Gives a key other members; its expiry stays. A key without members is none.
fn put(call: &mut Call<'_>, name: &[u8], members: Members) {
    let key = call.key(name);
    let expiry = call.get_key(&key).and_then(|entry| entry.expiry);
    match members.is_empty() {
        true => drop(call.remove_key(&key)),
        false => call.put(key, Data::Set(Arc::new(members)), expiry),
    }
}

/// Changes the members of the first argument; how many came or went.
fn change(call: &mut Call<'_>, change: impl Fn(&mut Members, &[u8]) -> bool) -> Expect {
    let args = call.args;
    let Some(mut members) = members(call, &args[0]) else {
        return wrong_type();
    };
    let names = args[1..].iter();
    let changed = names.filter(|name| change(&mut members, name)).count();
    if changed > 0 {
        put(call, &args[0], members);
    }
    Expect::int(changed as u64)
}

pub(super) fn sadd(call: &mut Call<'_>) -> Expect {
    change(call, |members, name| members.insert(name.to_vec()))
}

pub(super) fn srem(call: &mut Call<'_>) -> Expect {
    change(call, |members, name| members.remove(name))
}

pub(super) fn smove(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let (Some(mut from), Some(mut to)) = (members(call, &args[0]), members(call, &args[1])) else {
        return wrong_type();
    };
    let is_there = from.contains(&args[2]);
    if is_there && args[0] != args[1] {
        from.remove(&args[2]);
        to.insert(args[2].clone());
        put(call, &args[0], from);
        put(call, &args[1], to);
    }
    Expect::int(u8::from(is_there))
}

/// Shapes want more than there are: which ones go otherwise is not known.
pub(super) fn spop(call: &mut Call<'_>) -> Expect {
    match members(call, &call.args[0]) {
        None => wrong_type(),
        Some(members) => {
            call.remove(&call.args[0]);
            Expect::Members(members)
        }
    }
}

/// Which members several sets make.
type Combine = fn(Members, &Members) -> Members;

fn inter(first: Members, second: &Members) -> Members {
    first.intersection(second).cloned().collect()
}

fn union(first: Members, second: &Members) -> Members {
    first.union(second).cloned().collect()
}

fn diff(first: Members, second: &Members) -> Members {
    first.difference(second).cloned().collect()
}

/// What the sets of some keys make; `None` if one is of another type.
fn combined(call: &Call<'_>, names: &[Vec<u8>], combine: Combine) -> Option<Members> {
    let sets: Option<Vec<Members>> = names.iter().map(|name| members(call, name)).collect();
    let mut sets = sets?.into_iter();
    let first = sets.next().expect("shapes name some");
    Some(sets.fold(first, |first, second| combine(first, &second)))
}

fn answer(call: &Call<'_>, combine: Combine) -> Expect {
    combined(call, call.args, combine).map_or_else(wrong_type, Expect::Members)
}

/// The expiry of the key goes.
fn store(call: &mut Call<'_>, combine: Combine) -> Expect {
    let args = call.args;
    let Some(members) = combined(call, &args[1..], combine) else {
        return wrong_type();
    };
    let len = members.len() as u64;
    call.remove(&args[0]);
    put(call, &args[0], members);
    Expect::int(len)
}

pub(super) fn sinter(call: &mut Call<'_>) -> Expect {
    answer(call, inter)
}

pub(super) fn sunion(call: &mut Call<'_>) -> Expect {
    answer(call, union)
}

pub(super) fn sdiff(call: &mut Call<'_>) -> Expect {
    answer(call, diff)
}

pub(super) fn sinterstore(call: &mut Call<'_>) -> Expect {
    store(call, inter)
}

pub(super) fn sunionstore(call: &mut Call<'_>) -> Expect {
    store(call, union)
}

pub(super) fn sdiffstore(call: &mut Call<'_>) -> Expect {
    store(call, diff)
}

/// The number of the keys stands before them.
pub(super) fn sintercard(call: &mut Call<'_>) -> Expect {
    let found = combined(call, &call.args[1..], inter);
    found.map_or_else(wrong_type, |members| Expect::int(members.len() as u64))
}

pub(super) fn smembers(call: &mut Call<'_>) -> Expect {
    members(call, &call.args[0]).map_or_else(wrong_type, Expect::Members)
}

pub(super) fn scard(call: &mut Call<'_>) -> Expect {
    let members = members(call, &call.args[0]);
    members.map_or_else(wrong_type, |members| Expect::int(members.len() as u64))
}

pub(super) fn smismember(call: &mut Call<'_>) -> Expect {
    let Some(members) = members(call, &call.args[0]) else {
        return wrong_type();
    };
    let names = call.args[1..].iter();
    let is_there = |name| Expect::int(u8::from(members.contains(name)));
    Expect::All(names.map(is_there).collect())
}

pub(super) fn sismember(call: &mut Call<'_>) -> Expect {
    let members = members(call, &call.args[0]);
    let is_there = |members: Members| Expect::int(u8::from(members.contains(&call.args[1])));
    members.map_or_else(wrong_type, is_there)
}
