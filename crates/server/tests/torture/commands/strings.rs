//! What commands of strings do to the model.

use crate::torture::model::{Call, Expect, number};
use crate::torture::values::Span;

/// When a key is gone whose option says so; `None` if the option is no expiry.
fn expiry(call: &Call<'_>, unit: &[u8], count: &[u8]) -> Option<Span> {
    let count: u64 = number(count)?;
    Some(match &unit.to_ascii_uppercase()[..] {
        b"EX" => call.at.after(count * 1000),
        b"PX" => call.at.after(count),
        b"EXAT" => Span::exactly(count * 1000),
        b"PXAT" => Span::exactly(count),
        _ => return None,
    })
}

/// Sets a key, which is not there if its time is up already.
fn store(call: &mut Call<'_>, name: &[u8], bytes: Vec<u8>, expiry: Option<Span>) {
    if expiry.is_some_and(|at| at.most <= call.at.least) {
        call.remove(name);
    } else {
        call.set(name, bytes, expiry);
    }
}

pub(super) fn set(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let (name, value) = (&args[0], args[1].clone());
    let old = call.string(name).map(<[u8]>::to_vec);
    let current = call.get(name).and_then(|entry| entry.expiry);
    let (mut until, mut is_wanted, mut wants_old) = (None, true, false);
    let mut rest = args[2..].iter();
    while let Some(word) = rest.next() {
        match &word.to_ascii_uppercase()[..] {
            b"NX" => is_wanted = old.is_none(),
            b"XX" => is_wanted = old.is_some(),
            b"GET" => wants_old = true,
            b"KEEPTTL" => until = current,
            b"IFEQ" => is_wanted = old.is_some() && old.as_ref() == rest.next(),
            _ => until = rest.next().and_then(|count| expiry(call, word, count)),
        }
    }
    if is_wanted {
        store(call, name, value, until);
    }
    match (wants_old, is_wanted) {
        (true, _) => Expect::bulk_or_null(old.as_deref()),
        (false, true) => Expect::ok(),
        (false, false) => Expect::Null,
    }
}

pub(super) fn setnx(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    if call.get(&args[0]).is_some() {
        return Expect::int(0);
    }
    call.set(&args[0], args[1].clone(), None);
    Expect::int(1)
}

pub(super) fn setex(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let until = expiry(call, b"EX", &args[1]);
    call.set(&args[0], args[2].clone(), until);
    Expect::ok()
}

pub(super) fn psetex(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let until = expiry(call, b"PX", &args[1]);
    call.set(&args[0], args[2].clone(), until);
    Expect::ok()
}

pub(super) fn getset(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let old = Expect::bulk_or_null(call.string(&args[0]));
    call.set(&args[0], args[1].clone(), None);
    old
}

pub(super) fn getdel(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let old = Expect::bulk_or_null(call.string(&args[0]));
    call.remove(&args[0]);
    old
}

pub(super) fn getex(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some(value) = call.string(&args[0]).map(<[u8]>::to_vec) else {
        return Expect::Null;
    };
    let reply = Expect::bulk(&value);
    match args.get(1) {
        Some(word) if word.eq_ignore_ascii_case(b"PERSIST") => call.set(&args[0], value, None),
        Some(word) => {
            let until = expiry(call, word, &args[2]);
            store(call, &args[0], value, until);
        }
        None => {}
    }
    reply
}

pub(super) fn append(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let was_there = call.get(&args[0]).is_some();
    if args[1].is_empty() && !was_there {
        // An empty string comes to be.
        call.set(&args[0], Vec::new(), None);
        return Expect::int(0);
    }
    let len = call.change(&args[0], |bytes| {
        bytes.extend_from_slice(&args[1]);
        bytes.len()
    });
    Expect::int(len as u64)
}

pub(super) fn setrange(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let at: usize = number(&args[1]).expect("a shape has an offset here");
    if call.has_no_room(at) {
        return Expect::Error("OOM");
    }
    if args[2].is_empty() {
        return Expect::int(call.string(&args[0]).map_or(0, <[u8]>::len) as u64);
    }
    let len = call.change(&args[0], |bytes| {
        let end = at + args[2].len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[at..end].copy_from_slice(&args[2]);
        bytes.len()
    });
    Expect::int(len as u64)
}

pub(super) fn mset(call: &mut Call<'_>) -> Expect {
    for pair in call.args.chunks(2) {
        call.set(&pair[0], pair[1].clone(), None);
    }
    Expect::ok()
}

pub(super) fn msetnx(call: &mut Call<'_>) -> Expect {
    if call.args.chunks(2).any(|pair| call.get(&pair[0]).is_some()) {
        return Expect::int(0);
    }
    mset(call);
    Expect::int(1)
}

/// `count key value ... [NX | XX] [KEEPTTL | unit time]`
pub(super) fn msetex(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let count: usize = number(&args[0]).expect("shapes have a count");
    let (pairs, mut rest) = args[1..].split_at(2 * count);
    let is_there = |call: &Call<'_>| {
        pairs
            .chunks(2)
            .map(|pair| call.get(&pair[0]).is_some())
            .collect()
    };
    let there: Vec<bool> = is_there(call);
    let is_wanted = match rest.first().map(|word| &word[..]) {
        Some(b"NX") => !there.contains(&true),
        Some(b"XX") => !there.contains(&false),
        _ => true,
    };
    if matches!(rest.first().map(|word| &word[..]), Some(b"NX" | b"XX")) {
        rest = &rest[1..];
    }
    if !is_wanted {
        return Expect::int(0);
    }
    for pair in pairs.chunks(2) {
        let until = match rest {
            [unit, time] => expiry(call, unit, time),
            [_keeps] => call.get(&pair[0]).and_then(|entry| entry.expiry),
            _ => None,
        };
        store(call, &pair[0], pair[1].clone(), until);
    }
    Expect::int(1)
}

/// A number as the server takes it: no sign before zero, no zero before digits.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let number: i64 = number(text)?;
    (number.to_string().as_bytes() == text).then_some(number)
}

fn add(call: &mut Call<'_>, amount: Option<i64>) -> Expect {
    let args = call.args;
    let old = call.string(&args[0]).map_or(Some(0), integer);
    let sum = old
        .zip(amount)
        .and_then(|(old, amount)| old.checked_add(amount));
    let Some(sum) = sum else {
        return Expect::Error("ERR");
    };
    call.change(&args[0], |bytes| *bytes = sum.to_string().into_bytes());
    Expect::int(sum)
}

pub(super) fn incr(call: &mut Call<'_>) -> Expect {
    add(call, Some(1))
}

pub(super) fn decr(call: &mut Call<'_>) -> Expect {
    add(call, Some(-1))
}

pub(super) fn incrby(call: &mut Call<'_>) -> Expect {
    let amount = integer(&call.args[1]);
    add(call, amount)
}

pub(super) fn decrby(call: &mut Call<'_>) -> Expect {
    let amount = integer(&call.args[1]).and_then(i64::checked_neg);
    add(call, amount)
}

/// Sums are exact: shapes give quarters, to numbers that are small.
pub(super) fn incrbyfloat(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let old = call.string(&args[0]).map_or(Some(0.0), number::<f64>);
    let sum = old
        .zip(number::<f64>(&args[1]))
        .map(|(old, amount)| old + amount);
    let Some(sum) = sum else {
        return Expect::Error("ERR");
    };
    let text = sum.to_string();
    call.change(&args[0], |bytes| *bytes = text.clone().into_bytes());
    Expect::bulk(text.as_bytes())
}

pub(super) fn delex(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some(value) = call.string(&args[0]) else {
        return Expect::int(0);
    };
    let is_wanted = match args.get(1).map(|word| word.to_ascii_uppercase()) {
        None => true,
        Some(word) => (word == b"IFEQ") == (value == args[2]),
    };
    if is_wanted {
        call.remove(&args[0]);
    }
    Expect::int(u8::from(is_wanted))
}

pub(super) fn delifeq(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let is_equal = call.string(&args[0]) == Some(&args[1][..]);
    if is_equal {
        call.remove(&args[0]);
    }
    Expect::int(u8::from(is_equal))
}
