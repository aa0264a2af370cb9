//! Lists: values that are elements in an order that clients choose.
//!
//! The table of the family is here; its handlers are in the files below, in table order:
//!
//! | file | commands |
//! |---|---|
//! | `push` | LPUSH RPUSH LPUSHX RPUSHX |
//! | `pop` | LPOP RPOP LMPOP |
//! | `read` | LLEN LINDEX LRANGE LPOS |
//! | `change` | LSET LINSERT LREM LTRIM |
//! | `move_one` | LMOVE RPOPLPUSH |
//! | `blocking` | BLPOP BRPOP BLMPOP BLMOVE BRPOPLPUSH |
//!
//! `leaves` says which leaves of a large list they need in memory.

mod blocking;
mod change;
mod leaves;
mod move_one;
mod pop;
mod push;
mod read;

use keyspace::collection::tree::End;

use super::spec::{Begin, Find, ItemsNeeded};
use super::{Arg, ArgKind, Args, Failure, Group, KeySpec, Makes, Spec, access, failure, flag::*};
use crate::observe::notify::Event;

const KEY: Arg = Arg::key("key");
const ELEMENT: Arg = Arg::of("element", ArgKind::String);
const DESTINATION: Arg = Arg {
    key_spec: Some(1),
    ..Arg::key("destination")
};
const ENDS: &[Arg] = &[
    Arg::of("left", ArgKind::PureToken).token("LEFT"),
    Arg::of("right", ArgKind::PureToken).token("RIGHT"),
];
const TIMEOUT: Arg = Arg::of("timeout", ArgKind::Double);
const COUNT: Arg = Arg::of("count", ArgKind::Integer).token("COUNT").optional();

/// Takes elements, and the key with the last of them.
const POPPED: u16 = access::RW | access::ACCESS | access::DELETE;

/// The keys from an argument on that says how many there are.
const fn counted(at: i32) -> KeySpec {
    KeySpec {
        access: POPPED,
        begin: Begin::Index(at),
        find: Find::Count {
            count: 0,
            first: 1,
            step: 1,
        },
        notes: None,
    }
}

/// One of the words LEFT and RIGHT.
const fn end(name: &'static str) -> Arg {
    Arg {
        args: ENDS,
        ..Arg::of(name, ArgKind::OneOf)
    }
}

/// A row of the commands that read one key.
const READS: Spec = Spec {
    flags: READONLY,
    keys: &[KeySpec::one(1, access::RO | access::ACCESS)],
    group: Group::List,
    ..Spec::BASE
};

/// A row of the commands that put elements at an end.
const PUSHES: Spec = Spec {
    arity: -3,
    flags: WRITE | DENYOOM | FAST,
    keys: &[KeySpec::one(1, access::RW | access::INSERT)],
    complexity: "O(N) for N elements",
    args: &[KEY, ELEMENT.multiple()],
    ..READS
};

/// A row of the commands that take elements from an end.
const POPS: Spec = Spec {
    arity: -2,
    flags: WRITE | REMOVES | FAST,
    keys: &[KeySpec::one(1, POPPED)],
    complexity: "O(N) for N elements that are returned",
    args: &[
        KEY,
        Arg::of("count", ArgKind::Integer).since("6.2.0").optional(),
    ],
    history: &[("6.2.0", "Takes `count`.")],
    ..READS
};

/// A row of the commands that move an element.
const MOVES: Spec = Spec {
    flags: WRITE | DENYOOM,
    keys: &[
        KeySpec::one(1, POPPED),
        KeySpec::one(2, access::RW | access::INSERT),
    ],
    ..READS
};

/// A row of the commands that wait for an element of several lists.
const WAITS: Spec = Spec {
    arity: -3,
    flags: WRITE | NOSCRIPT | BLOCKING,
    taker: Some(&blocking::TAKER),
    keys: &[KeySpec {
        access: POPPED,
        begin: Begin::Index(1),
        find: Find::Range {
            last: -2,
            step: 1,
            limit: 0,
        },
        notes: None,
    }],
    since: "2.0.0",
    complexity: "O(N) for N keys",
    args: &[KEY.multiple(), TIMEOUT],
    history: &[("6.0.0", "The timeout may have a fraction.")],
    ..READS
};

/// A row of the commands that wait for an element and move it.
const WAITS_TO_MOVE: Spec = Spec {
    flags: WRITE | DENYOOM | NOSCRIPT | BLOCKING,
    taker: Some(&blocking::TAKER),
    ..MOVES
};

/// The table of this family.
pub(crate) const COMMANDS: &[Spec] = &[
    Spec {
        name: "lpush",
        makes: Makes::Little,
        summary: "Puts elements before the first; tells how many there are then",
        history: &[("2.4.0", "Takes several elements.")],
        items: ItemsNeeded::Elements(push::leaves_of_lpush),
        handler: push::lpush,
        ..PUSHES
    },
    Spec {
        name: "rpush",
        makes: Makes::Little,
        summary: "Puts elements behind the last; tells how many there are then",
        history: &[("2.4.0", "Takes several elements.")],
        items: ItemsNeeded::Elements(push::leaves_of_rpush),
        handler: push::rpush,
        ..PUSHES
    },
    Spec {
        name: "lpushx",
        makes: Makes::Little,
        since: "2.2.0",
        summary: "Puts elements before the first of a list that exists",
        history: &[("4.0.0", "Takes several elements.")],
        items: ItemsNeeded::Elements(push::leaves_of_lpush),
        handler: push::lpushx,
        ..PUSHES
    },
    Spec {
        name: "rpushx",
        makes: Makes::Little,
        since: "2.2.0",
        summary: "Puts elements behind the last of a list that exists",
        history: &[("4.0.0", "Takes several elements.")],
        items: ItemsNeeded::Elements(push::leaves_of_rpush),
        handler: push::rpushx,
        ..PUSHES
    },
    Spec {
        name: "lpop",
        makes: Makes::Taken,
        summary: "Removes the first elements and returns them",
        items: ItemsNeeded::Elements(pop::leaves_of_lpop),
        handler: pop::lpop,
        ..POPS
    },
    Spec {
        name: "rpop",
        makes: Makes::Taken,
        summary: "Removes the last elements and returns them",
        items: ItemsNeeded::Elements(pop::leaves_of_rpop),
        handler: pop::rpop,
        ..POPS
    },
    Spec {
        name: "lmpop",
        makes: Makes::Taken,
        arity: -4,
        flags: WRITE | REMOVES | MOVABLE_KEYS,
        keys: &[counted(1)],
        since: "7.0.0",
        summary: "Removes elements from the first of the lists that has some, and returns them",
        complexity: "O(N+M) for N keys and M elements that are returned",
        args: &[
            Arg::of("numkeys", ArgKind::Integer),
            KEY.multiple(),
            end("where"),
            COUNT,
        ],
        items: ItemsNeeded::Elements(pop::leaves_of_lmpop),
        handler: pop::lmpop,
        ..READS
    },
    Spec {
        name: "llen",
        makes: Makes::Little,
        arity: 2,
        flags: READONLY | FAST,
        keys: &[KeySpec::one(1, access::RO)],
        summary: "Returns the number of elements",
        args: &[KEY],
        items: ItemsNeeded::None,
        handler: read::llen,
        ..READS
    },
    Spec {
        name: "lindex",
        makes: Makes::Item,
        arity: 3,
        flags: READONLY | BOUNDED,
        summary: "Returns the element at an index; the last is at -1",
        complexity: "O(log N) for N elements",
        args: &[KEY, Arg::of("index", ArgKind::Integer)],
        items: ItemsNeeded::Elements(read::leaves_of_lindex),
        handler: read::lindex,
        ..READS
    },
    Spec {
        name: "lrange",
        makes: Makes::Reply,
        arity: 4,
        summary: "Returns the elements from an index to another",
        complexity: "O(log N + M) for M of N elements",
        args: &[
            KEY,
            Arg::of("start", ArgKind::Integer),
            Arg::of("stop", ArgKind::Integer),
        ],
        items: ItemsNeeded::Elements(read::leaves_of_lrange),
        handler: read::lrange,
        ..READS
    },
    Spec {
        name: "lpos",
        makes: Makes::Little,
        arity: -3,
        since: "6.0.6",
        summary: "Returns the indexes at which an element is",
        complexity: "O(N) for N elements",
        args: &[
            KEY,
            ELEMENT,
            Arg::of("rank", ArgKind::Integer).token("RANK").optional(),
            Arg::of("num-matches", ArgKind::Integer)
                .token("COUNT")
                .optional(),
            Arg::of("len", ArgKind::Integer).token("MAXLEN").optional(),
        ],
        items: ItemsNeeded::Walked,
        handler: read::lpos,
        ..READS
    },
    Spec {
        name: "lset",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec::one(1, access::RW | access::UPDATE)],
        summary: "Puts an element in the place of the one at an index",
        complexity: "O(log N) for N elements",
        args: &[KEY, Arg::of("index", ArgKind::Integer), ELEMENT],
        items: ItemsNeeded::Elements(change::leaves_of_lset),
        handler: change::lset,
        ..READS
    },
    Spec {
        name: "linsert",
        makes: Makes::Little,
        arity: 5,
        flags: WRITE | DENYOOM,
        keys: &[KeySpec::one(1, access::RW | access::INSERT)],
        since: "2.2.0",
        summary: "Puts an element before another, or behind it",
        complexity: "O(N) for N elements before the other",
        args: &[
            KEY,
            Arg {
                args: &[
                    Arg::of("before", ArgKind::PureToken).token("BEFORE"),
                    Arg::of("after", ArgKind::PureToken).token("AFTER"),
                ],
                ..Arg::of("where", ArgKind::OneOf)
            },
            Arg::of("pivot", ArgKind::String),
            ELEMENT,
        ],
        handler: change::linsert,
        ..READS
    },
    Spec {
        name: "lrem",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        summary: "Removes the elements that are equal to one; tells how many there were",
        complexity: "O(N) for N elements",
        args: &[KEY, Arg::of("count", ArgKind::Integer), ELEMENT],
        handler: change::lrem,
        ..READS
    },
    Spec {
        name: "ltrim",
        makes: Makes::Little,
        arity: 4,
        flags: WRITE | REMOVES,
        keys: &[KeySpec::one(1, access::RW | access::DELETE)],
        summary: "Removes all elements but those from an index to another",
        complexity: "O(N) for N elements that are removed",
        args: &[
            KEY,
            Arg::of("start", ArgKind::Integer),
            Arg::of("stop", ArgKind::Integer),
        ],
        items: ItemsNeeded::Elements(change::leaves_of_ltrim),
        handler: change::ltrim,
        ..READS
    },
    Spec {
        name: "lmove",
        makes: Makes::Little,
        arity: 5,
        since: "6.2.0",
        summary: "Moves an element from an end of one list to an end of another, and returns it",
        args: &[
            Arg::key("source"),
            DESTINATION,
            end("wherefrom"),
            end("whereto"),
        ],
        items: ItemsNeeded::Elements(move_one::leaves_of_lmove),
        handler: move_one::lmove,
        ..MOVES
    },
    Spec {
        name: "rpoplpush",
        makes: Makes::Little,
        arity: 3,
        since: "1.2.0",
        summary: "Moves the last element of one list before the first of another, and returns it",
        args: &[Arg::key("source"), DESTINATION],
        deprecated: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")),
        items: ItemsNeeded::Elements(move_one::leaves_of_rpoplpush),
        handler: move_one::rpoplpush,
        ..MOVES
    },
    Spec {
        name: "blpop",
        makes: Makes::Taken,
        summary: "Removes the first element of the first list that has some, waits for one if none has",
        items: ItemsNeeded::Elements(blocking::leaves_of_blpop),
        handler: blocking::blpop,
        ..WAITS
    },
    Spec {
        name: "brpop",
        makes: Makes::Taken,
        summary: "Removes the last element of the first list that has some, waits for one if none has",
        items: ItemsNeeded::Elements(blocking::leaves_of_brpop),
        handler: blocking::brpop,
        ..WAITS
    },
    Spec {
        name: "blmpop",
        makes: Makes::Taken,
        arity: -5,
        flags: WRITE | BLOCKING | MOVABLE_KEYS,
        taker: Some(&blocking::TAKER),
        keys: &[counted(2)],
        since: "7.0.0",
        summary: "Removes elements from the first of the lists that has some, waits for some if none has",
        complexity: "O(N+M) for N keys and M elements that are returned",
        args: &[
            TIMEOUT,
            Arg::of("numkeys", ArgKind::Integer),
            KEY.multiple(),
            end("where"),
            COUNT,
        ],
        items: ItemsNeeded::Elements(blocking::leaves_of_blmpop),
        handler: blocking::blmpop,
        ..READS
    },
    Spec {
        name: "blmove",
        makes: Makes::Little,
        arity: 6,
        since: "6.2.0",
        summary: "Moves an element from one list to another, waits for one if there is none",
        args: &[
            Arg::key("source"),
            DESTINATION,
            end("wherefrom"),
            end("whereto"),
            TIMEOUT,
        ],
        items: ItemsNeeded::Elements(move_one::leaves_of_lmove),
        handler: blocking::blmove,
        ..WAITS_TO_MOVE
    },
    Spec {
        name: "brpoplpush",
        makes: Makes::Little,
        arity: 4,
        since: "2.2.0",
        summary: "Moves the last element of a list to the front of another, waits for one if there is none",
        args: &[Arg::key("source"), DESTINATION, TIMEOUT],
        history: &[("6.0.0", "The timeout may have a fraction.")],
        deprecated: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")),
        items: ItemsNeeded::Elements(move_one::leaves_of_rpoplpush),
        handler: blocking::brpoplpush,
        ..WAITS_TO_MOVE
    },
];

/// What is told of elements that were put at an end.
fn pushed(end: End) -> Event {
    match end {
        End::Front => Event::LPUSH,
        End::Back => Event::RPUSH,
    }
}

/// What is told of elements that were taken from an end.
fn popped(end: End) -> Event {
    match end {
        End::Front => Event::LPOP,
        End::Back => Event::RPOP,
    }
}

/// The end that an argument names: LEFT or RIGHT.
fn parse_end(args: &Args<'_>, at: usize) -> Result<End, Failure> {
    if at < args.len() && args.is(at, "LEFT") {
        return Ok(End::Front);
    }
    match at < args.len() && args.is(at, "RIGHT") {
        true => Ok(End::Back),
        false => Err(failure::SYNTAX),
    }
}

/// The rank of an index, which counts from the end if it is negative; `None` if there is no such element.
fn rank_of(index: i64, len: u64) -> Option<u64> {
    let rank = match index {
        0.. => index as u64,
        _ => len.checked_sub(index.unsigned_abs())?,
    };
    (rank < len).then_some(rank)
}

/// The ranks from an index to another, this included.
fn ranks_of(start: i64, stop: i64, len: u64) -> std::ops::Range<u64> {
    let from = |index: i64| match index {
        0.. => index as u64,
        _ => len.saturating_sub(index.unsigned_abs()),
    };
    let to = match stop {
        0.. => (stop as u64).saturating_add(1).min(len),
        _ => (len + 1).saturating_sub(stop.unsigned_abs()),
    };
    let from = from(start);
    if from < to { from..to } else { 0..0 }
}
