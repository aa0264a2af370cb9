//! `--hotkeys`: the keys that are used most. A server that knows them is asked (HOTKEYS TOP of Ferrite); of
//! others all keys are walked through, as far as a server with a policy of LFU remembers how often each is
//! used.

use std::io::{self, Write};

use resp::Value;

use super::sampled::Sampled;
use super::walk::Walk;
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::format::quoted;
use crate::limits::HOT_KEYS;
use crate::session::Session;

pub(super) fn run(mut session: Session, options: &Options) -> Result {
    // Which keys match a pattern only a walk tells.
    if options.keys.pattern.is_none()
        && let Some(keys) = known_to_servers(&mut session)?
    {
        return show(&keys);
    }
    let mut out = io::stdout().lock();
    let mut walk = Walk::begin(session, options)?;
    let mut sampled = Sampled::begin(&mut out, "hot")?;
    // Ascending, so that the first is the one to give way.
    let mut hottest: Vec<(u64, String)> = Vec::new();
    walk.each(|session, keys, percent| {
        let counters = counters(session, &keys)?;
        for (key, counter) in keys.iter().zip(counters) {
            sampled.add(&mut out, percent)?;
            let Some(key) = keep(&mut hottest, key, counter) else {
                continue;
            };
            writeln!(
                out,
                "[{percent:05.2}%] Hot key '{key}' found so far with counter {counter}"
            )?;
        }
        Ok(())
    })?;
    sampled.end(&mut out, &walk)?;
    for (counter, key) in hottest.iter().rev() {
        writeln!(out, "hot key found with counter: {counter}\tkeyname: {key}")?;
    }
    Ok(())
}

/// A key, as HOTKEYS TOP tells of it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Known {
    key: Vec<u8>,
    db: i64,
    command: Vec<u8>,
    operations_per_s: i64,
    bytes_per_s: i64,
}

/// The same of all nodes, where there are several: the most used of all. `None` also if one of them does not
/// answer that.
fn known_to_servers(session: &mut Session) -> Result<Option<Vec<Known>>> {
    let Some(nodes) = session.nodes()? else {
        return known_to_server(session);
    };
    let mut all = Vec::new();
    for node in nodes {
        session.go_to(node)?;
        let Some(known) = known_to_server(session)? else {
            return Ok(None);
        };
        all.extend(known);
    }
    all.sort_by_key(|known| std::cmp::Reverse(known.operations_per_s));
    all.truncate(HOT_KEYS);
    Ok(Some(all))
}

/// The keys that the server knows to be used most; `None` if it does not answer that.
fn known_to_server(session: &mut Session) -> Result<Option<Vec<Known>>> {
    let count = HOT_KEYS.to_string();
    let request = ["HOTKEYS", "TOP", "COUNT", &count].map(|word| word.as_bytes().to_vec());
    Ok(match session.ask(&request)? {
        Value::Array(keys) => keys.into_iter().map(known).collect(),
        _ => None,
    })
}

/// One key of the reply: a map, or pairs in an array. `None` if it is neither.
fn known(reply: Value) -> Option<Known> {
    let pairs: Vec<(Value, Value)> = match reply {
        Value::Map(pairs) => pairs,
        Value::Array(words) => {
            let mut words = words.into_iter();
            std::iter::from_fn(|| Some((words.next()?, words.next()?))).collect()
        }
        _ => return None,
    };
    let mut known = Known::default();
    for (name, value) in pairs {
        let Value::Bulk(name) = name else { continue };
        match (name.as_slice(), value) {
            (b"key", Value::Bulk(key)) => known.key = key,
            (b"command", Value::Bulk(command)) => known.command = command,
            (b"db", Value::Integer(db)) => known.db = db,
            (b"ops_per_sec", Value::Integer(rate)) => known.operations_per_s = rate,
            (b"bytes_per_sec", Value::Integer(rate)) => known.bytes_per_s = rate,
            _ => {}
        }
    }
    Some(known)
}

fn show(keys: &[Known]) -> Result {
    let mut out = io::stdout().lock();
    write!(
        out,
        "\n# The keys that are used most, as the server has seen them.\n\n"
    )?;
    if keys.is_empty() {
        writeln!(out, "No key was used lately.")?;
    }
    for known in keys {
        writeln!(
            out,
            "{:>9} operations/s {:>12} bytes/s  db{}  {:<10} {}",
            known.operations_per_s,
            known.bytes_per_s,
            known.db,
            String::from_utf8_lossy(&known.command),
            quoted(&known.key)
        )?;
    }
    Ok(())
}

/// How often keys are used, in the server's own measure; 0 for those that are gone.
fn counters(session: &mut Session, keys: &[Vec<u8>]) -> Result<Vec<u64>> {
    let request = |key| vec![&b"OBJECT"[..], b"FREQ", key];
    let requests: Vec<Vec<&[u8]>> = keys.iter().map(|key| request(key)).collect();
    let replies = session.ask_all(&requests)?.into_iter();
    let counters = keys.iter().zip(replies).map(|(key, reply)| match reply {
        Value::Integer(counter) => Ok(u64::try_from(counter).unwrap_or(0)),
        Value::Error(text) => Err(Failure::Other(format!(
            "Error: {}",
            String::from_utf8_lossy(&text)
        ))),
        _ => {
            eprintln!(
                "Warning: OBJECT freq on '{}' failed (may have been deleted)",
                quoted(key)
            );
            Ok(0)
        }
    });
    counters.collect()
}

/// Keeps a key if it is among the hottest so far, and says how it is written.
fn keep(hottest: &mut Vec<(u64, String)>, key: &[u8], counter: u64) -> Option<String> {
    let place = hottest.partition_point(|(its, _)| *its < counter);
    let is_full = hottest.len() == HOT_KEYS;
    if counter == 0 || is_full && place == 0 {
        return None;
    }
    let key = quoted(key);
    hottest.insert(place, (counter, key.clone()));
    if is_full {
        hottest.remove(0);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_either_protocol() {
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let words = vec![
            bulk("key"),
            bulk("k"),
            bulk("db"),
            Value::Integer(3),
            bulk("command"),
            bulk("get"),
            bulk("new"),
            bulk("field"),
            bulk("ops_per_sec"),
            Value::Integer(7),
        ];
        let pairs = words.chunks(2);
        let pairs = pairs.map(|pair| (pair[0].clone(), pair[1].clone()));
        let expected = Known {
            key: b"k".to_vec(),
            db: 3,
            command: b"get".to_vec(),
            operations_per_s: 7,
            bytes_per_s: 0,
        };
        let map = known(Value::Map(pairs.collect()));
        assert_eq!(map.as_ref(), Some(&expected));
        assert_eq!(known(Value::Array(words)), map);
        assert_eq!(known(Value::Integer(1)), None);
    }

    #[test]
    fn the_hottest_stay() {
        let mut hottest = Vec::new();
        assert_eq!(keep(&mut hottest, b"cold", 0), None);
        for counter in (1..=100).rev() {
            let key = counter.to_string();
            let kept = keep(&mut hottest, key.as_bytes(), counter);
            assert_eq!(kept.is_some(), counter > 100 - HOT_KEYS as u64);
        }
        assert!(keep(&mut hottest, b"new", 99).is_some());
        let counters: Vec<u64> = hottest.iter().map(|(counter, _)| *counter).collect();
        let mut expected: Vec<u64> = (86..=100).collect();
        expected.push(99);
        expected.sort_unstable();
        assert_eq!(counters, expected);
    }
}
