//! What commands of sorted sets do to the model. Scores are multiples of a half.

use std::sync::Arc;

use crate::support::Value;
use crate::torture::model::{Call, Expect};
use crate::torture::script::Arg;
use crate::torture::values::{Data, Scores, halves_of, text_of_halves};

/// Members that requests name, and those of which many are added at once.
const MEMBERS: u32 = 30;
const MANY_MEMBERS: u32 = 900;
/// Scores are below this, in halves; some members share one.
const SCORES: i64 = 60;

/// Places, and the scores that they are.
const PLACES: &[(&str, i64)] = &[
    ("13.361389 38.115556", 3_479_099_956_230_698),
    ("15.087269 37.502669", 3_479_447_370_796_909),
    ("-122.27652 37.805186", 1_367_952_638_197_536),
];

/// A member: half of them are integers.
fn member(number: u32) -> Arg {
    match number % 2 {
        0 => Arg::word(number.to_string()),
        _ => Arg::word(format!("scored {number}")),
    }
}

fn score(random: &mut fastrand::Rng) -> Arg {
    Arg::word(text_of_halves(random.i64(-SCORES..SCORES)))
}

/// Scores with members.
fn pairs(random: &mut fastrand::Rng, members: std::ops::Range<u32>) -> Vec<Arg> {
    let mut words = Vec::new();
    for number in members {
        words.extend([score(random), member(number)]);
    }
    words
}

/// What stands in the place of a word of a shape, if it is one about scores.
pub(crate) fn words(random: &mut fastrand::Rng, token: &str) -> Option<Vec<Arg>> {
    Some(match token {
        "zs" => vec![score(random)],
        "gp" => {
            let place = PLACES[random.usize(..PLACES.len())].0;
            let words = place.split(' ').map(|word| Arg::word(word.to_owned()));
            words.chain([member(random.u32(2..MEMBERS))]).collect()
        }
        "zm" => vec![member(random.u32(..MEMBERS))],
        "zms" => (0..random.usize(1..6))
            .map(|_| member(random.u32(..MEMBERS)))
            .collect(),
        "zp" => {
            let first = random.u32(..MEMBERS);
            pairs(random, first..first + 3)
        }
        "zpmany" => {
            let (first, count) = (random.u32(..MANY_MEMBERS), random.u32(20..300));
            pairs(random, first..first + count)
        }
        "zpsame" => {
            let (first, count) = (random.u32(..MANY_MEMBERS), random.u32(20..300));
            let same = score(random);
            let pairs = (first..first + count).map(|number| [same.clone(), member(number)]);
            pairs.flatten().collect()
        }
        _ => return None,
    })
}

/// The members of a key; those of a missing key are none. `None`: it is of another type.
fn scores(call: &Call<'_>, name: &[u8]) -> Option<Scores> {
    match call.get(name).map(|entry| &entry.data) {
        Some(Data::SortedSet(scores)) => Some(Scores::clone(scores)),
        Some(_) => None,
        None => Some(Scores::new()),
    }
}

fn wrong_type() -> Expect {
    Expect::Error("WRONGTYPE")
}

/// Gives a key other members; its expiry stays. A key without members is none.
fn put(call: &mut Call<'_>, name: &[u8], scores: Scores) {
    let key = call.key(name);
    let expiry = call.get_key(&key).and_then(|entry| entry.expiry);
    match scores.is_empty() {
        true => drop(call.remove_key(&key)),
        false => call.put(key, Data::SortedSet(Arc::new(scores)), expiry),
    }
}

/// Members in their order.
fn ranked(scores: &Scores) -> Vec<(i64, Vec<u8>)> {
    let mut all: Vec<_> = scores
        .iter()
        .map(|(name, &score)| (score, name.clone()))
        .collect();
    all.sort_unstable();
    all
}

fn halves(word: &[u8]) -> i64 {
    halves_of(&Value::Bulk(word.to_vec())).expect("shapes have such scores")
}

pub(super) fn zadd(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some(mut found) = scores(call, &args[0]) else {
        return wrong_type();
    };
    let before = found.clone();
    let is_option = |word: &Vec<u8>| {
        ["NX", "XX", "GT", "LT", "CH"]
            .iter()
            .any(|option| option.as_bytes() == &word[..])
    };
    let options: Vec<&[u8]> = args[1..]
        .iter()
        .take_while(|word| is_option(word))
        .map(|word| &word[..])
        .collect();
    let has = |option: &str| options.contains(&option.as_bytes());
    let (mut added, mut changed) = (0_u64, 0_u64);
    for pair in args[1 + options.len()..].chunks(2) {
        let to = halves(&pair[0]);
        match found.get(&pair[1]).copied() {
            None if has("XX") => continue,
            None => added += 1,
            Some(_) if has("NX") => continue,
            Some(from) if has("GT") && to <= from || has("LT") && to >= from => continue,
            Some(from) => changed += u64::from(from != to),
        }
        found.insert(pair[1].clone(), to);
    }
    if found != before {
        put(call, &args[0], found);
    }
    Expect::int(if has("CH") { added + changed } else { added })
}

pub(super) fn zincrby(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some(mut found) = scores(call, &args[0]) else {
        return wrong_type();
    };
    let before = found.get(&args[2]).copied();
    let after = before.unwrap_or(0) + halves(&args[1]);
    if before != Some(after) {
        found.insert(args[2].clone(), after);
        put(call, &args[0], found);
    }
    Expect::Score(after)
}

pub(super) fn zrem(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some(mut found) = scores(call, &args[0]) else {
        return wrong_type();
    };
    let removed = args[1..]
        .iter()
        .filter(|name| found.remove(*name).is_some())
        .count();
    if removed > 0 {
        put(call, &args[0], found);
    }
    Expect::int(removed as u64)
}

/// Removes the members that are chosen, of all in their order.
fn remove(
    call: &mut Call<'_>,
    is_chosen: impl Fn(usize, i64) -> bool,
) -> Option<Vec<(i64, Vec<u8>)>> {
    let name = &call.args[0];
    let mut found = scores(call, name)?;
    let all = ranked(&found).into_iter().enumerate();
    let gone = all.filter(|(rank, its)| is_chosen(*rank, its.0));
    let gone: Vec<_> = gone.map(|(_, its)| its).collect();
    for (_, member) in &gone {
        found.remove(member);
    }
    if !gone.is_empty() {
        put(call, name, found);
    }
    Some(gone)
}

/// From the start on.
pub(super) fn zremrangebyrank(call: &mut Call<'_>) -> Expect {
    let stop: usize = String::from_utf8_lossy(&call.args[2])
        .parse()
        .expect("shapes have such ranks");
    let gone = remove(call, |rank, _| rank <= stop);
    gone.map_or_else(wrong_type, |gone| Expect::int(gone.len() as u64))
}

pub(super) fn zremrangebyscore(call: &mut Call<'_>) -> Expect {
    let (min, max) = (halves(&call.args[1]), halves(&call.args[2]));
    let gone = remove(call, |_, score| (min..=max).contains(&score));
    gone.map_or_else(wrong_type, |gone| Expect::int(gone.len() as u64))
}

/// All of them.
pub(super) fn zremrangebylex(call: &mut Call<'_>) -> Expect {
    let gone = remove(call, |_, _| true);
    gone.map_or_else(wrong_type, |gone| Expect::int(gone.len() as u64))
}

fn popped(gone: Vec<(i64, Vec<u8>)>) -> Expect {
    Expect::Scored(gone)
}

fn count_of(call: &Call<'_>) -> usize {
    let count = call
        .args
        .get(1)
        .map(|count| String::from_utf8_lossy(count).parse());
    count.map_or(1, |count| count.expect("shapes have such counts"))
}

pub(super) fn zpopmin(call: &mut Call<'_>) -> Expect {
    let count = count_of(call);
    remove(call, |rank, _| rank < count).map_or_else(wrong_type, popped)
}

pub(super) fn zpopmax(call: &mut Call<'_>) -> Expect {
    let count = count_of(call);
    let Some(found) = scores(call, &call.args[0]) else {
        return wrong_type();
    };
    let first = found.len().saturating_sub(count);
    let gone = remove(call, |rank, _| rank >= first).expect("it is a sorted set");
    popped(gone.into_iter().rev().collect())
}

/// Takes members from the end of the highest scores, or of the lowest.
fn take(found: &mut Scores, is_max: bool, most: usize) -> Vec<(i64, Vec<u8>)> {
    let mut taken = ranked(found);
    if is_max {
        taken.reverse();
    }
    taken.truncate(most);
    for (_, member) in &taken {
        found.remove(member);
    }
    taken
}

/// `count key ... MIN|MAX [COUNT count]`, from an argument on.
fn pop_several(call: &mut Call<'_>, at: usize) -> Expect {
    let args = &call.args[at..];
    let number = |word: &Vec<u8>| {
        let text = String::from_utf8_lossy(word);
        text.parse::<usize>().expect("shapes have numbers here")
    };
    let (keys, rest) = args[1..].split_at(number(&args[0]));
    for name in keys {
        let Some(mut found) = scores(call, name) else {
            return wrong_type();
        };
        if !found.is_empty() {
            let taken = take(&mut found, rest[0] == b"MAX", rest.get(2).map_or(1, number));
            put(call, name, found);
            return Expect::All(vec![Expect::bulk(name), Expect::Scored(taken)]);
        }
    }
    Expect::Null
}

pub(super) fn zmpop(call: &mut Call<'_>) -> Expect {
    pop_several(call, 0)
}

pub(super) fn bzmpop(call: &mut Call<'_>) -> Expect {
    pop_several(call, 1)
}

/// `key ... timeout`: something is there, or it is in a transaction, or the time passes.
fn pop_first(call: &mut Call<'_>, is_max: bool) -> Expect {
    let args = call.args;
    for name in &args[..args.len() - 1] {
        let Some(mut found) = scores(call, name) else {
            return wrong_type();
        };
        if let Some((score, member)) = take(&mut found, is_max, 1).pop() {
            put(call, name, found);
            let items = [
                Expect::bulk(name),
                Expect::bulk(&member),
                Expect::Score(score),
            ];
            return Expect::All(items.into());
        }
    }
    Expect::Null
}

pub(super) fn bzpopmin(call: &mut Call<'_>) -> Expect {
    pop_first(call, false)
}

pub(super) fn bzpopmax(call: &mut Call<'_>) -> Expect {
    pop_first(call, true)
}

/// `target source min max BYSCORE`; the expiry of the target goes.
pub(super) fn zrangestore(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some(found) = scores(call, &args[1]) else {
        return wrong_type();
    };
    let range = halves(&args[2])..=halves(&args[3]);
    let chosen: Scores = found
        .into_iter()
        .filter(|(_, score)| range.contains(score))
        .collect();
    let len = chosen.len() as u64;
    call.remove(&args[0]);
    put(call, &args[0], chosen);
    Expect::int(len)
}

pub(super) fn zcard(call: &mut Call<'_>) -> Expect {
    let found = scores(call, &call.args[0]);
    found.map_or_else(wrong_type, |found| Expect::int(found.len() as u64))
}

pub(super) fn zscore(call: &mut Call<'_>) -> Expect {
    let Some(found) = scores(call, &call.args[0]) else {
        return wrong_type();
    };
    let score = found.get(&call.args[1]);
    score.map_or(Expect::Null, |&score| Expect::Score(score))
}

pub(super) fn zrank(call: &mut Call<'_>) -> Expect {
    let Some(found) = scores(call, &call.args[0]) else {
        return wrong_type();
    };
    let rank = ranked(&found).iter().position(|its| its.1 == call.args[1]);
    rank.map_or(Expect::Null, |rank| Expect::int(rank as u64))
}

pub(super) fn zcount(call: &mut Call<'_>) -> Expect {
    let Some(found) = scores(call, &call.args[0]) else {
        return wrong_type();
    };
    let range = halves(&call.args[1])..=halves(&call.args[2]);
    Expect::int(found.values().filter(|score| range.contains(score)).count() as u64)
}

/// `key 0 -1 WITHSCORES`
pub(super) fn zrange(call: &mut Call<'_>) -> Expect {
    let found = scores(call, &call.args[0]);
    found.map_or_else(wrong_type, |found| popped(ranked(&found)))
}

/// The scores of a set; members of one that is not sorted have 1.
fn scores_of_any(call: &Call<'_>, name: &[u8]) -> Option<Scores> {
    match call.get(name).map(|entry| &entry.data) {
        Some(Data::Set(members)) => Some(members.iter().map(|name| (name.clone(), 2)).collect()),
        _ => scores(call, name),
    }
}

/// What several sets make, the number of which is the first of these words.
fn combined(
    call: &Call<'_>,
    words: &[Vec<u8>],
    combine: fn(Scores, &Scores) -> Scores,
) -> Option<Scores> {
    let count: usize = String::from_utf8_lossy(&words[0])
        .parse()
        .expect("shapes say how many");
    let names = words[1..=count].iter();
    let sets: Option<Vec<Scores>> = names.map(|name| scores_of_any(call, name)).collect();
    let mut sets = sets?.into_iter();
    let first = sets.next().expect("shapes name some");
    Some(sets.fold(first, |first, second| combine(first, &second)))
}

fn union(mut first: Scores, second: &Scores) -> Scores {
    for (name, score) in second {
        *first.entry(name.clone()).or_default() += score;
    }
    first
}

fn inter(first: Scores, second: &Scores) -> Scores {
    let both = first.into_iter().filter_map(|(name, score)| {
        let other = second.get(&name)?;
        Some((name, score + other))
    });
    both.collect()
}

fn diff(mut first: Scores, second: &Scores) -> Scores {
    first.retain(|name, _| !second.contains_key(name));
    first
}

/// The expiry of the key goes.
fn store(call: &mut Call<'_>, combine: fn(Scores, &Scores) -> Scores) -> Expect {
    let args = call.args;
    let Some(found) = combined(call, &args[1..], combine) else {
        return wrong_type();
    };
    let len = found.len() as u64;
    call.remove(&args[0]);
    put(call, &args[0], found);
    Expect::int(len)
}

pub(super) fn zunionstore(call: &mut Call<'_>) -> Expect {
    store(call, union)
}

pub(super) fn zinterstore(call: &mut Call<'_>) -> Expect {
    store(call, inter)
}

pub(super) fn zdiffstore(call: &mut Call<'_>) -> Expect {
    store(call, diff)
}

/// `count key ... WITHSCORES`
pub(super) fn zunion(call: &mut Call<'_>) -> Expect {
    let found = combined(call, call.args, union);
    found.map_or_else(wrong_type, |found| popped(ranked(&found)))
}

pub(super) fn geoadd(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    let Some(mut found) = scores(call, &args[0]) else {
        return wrong_type();
    };
    let (option, rest) = match args.len() {
        4 => (None, &args[1..]),
        _ => (Some(&args[1][..]), &args[2..]),
    };
    let place = [&rest[0][..], b" ", &rest[1]].concat();
    let place = PLACES.iter().find(|(text, _)| text.as_bytes() == place);
    let score = 2 * place.expect("shapes have such places").1;
    let before = found.get(&rest[2]).copied();
    if before.is_some() && option == Some(b"NX") || before == Some(score) {
        return Expect::int(0);
    }
    found.insert(rest[2].clone(), score);
    put(call, &args[0], found);
    Expect::int(u8::from(before.is_none() || option == Some(b"CH")))
}

/// All members of a key go to another, whose expiry goes.
fn store_all(call: &mut Call<'_>, from: &[u8], to: &[u8]) -> Expect {
    let Some(found) = scores(call, from) else {
        return wrong_type();
    };
    let len = found.len() as u64;
    call.remove(to);
    put(call, to, found);
    Expect::int(len)
}

/// `target source` and a circle that is the earth
pub(super) fn geosearchstore(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    store_all(call, &args[1], &args[0])
}

/// `key BYPOLYGON corners longitude latitude ..`: one around Sicily, one around its second place, and one in
/// America.
pub(super) fn geosearch(call: &mut Call<'_>) -> Expect {
    let Some(found) = scores(call, &call.args[0]) else {
        return wrong_type();
    };
    let inside = match &call.args[3][..] {
        b"10" => &PLACES[..2],
        b"14" => &PLACES[1..2],
        _ => &PLACES[2..],
    };
    // The model's scores are in halves.
    let is_inside = |score: i64| inside.iter().any(|place| place.1 * 2 == score);
    let members = found.into_iter().filter(|&(_, score)| is_inside(score));
    Expect::Members(members.map(|(member, _)| member).collect())
}

/// `source longitude latitude radius km STORE target`, a circle that is the earth
pub(super) fn georadius(call: &mut Call<'_>) -> Expect {
    let args = call.args;
    store_all(call, &args[0], &args[6])
}

/// Around a member that is nowhere.
pub(super) fn georadiusbymember(call: &mut Call<'_>) -> Expect {
    match scores(call, &call.args[0]) {
        Some(found) if found.is_empty() => Expect::Is(Value::Array(Vec::new())),
        Some(_) => Expect::Error("ERR could not decode"),
        None => wrong_type(),
    }
}
