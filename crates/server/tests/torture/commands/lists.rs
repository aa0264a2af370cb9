//! What commands of lists do to the model.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::support::Value;
use crate::torture::model::{Call, Expect};
use crate::torture::script::Arg;
use crate::torture::values::{Data, Elements};

/// Elements that requests name: few, so that some are there several times.
const ELEMENTS: u32 = 20;

/// An element: half of them are integers.
fn element(number: u32) -> Arg {
    match number % 2 {
        0 => Arg::word(number.to_string()),
        _ => Arg::word(format!("element {number}")),
    }
}

/// What stands in the place of a word of a shape, if it is one about elements.
pub(crate) fn words(random: &mut fastrand::Rng, token: &str) -> Option<Vec<Arg>> {
    Some(match token {
        "e" => vec![element(random.u32(..ELEMENTS))],
        "es" => (0..random.usize(1..6))
            .map(|_| element(random.u32(..ELEMENTS)))
            .collect(),
        "emany" => (0..random.u32(20..200))
            .map(|_| element(random.u32(..ELEMENTS)))
            .collect(),
        "index" => vec![Arg::word(random.i32(-20..20).to_string())],
        "end" => vec![Arg::word(["LEFT", "RIGHT"][random.usize(..2)])],
        "ewide" => (0..random.usize(20..60))
            .map(|_| Arg::Text {
                len: random.usize(..20_000),
                seed: random.u32(..),
            })
            .collect(),
        "few" => vec![Arg::word(random.u32(1..5).to_string())],
        _ => return None,
    })
}

/// The elements of a key; those of a missing key are none. `None`: it is of another type.
fn elements(call: &Call<'_>, name: &[u8]) -> Option<Elements> {
    match call.get(name).map(|entry| &entry.data) {
        Some(Data::List(elements)) => Some(Elements::clone(elements)),
        Some(_) => None,
        None => Some(Elements::new()),
    }
}

fn wrong_type() -> Expect {
    Expect::Error("WRONGTYPE")
}

/// Gives a key other elements; its expiry stays. A key without elements is none.
fn put(call: &mut Call<'_>, name: &[u8], elements: Elements) {
    let key = call.key(name);
    let expiry = call.get_key(&key).and_then(|entry| entry.expiry);
    match elements.is_empty() {
        true => drop(call.remove_key(&key)),
        false => call.put(key, Data::List(Arc::new(elements)), expiry),
    }
}

/// Changes the elements of the first argument, if they are a list.
fn change(call: &mut Call<'_>, change: impl FnOnce(&mut Elements, &[Vec<u8>]) -> Expect) -> Expect {
    let args = call.args;
    let Some(mut elements) = elements(call, &args[0]) else {
        return wrong_type();
    };
    let reply = change(&mut elements, &args[1..]);
    put(call, &args[0], elements);
    reply
}

fn number(text: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(text);
    text.parse().expect("shapes have numbers here")
}

fn is_left(text: &[u8]) -> bool {
    text == b"LEFT"
}

fn push_at(elements: &mut Elements, is_left: bool, element: Vec<u8>) {
    match is_left {
        true => elements.push_front(element),
        false => elements.push_back(element),
    }
}

fn pop_at(elements: &mut Elements, is_left: bool) -> Option<Vec<u8>> {
    match is_left {
        true => elements.pop_front(),
        false => elements.pop_back(),
    }
}

fn push(call: &mut Call<'_>, is_left: bool, is_made: bool) -> Expect {
    change(call, |elements, args| {
        if is_made || !elements.is_empty() {
            for element in args {
                push_at(elements, is_left, element.clone());
            }
        }
        Expect::int(elements.len() as u64)
    })
}

pub(super) fn lpush(call: &mut Call<'_>) -> Expect {
    push(call, true, true)
}

pub(super) fn rpush(call: &mut Call<'_>) -> Expect {
    push(call, false, true)
}

pub(super) fn lpushx(call: &mut Call<'_>) -> Expect {
    push(call, true, false)
}

pub(super) fn rpushx(call: &mut Call<'_>) -> Expect {
    push(call, false, false)
}

fn bulks<'e>(elements: impl Iterator<Item = &'e Vec<u8>>) -> Expect {
    Expect::Is(Value::Array(elements.cloned().map(Value::Bulk).collect()))
}

/// Takes as many as there are, up to some.
fn take(elements: &mut Elements, is_left: bool, most: i64) -> Expect {
    let taken: Vec<_> = (0..most).map_while(|_| pop_at(elements, is_left)).collect();
    bulks(taken.iter())
}

fn pop(call: &mut Call<'_>, is_left: bool) -> Expect {
    change(call, |elements, args| match args.first() {
        Some(_) if elements.is_empty() => Expect::Null,
        Some(most) => take(elements, is_left, number(most)),
        None => Expect::bulk_or_null(pop_at(elements, is_left).as_deref()),
    })
}

pub(super) fn lpop(call: &mut Call<'_>) -> Expect {
    pop(call, true)
}

pub(super) fn rpop(call: &mut Call<'_>) -> Expect {
    pop(call, false)
}

/// `key ... timeout`: something is there, or it is in a transaction.
fn pop_first(call: &mut Call<'_>, is_left: bool) -> Expect {
    let args = call.args;
    for name in &args[..args.len() - 1] {
        let Some(mut elements) = elements(call, name) else {
            return wrong_type();
        };
        if let Some(element) = pop_at(&mut elements, is_left) {
            put(call, name, elements);
            return bulks([name.clone(), element].iter());
        }
    }
    Expect::Null
}

pub(super) fn blpop(call: &mut Call<'_>) -> Expect {
    pop_first(call, true)
}

pub(super) fn brpop(call: &mut Call<'_>) -> Expect {
    pop_first(call, false)
}

/// `2 key key end COUNT count`, from an argument on.
fn pop_several(call: &mut Call<'_>, at: usize) -> Expect {
    let args = &call.args[at..];
    for name in &args[1..3] {
        let Some(mut elements) = elements(call, name) else {
            return wrong_type();
        };
        if !elements.is_empty() {
            let taken = take(&mut elements, is_left(&args[3]), number(&args[5]));
            put(call, name, elements);
            return Expect::All(vec![Expect::bulk(name), taken]);
        }
    }
    Expect::Null
}

pub(super) fn lmpop(call: &mut Call<'_>) -> Expect {
    pop_several(call, 0)
}

pub(super) fn blmpop(call: &mut Call<'_>) -> Expect {
    pop_several(call, 1)
}

fn move_one(call: &mut Call<'_>, [from_left, to_left]: [bool; 2]) -> Expect {
    let args = call.args;
    let Some(mut from) = elements(call, &args[0]) else {
        return wrong_type();
    };
    let Some(element) = pop_at(&mut from, from_left) else {
        return Expect::Null;
    };
    if args[0] == args[1] {
        push_at(&mut from, to_left, element.clone());
    } else {
        let Some(mut to) = elements(call, &args[1]) else {
            return wrong_type();
        };
        push_at(&mut to, to_left, element.clone());
        put(call, &args[1], to);
    }
    put(call, &args[0], from);
    Expect::bulk(&element)
}

pub(super) fn lmove(call: &mut Call<'_>) -> Expect {
    let ends = [is_left(&call.args[2]), is_left(&call.args[3])];
    move_one(call, ends)
}

pub(super) fn rpoplpush(call: &mut Call<'_>) -> Expect {
    move_one(call, [false, true])
}

/// The place of an index.
fn place(index: i64, len: usize) -> Option<usize> {
    let place = if index < 0 { index + len as i64 } else { index };
    usize::try_from(place).ok().filter(|&place| place < len)
}

pub(super) fn lset(call: &mut Call<'_>) -> Expect {
    change(call, |elements, args| {
        if elements.is_empty() {
            return Expect::Error("ERR no such key");
        }
        match place(number(&args[0]), elements.len()) {
            Some(place) => elements[place] = args[1].clone(),
            None => return Expect::Error("ERR index out of range"),
        }
        Expect::ok()
    })
}

pub(super) fn linsert(call: &mut Call<'_>) -> Expect {
    change(call, |elements, args| {
        if elements.is_empty() {
            return Expect::int(0);
        }
        let Some(place) = elements.iter().position(|element| *element == args[1]) else {
            return Expect::int(-1);
        };
        let is_behind = args[0] == b"AFTER";
        elements.insert(place + usize::from(is_behind), args[2].clone());
        Expect::int(elements.len() as u64)
    })
}

pub(super) fn lrem(call: &mut Call<'_>) -> Expect {
    change(call, |elements, args| {
        let (count, before) = (number(&args[0]), elements.len());
        let mut left = match count {
            0 => usize::MAX,
            _ => count.unsigned_abs() as usize,
        };
        let mut keep = |element: &Vec<u8>| {
            let goes = left > 0 && *element == args[1];
            left -= usize::from(goes);
            !goes
        };
        let kept: VecDeque<_> = match count < 0 {
            true => {
                let kept: Vec<_> = elements.drain(..).rev().filter(&mut keep).collect();
                kept.into_iter().rev().collect()
            }
            false => elements.drain(..).filter(&mut keep).collect(),
        };
        *elements = kept;
        Expect::int((before - elements.len()) as u64)
    })
}

/// The places of a range.
fn range(args: &[Vec<u8>], len: usize) -> std::ops::Range<usize> {
    let len = len as i64;
    let clear = |index: i64| {
        if index < 0 {
            (index + len).max(-1)
        } else {
            index
        }
    };
    let (from, to) = (
        clear(number(&args[0])).max(0),
        clear(number(&args[1])).min(len - 1),
    );
    match from <= to {
        true => from as usize..to as usize + 1,
        false => 0..0,
    }
}

pub(super) fn ltrim(call: &mut Call<'_>) -> Expect {
    change(call, |elements, args| {
        let range = range(args, elements.len());
        *elements = elements.range(range).cloned().collect();
        Expect::ok()
    })
}

pub(super) fn llen(call: &mut Call<'_>) -> Expect {
    let elements = elements(call, &call.args[0]);
    elements.map_or_else(wrong_type, |elements| Expect::int(elements.len() as u64))
}

pub(super) fn lindex(call: &mut Call<'_>) -> Expect {
    let at = number(&call.args[1]);
    let elements = elements(call, &call.args[0]);
    elements.map_or_else(wrong_type, |elements| {
        let place = place(at, elements.len());
        Expect::bulk_or_null(place.map(|place| &elements[place][..]))
    })
}

pub(super) fn lrange(call: &mut Call<'_>) -> Expect {
    let elements = elements(call, &call.args[0]);
    elements.map_or_else(wrong_type, |elements| {
        bulks(elements.range(range(&call.args[1..], elements.len())))
    })
}

pub(super) fn lpos(call: &mut Call<'_>) -> Expect {
    let elements = elements(call, &call.args[0]);
    elements.map_or_else(wrong_type, |elements| {
        let mut places = elements.iter();
        let place = places.position(|element| *element == call.args[1]);
        place.map_or(Expect::Null, |place| Expect::int(place as u64))
    })
}
