//! What commands of hashes do to the model.

use std::sync::Arc;

use super::strings::integer;
use crate::torture::model::{Call, Expect, number};
use crate::torture::script::Arg;
use crate::torture::values::{Data, Fields};

/// Fields of a hash that requests name, and those of which many are set at once.
const FIELDS: u32 = 24;
const MANY_FIELDS: u32 = 600;
/// Bytes of a value.
const VALUE_BYTES: usize = 60;
const MANY_VALUE_BYTES: usize = 200;

/// What stands in the place of a word of a shape, if it is one about fields.
pub(crate) fn words(random: &mut fastrand::Rng, token: &str) -> Option<Vec<Arg>> {
    let field = |number: u32| Arg::word(format!("f{number}"));
    Some(match token {
        "f" => vec![field(random.u32(..FIELDS))],
        "fn" => vec![Arg::word(random.u32(..3).to_string())],
        "fq" => vec![Arg::word(format!("q{}", random.u32(..2)))],
        "fs" => (0..random.usize(1..6))
            .map(|_| field(random.u32(..FIELDS)))
            .collect(),
        "fv" => (0..random.usize(1..5))
            .flat_map(|_| {
                let (len, seed) = (random.usize(..VALUE_BYTES), random.u32(..));
                [field(random.u32(..FIELDS)), Arg::Text { len, seed }]
            })
            .collect(),
        "fmany" => {
            let first = random.u32(..MANY_FIELDS);
            (first..first + random.u32(20..200)).map(field).collect()
        }
        "fvmany" => {
            let first = random.u32(..MANY_FIELDS);
            (first..first + random.u32(20..100))
                .flat_map(|number| {
                    let (len, seed) = (random.usize(..MANY_VALUE_BYTES), random.u32(..));
                    [field(number), Arg::Text { len, seed }]
                })
                .collect()
        }
        _ => return None,
    })
}

/// What a command answers of a key of another type.
fn wrong_type() -> Expect {
    Expect::Error("WRONGTYPE")
}

/// Reads the fields of the first argument; those of a missing key are none.
fn read(call: &Call<'_>, read: impl FnOnce(&Fields) -> Expect) -> Expect {
    match call.get(&call.args[0]).map(|entry| &entry.data) {
        Some(Data::Hash(fields)) => read(fields),
        Some(_) => wrong_type(),
        None => read(&Fields::new()),
    }
}

/// Changes the fields of the first argument; its expiry stays. A key without fields is none. An error changes
/// nothing.
fn change(call: &mut Call<'_>, change: impl FnOnce(&mut Fields, &[Vec<u8>]) -> Expect) -> Expect {
    let args = call.args;
    let key = call.key(&args[0]);
    let (data, expiry) = match call.get_key(&key) {
        Some(entry) => (entry.data.clone(), entry.expiry),
        None => (Data::Hash(Arc::default()), None),
    };
    let Data::Hash(before) = data else {
        return wrong_type();
    };
    let mut fields = Fields::clone(&before);
    let expect = change(&mut fields, &args[1..]);
    if fields == *before {
        return expect;
    }
    match fields.is_empty() {
        true => drop(call.remove_key(&key)),
        false => call.put(key, Data::Hash(Arc::new(fields)), expiry),
    }
    expect
}

/// Sets pairs; how many of them are new.
fn set(fields: &mut Fields, pairs: &[Vec<u8>]) -> u64 {
    let pairs = pairs.chunks(2);
    let is_new = pairs.map(|pair| fields.insert(pair[0].clone(), pair[1].clone()).is_none());
    is_new.map(u64::from).sum()
}

pub(super) fn hset(call: &mut Call<'_>) -> Expect {
    change(call, |fields, pairs| Expect::int(set(fields, pairs)))
}

pub(super) fn hmset(call: &mut Call<'_>) -> Expect {
    change(call, |fields, pairs| {
        set(fields, pairs);
        Expect::ok()
    })
}

pub(super) fn hsetnx(call: &mut Call<'_>) -> Expect {
    change(call, |fields, pair| {
        let is_new = !fields.contains_key(&pair[0]);
        if is_new {
            set(fields, pair);
        }
        Expect::int(u8::from(is_new))
    })
}

pub(super) fn hdel(call: &mut Call<'_>) -> Expect {
    change(call, |fields, names| {
        let names = names.iter();
        Expect::int(names.filter(|&name| fields.remove(name).is_some()).count() as u64)
    })
}

pub(super) fn hgetdel(call: &mut Call<'_>) -> Expect {
    change(call, |fields, args| {
        // FIELDS and their number stand before them.
        let names = args[2..].iter();
        let take = |name| Expect::bulk_or_null(fields.remove(name).as_deref());
        Expect::All(names.map(take).collect())
    })
}

/// Where the fields begin, behind FIELDS and their number.
fn first_field(args: &[Vec<u8>]) -> usize {
    let is_it = |arg: &Vec<u8>| arg.eq_ignore_ascii_case(b"FIELDS");
    2 + args.iter().position(is_it).expect("shapes have it")
}

/// Whether a time has passed: shapes have such as are far away, or long over.
fn is_over(time: &[u8]) -> bool {
    integer(time).is_some_and(|time| time <= 1000)
}

/// The model knows no expiry of fields, as none passes: shapes have no conditions on them.
pub(super) fn hexpire(call: &mut Call<'_>) -> Expect {
    change(call, |fields, args| {
        let is_over = is_over(&args[0]);
        let expire = |name| match (fields.contains_key(name), is_over) {
            (false, _) => Expect::int(-2),
            (true, false) => Expect::int(1),
            (true, true) => {
                fields.remove(name);
                Expect::int(2)
            }
        };
        Expect::All(args[first_field(args)..].iter().map(expire).collect())
    })
}

pub(super) fn hpersist(call: &mut Call<'_>) -> Expect {
    read(call, |fields| {
        let args = &call.args[1..];
        let persist = |name| match fields.contains_key(name) {
            false => Expect::int(-2),
            true => Expect::Between(-1, 1),
        };
        Expect::All(args[first_field(args)..].iter().map(persist).collect())
    })
}

pub(super) fn hgetex(call: &mut Call<'_>) -> Expect {
    change(call, |fields, args| {
        let removes = args[0] == b"PXAT" && is_over(&args[1]);
        let get = |name: &Vec<u8>| {
            let value = Expect::bulk_or_null(fields.get(name).map(|value| &value[..]));
            if removes {
                fields.remove(name);
            }
            value
        };
        Expect::All(args[first_field(args)..].iter().map(get).collect())
    })
}

pub(super) fn hsetex(call: &mut Call<'_>) -> Expect {
    change(call, |fields, args| {
        let pairs = &args[first_field(args)..];
        let names = || pairs.iter().step_by(2);
        let options = &args[..first_field(args)];
        let is_met = options.iter().all(|option| match &option[..] {
            b"NX" => fields.is_empty(),
            b"XX" => !fields.is_empty(),
            b"FNX" => names().all(|name| !fields.contains_key(name)),
            b"FXX" => names().all(|name| fields.contains_key(name)),
            _ => true,
        });
        if is_met {
            set(fields, pairs);
            if args[0] == b"PXAT" && is_over(&args[1]) {
                names().for_each(|name| drop(fields.remove(name)));
            }
        }
        Expect::int(u8::from(is_met))
    })
}

pub(super) fn hincrby(call: &mut Call<'_>) -> Expect {
    change(call, |fields, args| {
        let before = fields.get(&args[0]).map_or(Some(0), |text| integer(text));
        let sum = before
            .zip(integer(&args[1]))
            .and_then(|(before, amount)| before.checked_add(amount));
        let Some(sum) = sum else {
            return Expect::Error("ERR");
        };
        fields.insert(args[0].clone(), sum.to_string().into_bytes());
        Expect::int(sum)
    })
}

/// Sums are exact: shapes give quarters, to numbers that are small.
pub(super) fn hincrbyfloat(call: &mut Call<'_>) -> Expect {
    change(call, |fields, args| {
        let before = fields.get(&args[0]).map_or(Some(0.0), |text| number(text));
        let sum = before
            .zip(number::<f64>(&args[1]))
            .map(|(before, amount)| before + amount);
        let Some(sum) = sum else {
            return Expect::Error("ERR");
        };
        let text = sum.to_string().into_bytes();
        fields.insert(args[0].clone(), text.clone());
        Expect::bulk(&text)
    })
}

pub(super) fn hget(call: &mut Call<'_>) -> Expect {
    read(call, |fields| {
        Expect::bulk_or_null(fields.get(&call.args[1]).map(|value| &value[..]))
    })
}

pub(super) fn hmget(call: &mut Call<'_>) -> Expect {
    read(call, |fields| {
        let names = call.args[1..].iter();
        let value = |name| Expect::bulk_or_null(fields.get(name).map(|value| &value[..]));
        Expect::All(names.map(value).collect())
    })
}

pub(super) fn hgetall(call: &mut Call<'_>) -> Expect {
    read(call, |fields| Expect::Fields(fields.clone()))
}

pub(super) fn hlen(call: &mut Call<'_>) -> Expect {
    read(call, |fields| Expect::int(fields.len() as u64))
}

pub(super) fn hexists(call: &mut Call<'_>) -> Expect {
    read(call, |fields| {
        Expect::int(u8::from(fields.contains_key(&call.args[1])))
    })
}

pub(super) fn hstrlen(call: &mut Call<'_>) -> Expect {
    read(call, |fields| {
        Expect::int(fields.get(&call.args[1]).map_or(0, Vec::len) as u64)
    })
}
