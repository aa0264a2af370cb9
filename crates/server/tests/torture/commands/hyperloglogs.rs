//! What commands of HyperLogLogs do to the model: keyspace has what they do to bytes.

use keyspace::hyperloglog::{self, Density, Element, Union};

use crate::torture::model::{Call, Expect};
use crate::torture::script::Arg;

/// Elements that requests name.
const ELEMENTS: u32 = 20_000;
/// `hll-sparse-max-bytes`.
const MOST_SPARSE: usize = 3000;

/// What stands in the place of a word of a shape, if it is one about elements.
pub(crate) fn words(random: &mut fastrand::Rng, token: &str) -> Option<Vec<Arg>> {
    let count = match token {
        "ye" => 1..2,
        "yes" => 1..8,
        "yemany" => 50..1500,
        _ => return None,
    };
    let count = random.u32(count);
    let elements = (0..count).map(|_| Arg::word(random.u32(..ELEMENTS).to_string()));
    Some(elements.collect())
}

fn add(value: &mut Vec<u8>, element: Element) -> bool {
    hyperloglog::add(value, element, MOST_SPARSE).expect("values of the model are whole")
}

pub(super) fn pfadd(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let is_new = call.get(&args[0]).is_none();
    if !is_new && call.string(&args[0]).is_none() {
        return Expect::Error("WRONGTYPE");
    }
    let mut value = call
        .string(&args[0])
        .map_or_else(hyperloglog::empty, <[u8]>::to_vec);
    let mut is_changed = is_new;
    for element in &args[1..] {
        is_changed |= add(&mut value, Element::of(element));
    }
    if is_changed {
        hyperloglog::forget_count(&mut value);
        call.change(&args[0], |bytes| *bytes = value);
    }
    Expect::int(u64::from(is_changed))
}

/// The union of some keys, and whether one is dense; `None` if one is no string.
fn union(call: &Call<'_>, names: &[Vec<u8>]) -> Option<(Union, bool)> {
    let (mut union, mut is_dense) = (Union::default(), false);
    for name in names {
        if call.get(name).is_some() {
            let value = call.string(name)?;
            is_dense |= hyperloglog::density(value) == Some(Density::Dense);
            union.add(value).expect("values of the model are whole");
        }
    }
    Some((union, is_dense))
}

/// Of two keys or more: that of one would note the estimate, where it can be written.
pub(super) fn pfcount(call: &mut Call<'_>) -> Expect {
    match union(call, call.args) {
        Some((union, _)) => Expect::int(union.count()),
        None => Expect::Error("WRONGTYPE"),
    }
}

pub(super) fn pfmerge(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some((union, is_dense)) = union(call, args) else {
        return Expect::Error("WRONGTYPE");
    };
    let mut value = call
        .string(&args[0])
        .map_or_else(hyperloglog::empty, <[u8]>::to_vec);
    if is_dense {
        hyperloglog::make_dense(&mut value).expect("values of the model are whole");
    }
    for element in union.elements() {
        add(&mut value, element);
    }
    hyperloglog::forget_count(&mut value);
    call.change(&args[0], |bytes| *bytes = value);
    Expect::ok()
}

/// `TODENSE key`
pub(super) fn pfdebug(call: &mut Call<'_>) -> Expect {
    let name = &call.args[1];
    if call.get(name).is_none() {
        return Expect::Error("ERR The specified key does not exist");
    }
    let Some(mut value) = call.string(name).map(<[u8]>::to_vec) else {
        return Expect::Error("WRONGTYPE");
    };
    let is_made = hyperloglog::make_dense(&mut value).expect("values of the model are whole");
    if is_made {
        call.change(name, |bytes| *bytes = value);
    }
    Expect::int(u64::from(is_made))
}
