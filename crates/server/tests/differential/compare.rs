//! When two replies are alike: to the letter, but for what is each server's own affair and what differs on
//! purpose.

use super::request::Request;
use super::support::Value;

/// How far the clocks of two replies may be apart: the servers answered at different moments. Generous,
/// because any wrong time differs by far more (see the invariants of `words`).
const NEAR_S: i64 = 60;

/// How a reply is compared. Errors are always compared to the letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Exact,
    /// An array or a set in any order.
    Unordered,
    /// Integers this far apart at most; negative ones mean something else and are exact.
    Near(i64),
    /// A map, or fields and values in turn, in any order.
    Pairs,
    /// Of one shape: keys or fields that each server chooses. The next request shows all of them.
    Chosen,
    /// A server's description of itself: the same fields of the same types, and the same protocol.
    Hello,
    /// A cursor and a page of keys, or of fields with values.
    Page,
    /// Facts about streams: but for times, and for how redis-server stores entries.
    Stream,
    /// What clients read of a command's description: name, arity and key positions.
    CommandInfo,
}

/// The rule for the reply to a request.
pub(crate) fn rule(request: &Request) -> Rule {
    match (&request.upper(0)[..], &request.upper(1)[..]) {
        (b"TTL" | b"EXPIRETIME", _) | (b"OBJECT", b"IDLETIME") => Rule::Near(NEAR_S),
        (b"PTTL" | b"PEXPIRETIME", _) => Rule::Near(NEAR_S * 1000),
        (
            b"KEYS" | b"HKEYS" | b"HVALS" | b"SMEMBERS" | b"SINTER" | b"SUNION" | b"SDIFF"
            | b"SPOP",
            _,
        ) => Rule::Unordered,
        (b"HGETALL", _) => Rule::Pairs,
        (b"RANDOMKEY" | b"HRANDFIELD" | b"SRANDMEMBER" | b"ZRANDMEMBER", _) => Rule::Chosen,
        (b"HELLO", _) => Rule::Hello,
        (b"SCAN" | b"HSCAN" | b"SSCAN" | b"ZSCAN", _) => Rule::Page,
        (b"COMMAND", b"INFO") => Rule::CommandInfo,
        (b"XINFO" | b"XPENDING", _) => Rule::Stream,
        _ => Rule::Exact,
    }
}

/// One way in which Ferrite answers differently on purpose. Each is listed in docs/compatibility.md.
pub(crate) struct Difference {
    pub(crate) name: &'static str,
    /// Why: printed with the summary, so that the list stays in sight.
    pub(crate) reason: &'static str,
    /// Whether these two replies to this request are that difference and nothing else.
    pub(crate) covers: fn(&Request, &Value, &Value) -> bool,
}

/// Every deliberate difference that the stream can meet.
pub(crate) const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "OBJECT REFCOUNT",
        reason: "values are not shared: every one has a single reference, where redis-server shares the \
                 integers up to 9999",
        covers: |request, reference, subject| {
            request.upper(1) == b"REFCOUNT"
                && *reference == Value::Int(i64::from(i32::MAX))
                && *subject == Value::Int(1)
        },
    },
    Difference {
        name: "OBJECT ENCODING of sets",
        reason: "small sets that are no integers are a listpack as in Redis 7.2, not a hashtable",
        covers: |request, reference, subject| {
            request.upper(1) == b"ENCODING"
                && reference.bytes() == Some(b"hashtable")
                && matches!(subject.bytes(), Some(b"listpack" | b"intset"))
        },
    },
    Difference {
        name: "ZRANK with a score",
        reason: "ZRANK and ZREVRANK take WITHSCORE as in Redis 7.2; COMMAND tells the arity",
        covers: |request, reference, subject| {
            let is_it = |word: Vec<u8>| matches!(&word[..], b"ZRANK" | b"ZREVRANK");
            let is_told = request.upper(0) == b"COMMAND" && is_it(request.upper(2));
            let is_refused = matches!(reference, Value::Error(_));
            let has_word = request.words.len() == 4 && *subject != Value::NullBulk;
            is_told || (is_it(request.upper(0)) && has_word && is_refused)
        },
    },
    Difference {
        name: "XREAD of the last entry",
        reason: "the ID + is the last entry, as in Redis 7.4; of XREADGROUP the error says so",
        covers: |request, reference, _| {
            let is_it = |word: Vec<u8>| matches!(&word[..], b"XREAD" | b"XREADGROUP");
            let has_it = request.words.iter().any(|word| word == b"+");
            let invalid = "ERR Invalid stream ID specified as stream command argument";
            is_it(request.upper(0)) && has_it && reference.text() == invalid
        },
    },
    Difference {
        name: "OBJECT ENCODING of lists",
        reason: "small lists are a listpack as in Redis 7.2, not a quicklist",
        covers: |request, reference, subject| {
            request.upper(1) == b"ENCODING"
                && reference.bytes() == Some(b"quicklist")
                && subject.bytes() == Some(b"listpack")
        },
    },
    Difference {
        name: "SORT by numbers",
        reason: "redis-server blames SORT for a number of an earlier command that was out of range (errno)",
        covers: |request, reference, subject| {
            let is_refused =
                matches!(reference, Value::Error(text) if text.ends_with(b"converted into double"));
            request.upper(0).starts_with(b"SORT")
                && is_refused
                && !matches!(subject, Value::Error(_))
        },
    },
    Difference {
        name: "SORT ALPHA of strings with zeros",
        reason: "redis-server compares up to the first zero, and strings that are equal so far have no order",
        covers: |request, reference, subject| {
            let is_alpha = request
                .words
                .iter()
                .any(|word| word.eq_ignore_ascii_case(b"ALPHA"));
            let (Value::Array(left), Value::Array(right)) = (reference, subject) else {
                return false;
            };
            let ends_early = |item: &Value| item.bytes().is_some_and(|text| text.contains(&0));
            request.upper(0).starts_with(b"SORT")
                && is_alpha
                && left.iter().any(ends_early)
                && sorted(left) == sorted(right)
        },
    },
    Difference {
        name: "OBJECT ENCODING of sorted sets",
        reason: "SORT leaves a sorted set as it is, where redis-server unpacks it",
        covers: |request, reference, subject| {
            request.upper(1) == b"ENCODING"
                && reference.bytes() == Some(b"skiplist")
                && subject.bytes() == Some(b"listpack")
        },
    },
    Difference {
        name: "BITCOUNT with a start alone",
        reason: "it counts from there to the end, as in Valkey",
        covers: |request, reference, subject| {
            let is_it = request.upper(0) == b"BITCOUNT" && request.words.len() == 3;
            is_it && matches!(reference, Value::Error(_)) && reference != subject
        },
    },
    Difference {
        name: "COMMAND GETKEYS of a name",
        reason: "it says what is wrong with the command, as since Redis 7.2",
        covers: |request, reference, subject| {
            let is_refused = |reply: &Value| matches!(reply, Value::Error(_));
            let is_it = request.upper(1).starts_with(b"GETKEYS") && request.words.len() == 3;
            request.upper(0) == b"COMMAND" && is_it && is_refused(reference) && is_refused(subject)
        },
    },
    Difference {
        name: "KEYS alone",
        reason: "lists all keys, where redis-server wants a pattern; COMMAND tells the arity",
        covers: |request, reference, subject| {
            let is_alone = request.upper(0) == b"KEYS" && request.words.len() == 1;
            let is_told = request.upper(0) == b"COMMAND" && request.upper(2) == b"KEYS";
            let is_refused = matches!(reference, Value::Error(_));
            is_told || (is_alone && is_refused && matches!(subject, Value::Array(_)))
        },
    },
];

/// Whether the reply of the subject is as good as that of the reference.
pub(crate) fn alike(rule: Rule, reference: &Value, subject: &Value) -> bool {
    match (rule, reference, subject) {
        (_, Value::Error(_), _) | (_, _, Value::Error(_)) => reference == subject,
        (Rule::Unordered, Value::Array(left), Value::Array(right))
        | (Rule::Unordered, Value::Set(left), Value::Set(right)) => sorted(left) == sorted(right),
        (Rule::Near(distance), Value::Int(left), Value::Int(right)) => {
            left == right
                || (*left >= 0 && *right >= 0 && left.abs_diff(*right) <= distance.unsigned_abs())
        }
        (Rule::Pairs, left, right) => match (fields(left), fields(right)) {
            (Some(left), Some(right)) => {
                std::mem::discriminant(reference) == std::mem::discriminant(subject)
                    && sorted_pairs(left) == sorted_pairs(right)
            }
            _ => false,
        },
        (Rule::Chosen, left, right) => is_of_shape(left, right),
        (Rule::Hello, left, right) => alike_hello(left, right),
        (Rule::Page, left, right) => is_page(left) && is_page(right),
        (Rule::Stream, left, right) => timeless(left) == timeless(right),
        (Rule::CommandInfo, Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| alike_info(left, right))
        }
        _ => reference == subject,
    }
}

/// Facts about a stream without times. Some times have a name. The time of a pending entry stands after its ID
/// and before the number of its deliveries.
fn timeless(facts: &Value) -> Value {
    const NAMES: [&[u8]; 4] = [
        b"radix-tree-keys",
        b"radix-tree-nodes",
        b"idle",
        b"seen-time",
    ];
    let is_timed = |name: &Value| name.bytes().is_some_and(|name| NAMES.contains(&name));
    match facts {
        Value::Map(pairs) => Value::Map(
            pairs
                .iter()
                .map(|(name, value)| match is_timed(name) {
                    true => (name.clone(), Value::Null),
                    false => (name.clone(), timeless(value)),
                })
                .collect(),
        ),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(timeless).collect();
            for at in 1..items.len() {
                if is_timed(&items[at - 1]) {
                    items[at] = Value::Null;
                }
            }
            if let [Value::Bulk(_), .., time @ Value::Int(_), Value::Int(_)] = &mut items[..] {
                *time = Value::Null;
            }
            Value::Array(items)
        }
        other => other.clone(),
    }
}

/// The elements in one order, whatever order they came in. A list of keys holds nothing but strings.
fn sorted(items: &[Value]) -> Vec<Option<&[u8]>> {
    let mut keys: Vec<_> = items.iter().map(Value::bytes).collect();
    keys.sort_unstable();
    keys
}

fn sorted_pairs<'v>(pairs: Vec<(&'v Value, &'v Value)>) -> Vec<[Option<&'v [u8]>; 2]> {
    let pairs = pairs.into_iter();
    let mut pairs: Vec<_> = pairs
        .map(|(field, value)| [field.bytes(), value.bytes()])
        .collect();
    pairs.sort_unstable();
    pairs
}

/// Whether two replies are arrays of one length whose elements are so too, or both strings, or both none.
fn is_of_shape(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| is_of_shape(left, right))
        }
        (Value::Bulk(_), Value::Bulk(_)) => true,
        _ => left == right,
    }
}

/// All strings in a reply.
pub(crate) fn leaves(reply: &Value) -> Vec<&[u8]> {
    match reply {
        Value::Array(items) | Value::Set(items) => items.iter().flat_map(leaves).collect(),
        Value::Map(pairs) => {
            let pairs = pairs.iter();
            pairs
                .flat_map(|(field, value)| [leaves(field), leaves(value)])
                .flatten()
                .collect()
        }
        other => other.bytes().into_iter().collect(),
    }
}

/// The pairs of a RESP3 map or a RESP2 array.
fn fields(map: &Value) -> Option<Vec<(&Value, &Value)>> {
    match map {
        Value::Map(pairs) => Some(pairs.iter().map(|(name, value)| (name, value)).collect()),
        Value::Array(items) if items.chunks_exact(2).remainder().is_empty() => {
            Some(items.chunks(2).map(|pair| (&pair[0], &pair[1])).collect())
        }
        _ => None,
    }
}

fn alike_hello(left: &Value, right: &Value) -> bool {
    let is_same_kind = std::mem::discriminant(left) == std::mem::discriminant(right);
    let (Some(left), Some(right)) = (fields(left), fields(right)) else {
        return false;
    };
    is_same_kind
        && left.len() == right.len()
        && left
            .iter()
            .zip(&right)
            .all(|((name, left), (other, right))| {
                let is_own = matches!(name.bytes(), Some(b"server" | b"version" | b"id"));
                let is_same_type = std::mem::discriminant(*left) == std::mem::discriminant(*right);
                name == other && is_same_type && (is_own || left == right)
            })
}

fn is_page(reply: &Value) -> bool {
    let Value::Array(parts) = reply else {
        return false;
    };
    match &parts[..] {
        [Value::Bulk(cursor), Value::Array(keys)] => {
            !cursor.is_empty()
                && cursor.iter().all(u8::is_ascii_digit)
                && keys.iter().all(|key| matches!(key, Value::Bulk(_)))
        }
        _ => false,
    }
}

/// Name, arity, first key, last key and step; the flags between are compared by the golden scripts.
fn alike_info(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) if left.len() > 5 && right.len() > 5 => {
            [0, 1, 3, 4, 5]
                .iter()
                .all(|&index| left[index] == right[index])
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::request;
    use super::*;

    fn keys(names: &[&str]) -> Value {
        Value::Array(
            names
                .iter()
                .map(|name| Value::Bulk(name.as_bytes().to_vec()))
                .collect(),
        )
    }

    #[test]
    fn an_order_is_forgiven_but_not_a_key() {
        assert!(alike(
            Rule::Unordered,
            &keys(&["a", "b"]),
            &keys(&["b", "a"])
        ));
        assert!(!alike(
            Rule::Unordered,
            &keys(&["a", "b"]),
            &keys(&["b", "b"])
        ));
        assert!(!alike(Rule::Unordered, &keys(&["a"]), &keys(&["a", "a"])));
        assert!(!alike(Rule::Exact, &keys(&["a", "b"]), &keys(&["b", "a"])));
    }

    #[test]
    fn a_time_may_be_near_but_a_meaning_may_not() {
        let near = |left, right| alike(Rule::Near(60), &Value::Int(left), &Value::Int(right));
        assert!(near(100, 159) && near(-1, -1));
        assert!(!near(100, 161) && !near(-1, -2) && !near(-1, 1) && !near(i64::MIN, i64::MAX));
    }

    #[test]
    fn errors_are_exact_under_every_rule() {
        let error = |text: &str| Value::Error(text.as_bytes().to_vec());
        for rule in [
            Rule::Exact,
            Rule::Unordered,
            Rule::Near(9),
            Rule::Hello,
            Rule::Page,
            Rule::Chosen,
            Rule::Pairs,
        ] {
            assert!(alike(rule, &error("ERR a"), &error("ERR a")));
            assert!(!alike(rule, &error("ERR a"), &error("ERR b")));
            assert!(!alike(rule, &error("ERR a"), &keys(&["a"])));
        }
    }

    #[test]
    fn a_deliberate_difference_covers_nothing_else() {
        let covered = |text: &str, left: i64, right: i64| {
            let (left, right) = (Value::Int(left), Value::Int(right));
            DIFFERENCES
                .iter()
                .any(|difference| (difference.covers)(&request(text), &left, &right))
        };
        assert!(covered("object refcount k", i64::from(i32::MAX), 1));
        assert!(!covered("object refcount k", i64::from(i32::MAX), 2));
        assert!(!covered("STRLEN refcount", i64::from(i32::MAX), 2));
        assert!(!covered("STRLEN k", 1, 2));
        assert!(!covered("BITCOUNT k", 1, 2) && !covered("BITCOUNT k 0", 1, 2));
        assert!(!covered("COMMAND GETKEYS get", 1, 2));
        assert!(!covered("KEYS", 1, 2) && !covered("COMMAND INFO get", 1, 2));
    }
}
