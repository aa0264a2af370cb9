//! What commands of keys of any type do to the model, and those of all keys.

use super::payload;
use crate::support::Value;
use crate::torture::model::{Call, DATABASES, Expect, Global, number};
use crate::torture::script::Request;
use crate::torture::values::{Key, Span};

pub(super) fn del(call: &mut Call<'_>) -> Expect {
    remove_all(call, call.args)
}

/// Removes keys. Returns the expected number.
pub(super) fn remove_all(call: &mut Call<'_>, names: &[Vec<u8>]) -> Expect {
    let (mut certain, mut possible) = (0, 0);
    for name in names {
        if call.get(name).is_some() {
            possible += 1;
            certain += i64::from(call.is_sure(name));
        }
        call.remove(name);
    }
    Expect::Between(certain, possible)
}

/// Gives a key an expiry, on conditions; a time that is up removes it.
fn expire_at(call: &mut Call<'_>, until: Span) -> Expect {
    let args = call.args;
    let Some(entry) = call.get(&args[0]) else {
        return Expect::int(0);
    };
    let current = entry.expiry;
    let is_wanted = match args.get(2).map(|word| word.to_ascii_uppercase()).as_deref() {
        Some(b"NX") => current.is_none(),
        Some(b"XX") => current.is_some(),
        Some(b"GT") => current.is_some_and(|at| until.least > at.most),
        Some(b"LT") => current.is_none_or(|at| until.most < at.least),
        _ => true,
    };
    if !is_wanted {
        return Expect::int(0);
    }
    if until.most <= call.at.least {
        call.remove(&args[0]);
    } else {
        let (key, data) = (call.key(&args[0]), entry.data.clone());
        call.put(key, data, Some(until));
    }
    Expect::int(1)
}

/// A moment so many milliseconds from now.
fn from_now(call: &Call<'_>, ms: i64) -> Span {
    u64::try_from(ms)
        .ok()
        .filter(|&ms| ms > 0)
        .map_or(Span::exactly(0), |ms| call.at.after(ms))
}

fn operand(call: &Call<'_>) -> i64 {
    number(&call.args[1]).expect("a shape has a number here")
}

pub(super) fn expire(call: &mut Call<'_>) -> Expect {
    let until = from_now(call, operand(call) * 1000);
    expire_at(call, until)
}

pub(super) fn pexpire(call: &mut Call<'_>) -> Expect {
    let until = from_now(call, operand(call));
    expire_at(call, until)
}

pub(super) fn expireat(call: &mut Call<'_>) -> Expect {
    let until = Span::exactly(operand(call) as u64 * 1000);
    expire_at(call, until)
}

pub(super) fn pexpireat(call: &mut Call<'_>) -> Expect {
    let until = Span::exactly(operand(call) as u64);
    expire_at(call, until)
}

pub(super) fn persist(call: &mut Call<'_>) -> Expect {
    let key = call.key(&call.args[0]);
    let entry = call.get_key(&key).filter(|entry| entry.expiry.is_some());
    let Some(data) = entry.map(|entry| entry.data.clone()) else {
        return Expect::int(0);
    };
    call.put(key, data, None);
    Expect::int(1)
}

/// A key gets what another has, with its expiry. Whether that was so.
fn transfer(call: &mut Call<'_>, from: &Key, to: Key, replaces: bool) -> bool {
    let Some(entry) = call.get_key(from).cloned() else {
        return false;
    };
    if !replaces && call.get_key(&to).is_some() {
        return false;
    }
    call.put(to, entry.data, entry.expiry);
    true
}

pub(super) fn copy(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let (mut db, mut replaces) = (call.db, false);
    let mut rest = args[2..].iter();
    while let Some(word) = rest.next() {
        match &word.to_ascii_uppercase()[..] {
            b"REPLACE" => replaces = true,
            _ => match rest.next().and_then(|text| number(text)) {
                Some(wanted) if wanted < DATABASES => db = wanted,
                _ => return Expect::Error("ERR"),
            },
        }
    }
    let (from, to) = (call.key(&args[0]), (db, args[1].clone()));
    if from == to {
        return Expect::Error("ERR");
    }
    Expect::int(u8::from(transfer(call, &from, to, replaces)))
}

pub(super) fn restore(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let has = |word: &[u8]| args[3..].iter().any(|arg| arg.eq_ignore_ascii_case(word));
    if !has(b"REPLACE") && call.get(&args[0]).is_some() {
        return Expect::Error("BUSYKEY");
    }
    let until = match operand(call) {
        0 => None,
        at if has(b"ABSTTL") => Some(Span::exactly(at as u64)),
        ms => Some(from_now(call, ms)),
    };
    if until.is_some_and(|until| until.most <= call.at.least) {
        call.remove(&args[0]);
    } else {
        let data = payload::decode(&args[2]).expect("shapes have payloads here");
        call.put(call.key(&args[0]), data, until);
    }
    Expect::ok()
}

/// `POPULATE 1 prefix [size]`: one key, so that it is done or not.
pub(super) fn populate(call: &mut Call<'_>) -> Expect {
    let name = [&call.args[2][..], b":0"].concat();
    if call.get(&name).is_none() {
        let mut value = b"value:0".to_vec();
        if let Some(size) = call.args.get(3) {
            value.resize(number(size).expect("a shape has a number here"), 0);
        }
        call.set(&name, value, None);
    }
    Expect::ok()
}

/// Nobody listens at the port of the shapes.
pub(super) fn migrate(call: &mut Call<'_>) -> Expect {
    match call.get(&call.args[2]) {
        Some(_) => Expect::Error("IOERR"),
        None => Expect::Is(Value::Simple(b"NOKEY".to_vec())),
    }
}

pub(super) fn rename(call: &mut Call<'_>) -> Expect {
    let (from, to) = (call.key(&call.args[0]), call.key(&call.args[1]));
    if call.get_key(&from).is_none() {
        return Expect::Error("ERR");
    }
    if from != to {
        transfer(call, &from, to, true);
        call.remove_key(&from);
    }
    Expect::ok()
}

pub(super) fn renamenx(call: &mut Call<'_>) -> Expect {
    let (from, to) = (call.key(&call.args[0]), call.key(&call.args[1]));
    if call.get_key(&from).is_none() {
        return Expect::Error("ERR");
    }
    let is_done = transfer(call, &from, to, false);
    if is_done {
        call.remove_key(&from);
    }
    Expect::int(u8::from(is_done))
}

pub(super) fn move_(call: &mut Call<'_>) -> Expect {
    let from = call.key(&call.args[0]);
    let db = number(&call.args[1]).filter(|&db: &u16| db < DATABASES && db != call.db);
    let Some(db) = db else {
        return Expect::Error("ERR");
    };
    let to = (db, call.args[0].clone());
    let is_done = transfer(call, &from, to, false);
    if is_done {
        call.remove_key(&from);
    }
    Expect::int(u8::from(is_done))
}

pub(super) fn flushdb(db: u16, _: &Request) -> Option<Global> {
    Some(Global::FlushDb(db))
}

pub(super) fn flushall(_: u16, _: &Request) -> Option<Global> {
    Some(Global::FlushAll)
}

pub(super) fn swapdb(_: u16, request: &Request) -> Option<Global> {
    let db = |at: usize| {
        let db = number(&request.get(at)?.bytes());
        db.filter(|&db| db < DATABASES)
    };
    Some(Global::Swap(db(1)?, db(2)?))
}
