//! What commands that only read have to answer.

use crate::support::Value;
use crate::torture::model::{Call, Expect, number};

pub(super) fn get(call: &mut Call<'_>) -> Expect {
    let name = &call.args[0];
    match call.string(name) {
        Some(bytes) if !call.is_sure(name) => Expect::NullOr(Value::Bulk(bytes.to_vec())),
        bytes => Expect::bulk_or_null(bytes),
    }
}

pub(super) fn mget(call: &mut Call<'_>) -> Expect {
    let names = call.args.iter();
    Expect::All(
        names
            .map(|name| Expect::bulk_or_null(call.string(name)))
            .collect(),
    )
}

pub(super) fn getrange(call: &mut Call<'_>) -> Expect {
    let bytes = call.string(&call.args[0]).unwrap_or_default();
    let bound = |at: usize| number::<usize>(&call.args[at]).expect("a shape has an offset here");
    let end = (bound(2) + 1).min(bytes.len());
    Expect::bulk(bytes.get(bound(1)..end).unwrap_or_default())
}

pub(super) fn strlen(call: &mut Call<'_>) -> Expect {
    Expect::int(call.string(&call.args[0]).map_or(0, <[u8]>::len) as u64)
}

pub(super) fn exists(call: &mut Call<'_>) -> Expect {
    let names = call.args.iter();
    Expect::int(names.filter(|name| call.get(name).is_some()).count() as u64)
}

pub(super) fn dump(call: &mut Call<'_>) -> Expect {
    let entry = call.get(&call.args[0]);
    entry.map_or(Expect::Null, |entry| {
        Expect::Payload(entry.data.in_payload())
    })
}

pub(super) fn type_(call: &mut Call<'_>) -> Expect {
    let entry = call.get(&call.args[0]);
    let name = entry.map_or("none", |entry| entry.data.type_name());
    Expect::Is(Value::Simple(name.as_bytes().to_vec()))
}

/// Least and most of an expiry, or what is answered where there is none.
fn expiry(call: &Call<'_>) -> Result<(i64, i64), Expect> {
    let Some(entry) = call.get(&call.args[0]) else {
        return Err(Expect::int(-2));
    };
    let span = entry.expiry.ok_or(Expect::int(-1))?;
    Ok((span.least as i64, span.most as i64))
}

pub(super) fn pttl(call: &mut Call<'_>) -> Expect {
    match expiry(call) {
        Ok((least, most)) => {
            Expect::Between(least - call.at.most as i64, most - call.at.least as i64)
        }
        Err(expect) => expect,
    }
}

pub(super) fn pexpiretime(call: &mut Call<'_>) -> Expect {
    match expiry(call) {
        Ok((least, most)) => Expect::Between(least, most),
        Err(expect) => expect,
    }
}

/// Of SELECT, which the model runs itself.
pub(super) fn unreachable(_: &mut Call<'_>) -> Expect {
    unreachable!("the model changes its database itself")
}
