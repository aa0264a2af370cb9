//! The table of commands: one row for each, with the shapes of its requests and what it does to the model.
//!
//! A new command is one row and, if no function here does what it does, one function below `strings`, `bits`,
//! `hashes`, `sets`, `scores`, `lists`, `keys` or a file of its own. `every_write_command_has_a_row` in
//! `main.rs` fails until the row is there.
//!
//! A shape is a request without its name, in words. A word in braces stands for what `plan.rs` puts in its
//! place:
//!
//! | word | stands for |
//! |---|---|
//! | `{y}` `{s}` | a key of HyperLogLogs; of streams |
//! | `{v}` `{n}` `{b}` `{x}` `{h}` `{u}` `{z}` `{p}` `{l}` | a key of values, of small numbers, of big numbers, of short lives, of hashes, of sets, of sorted sets, of places, of lists: each class has its own few names |
//! | `{vs}` `{pairs}` | several keys of values; several with texts |
//! | `{text}` `{tail}` | bytes of all lengths; of few |
//! | `{f}` `{fs}` `{fmany}` | a field of a hash; some fields; many |
//! | `{fv}` `{fvmany}` | some fields with values; many, which make a tree of the hash |
//! | `{m}` `{ms}` `{mmany}` | a member of a set; some members; many |
//! | `{zm}` `{zms}` `{zs}` | a member of a sorted set; some members; a score |
//! | `{gp}` | a place and a member |
//! | `{zp}` `{zpmany}` `{zpsame}` | some scores with members; many, which make a tree; many of one score |
//! | `{e}` `{es}` `{emany}` | an element of a list; some elements; many |
//! | `{index}` `{end}` `{few}` | an index of a list; LEFT or RIGHT; a count |
//! | `{add}` `{entry}` `{entries}` | the ID of an added entry; its fields with values; a count of entries |
//! | `{t}` `{known}` | a key of streams with IDs that the server chooses; one that is known |
//! | `{id}` `{ids}` `{idmany}` `{idnext}` | an ID that an entry may have; some; many in turn; a later one |
//! | `{from}` `{to}` | the ends of a range of IDs |
//! | `{g}` `{c}` | a group of a stream; a consumer of it |
//! | `{ye}` `{yes}` `{yemany}` | an element of a HyperLogLog; some; many, which make it dense |
//! | `{fn}` `{fq}` | a field that has integers, quarters |
//! | `{int}` `{big}` `{quarter}` | numbers |
//! | `{secs}` `{future}` `{future-s}` `{short}` | a long time; moments far away, in ms and s; milliseconds that pass soon |
//! | `{at}` `{bit}` `{01}` `{fields}` | an offset in bytes, in bits; a bit; what BITFIELD does |
//! | `{db}` | a database |
//! | `{d}` | the prefix of keys that DEBUG POPULATE makes |
//! | `{w}` `{vast}` | a key that is never there; an offset beyond all memory, which 0 makes one of bits |
//! | `{mwide}` `{ewide}` | some members, some elements of kilobytes, where memory is scarce |
//! | `{cursor}` | where the last page of the scan has ended |
//! | `{code}` `{library}` `{writer}` `{reader}` | the text of a library; its name; its functions |
//! | `{payload}` `{hash}` `{hashmany}` | what DUMP gives of a string, of a hash, of one of many fields |
//! | `{stream}` | the same of a stream |
//!
//! Keys whose time is up soon (`{x}`) appear only in commands whose effect does not depend on whether they
//! are there.

pub(crate) mod bits;
mod consumers;
mod groups;
pub(crate) mod hashes;
pub(crate) mod hyperloglogs;
mod keys;
pub(crate) mod lists;
pub(crate) mod payload;
mod reads;
pub(crate) mod scans;
pub(crate) mod scores;
pub(crate) mod scripts;
pub(crate) mod sets;
mod sorting;
pub(crate) mod streams;
mod strings;

pub(crate) use scripts::LASTING;

use crate::torture::model::{Call, Expect, Global};
use crate::torture::script::{Arg, Request};

/// What a command is to the model.
pub(crate) enum Effect {
    /// It reads and changes keys that it names.
    Keys(fn(&mut Call<'_>) -> Expect),
    /// It changes keys of everybody: what, in this database.
    Global(fn(u16, &Request) -> Option<Global>),
    /// It changes no keys; the operator's connection sends it.
    Operator,
}

/// See the module.
pub(crate) struct Row {
    /// In lower case.
    pub(crate) name: &'static str,
    /// How often it is chosen.
    pub(crate) weight: u32,
    pub(crate) shapes: &'static [&'static str],
    pub(crate) effect: Effect,
}

const fn keys(
    name: &'static str,
    weight: u32,
    shapes: &'static [&'static str],
    apply: fn(&mut Call<'_>) -> Expect,
) -> Row {
    let effect = Effect::Keys(apply);
    Row {
        name,
        weight,
        shapes,
        effect,
    }
}

const fn global(
    name: &'static str,
    weight: u32,
    shapes: &'static [&'static str],
    parse: fn(u16, &Request) -> Option<Global>,
) -> Row {
    let effect = Effect::Global(parse);
    Row {
        name,
        weight,
        shapes,
        effect,
    }
}

const fn operator(name: &'static str, weight: u32, shapes: &'static [&'static str]) -> Row {
    Row {
        name,
        weight,
        shapes,
        effect: Effect::Operator,
    }
}

/// All commands of the plan.
#[rustfmt::skip]
pub(crate) const COMMANDS: &[Row] = &[
    keys("set", 160, &["{v} {text}", "{v} {text}", "{v} {text}", "{v} {text}", "{v} {text} EX {secs}", "{v} {text} PXAT {future}",
        "{v} {text} EXAT {future-s}", "{v} {text} KEEPTTL", "{v} {text} NX", "{v} {text} XX GET", "{v} {text} GET", "{v} {text} PXAT 1000",
        "{v} {text} IFEQ {tail}", "{n} {int}", "{b} {big}", "{x} {text} PX {short}", "{x} {text} PX {short}", "{x} {text}",
        "{h} {tail}"],
        strings::set),
    keys("eval", 40, scripts::SHAPES, scripts::eval),
    keys("function", 8, &["LOAD {code}", "LOAD REPLACE {code}", "LOAD REPLACE {code}", "DELETE {library}"],
        scripts::function),
    keys("fcall", 16, &["{writer} 1 {v} {text}", "{writer} 1 {v} {text}", "{reader} 0"], scripts::fcall),
    keys("fcall_ro", 4, &["{reader} 0"], scripts::fcall),
    keys("setnx", 8, &["{v} {text}"], strings::setnx),
    keys("setex", 8, &["{v} {secs} {text}"], strings::setex),
    keys("psetex", 8, &["{x} {short} {text}", "{v} {secs} {text}"], strings::psetex),
    keys("getset", 8, &["{v} {text}"], strings::getset),
    keys("getdel", 4, &["{v}", "{n}"], strings::getdel),
    keys("getex", 8, &["{v}", "{v} PERSIST", "{v} EX {secs}", "{v} PXAT {future}", "{v} PXAT 1000"], strings::getex),
    keys("append", 60, &["{v} {tail}", "{v} {tail}", "{v} {text}"], strings::append),
    keys("setrange", 40, &["{v} {at} {tail}", "{v} {at} {tail}", "{v} {at} {text}", "{w} {vast} x",
        "{v} {vast} x"], strings::setrange),
    keys("mset", 40, &["{pairs}"], strings::mset),
    keys("msetnx", 8, &["{pairs}"], strings::msetnx),
    keys("msetex", 12, &["2 {v} {text} {v} {tail}", "1 {v} {text} EX {secs}",
        "2 {v} {tail} {v} {tail} PXAT {future}", "2 {v} {text} {v} {tail} NX",
        "1 {v} {tail} XX EXAT {future-s}", "2 {v} {tail} {v} {tail} KEEPTTL"], strings::msetex),
    keys("incr", 8, &["{n}", "{v}", "{b}"], strings::incr),
    keys("decr", 8, &["{n}", "{b}"], strings::decr),
    keys("incrby", 8, &["{n} {int}", "{b} {big}"], strings::incrby),
    keys("decrby", 8, &["{n} {int}", "{b} {big}"], strings::decrby),
    keys("incrbyfloat", 8, &["{n} {quarter}"], strings::incrbyfloat),
    keys("delex", 6, &["{v}", "{n} IFEQ {int}", "{n} IFNE {int}", "{v} IFEQ {tail}"], strings::delex),
    keys("delifeq", 6, &["{n} {int}", "{v} {tail}"], strings::delifeq),

    keys("setbit", 30, &["{v} {bit} {01}", "{v} {bit} {01}", "{w} {vast}0 1"], bits::setbit),
    keys("bitfield", 20, &["{v} {fields}", "{v} {fields}", "{w} SET u8 {vast}0 1"], bits::bitfield),
    keys("bitop", 10, &["AND {v} {vs}", "OR {v} {vs}", "XOR {v} {vs}", "NOT {v} {v}", "DIFF {v} {v} {vs}",
        "DIFF1 {v} {v} {vs}", "ANDOR {v} {v} {vs}", "ONE {v} {vs}"], bits::bitop),

    keys("pfadd", 30, &["{y} {ye}", "{y} {yes}", "{y} {yes}", "{y} {yemany}", "{y}"], hyperloglogs::pfadd),
    keys("pfmerge", 6, &["{y} {y}", "{y} {y} {y}", "{y}"], hyperloglogs::pfmerge),
    keys("pfdebug", 1, &["TODENSE {y}"], hyperloglogs::pfdebug),

    keys("hset", 60, &["{h} {fv}", "{h} {fv}", "{h} {fv}", "{h} {fvmany}", "{h} {f} {text}"], hashes::hset),
    keys("hmset", 6, &["{h} {fv}"], hashes::hmset),
    keys("hsetnx", 10, &["{h} {f} {tail}", "{h} {f} {text}"], hashes::hsetnx),
    keys("hdel", 30, &["{h} {f}", "{h} {fs}", "{h} {fs}", "{h} {fmany}"], hashes::hdel),
    keys("hgetdel", 6, &["{h} FIELDS 1 {f}", "{h} FIELDS 3 {f} {f} {fq}"], hashes::hgetdel),
    keys("hexpire", 6, &["{h} {secs} FIELDS 1 {f}", "{h} {secs} FIELDS 2 {f} {fn}"], hashes::hexpire),
    keys("hpexpire", 6, &["{h} {secs}000 FIELDS 1 {f}", "{h} 0 FIELDS 2 {f} {f}"], hashes::hexpire),
    keys("hexpireat", 6, &["{h} {future-s} FIELDS 1 {f}", "{h} 1000 FIELDS 1 {f}"], hashes::hexpire),
    keys("hpexpireat", 10, &["{h} {future} FIELDS 1 {f}", "{h} {future} FIELDS 3 {f} {fn} {fq}",
        "{h} 1000 FIELDS 2 {f} {fq}"], hashes::hexpire),
    keys("hpersist", 8, &["{h} FIELDS 1 {f}", "{h} FIELDS 2 {fn} {fq}"], hashes::hpersist),
    keys("hgetex", 8, &["{h} FIELDS 1 {f}", "{h} PERSIST FIELDS 2 {f} {fq}",
        "{h} PXAT {future} FIELDS 2 {f} {fn}", "{h} PXAT 1000 FIELDS 1 {f}"], hashes::hgetex),
    keys("hsetex", 10, &["{h} FIELDS 1 {f} {tail}", "{h} KEEPTTL FIELDS 1 {f} {text}",
        "{h} PXAT {future} FIELDS 2 {f} {tail} {fn} {int}", "{h} FNX EX {secs} FIELDS 1 {f} {tail}",
        "{h} FXX PXAT {future} FIELDS 1 {f} {tail}", "{h} NX FIELDS 1 {f} {tail}",
        "{h} XX FNX FIELDS 2 {f} {tail} {f} {tail}", "{h} XX FXX KEEPTTL FIELDS 1 {f} {tail}",
        "{h} PXAT 1000 FIELDS 1 {f} {tail}"], hashes::hsetex),
    keys("hincrby", 20, &["{h} {fn} {int}", "{h} {fn} {int}", "{h} {f} {int}"], hashes::hincrby),
    keys("hincrbyfloat", 10, &["{h} {fq} {quarter}"], hashes::hincrbyfloat),

    keys("sadd", 50, &["{u} {m}", "{u} {ms}", "{u} {ms}", "{u} {mmany}", "{u} {tail}", "{u} {mwide}"],
        sets::sadd),
    keys("srem", 30, &["{u} {m}", "{u} {ms}", "{u} {mmany}"], sets::srem),
    keys("smove", 20, &["{u} {u} {m}"], sets::smove),
    keys("spop", 3, &["{u} 100000"], sets::spop),
    keys("sinterstore", 5, &["{u} {u} {u}", "{u} {u}"], sets::sinterstore),
    keys("sunionstore", 8, &["{u} {u} {u}", "{u} {u} {u} {u}"], sets::sunionstore),
    keys("sdiffstore", 5, &["{u} {u} {u}", "{u} {u} {u} {u}"], sets::sdiffstore),

    keys("zadd", 50, &["{z} {zs} {zm}", "{z} {zp}", "{z} {zpmany}", "{z} CH {zp}", "{z} NX {zp}",
        "{z} XX CH {zp}", "{z} {zpsame}", "{z} GT CH {zs} {zm}", "{z} LT {zs} {zm}", "{z} {zs} {tail}"],
        scores::zadd),
    keys("zincrby", 20, &["{z} {zs} {zm}", "{z} 1 {zm}"], scores::zincrby),
    keys("zrem", 30, &["{z} {zm}", "{z} {zms}", "{z} {zms}"], scores::zrem),
    keys("zremrangebyrank", 4, &["{z} 0 3", "{z} 0 100"], scores::zremrangebyrank),
    keys("zremrangebyscore", 6, &["{z} {zs} {zs}", "{z} 3 5"], scores::zremrangebyscore),
    keys("zremrangebylex", 1, &["{z} - +"], scores::zremrangebylex),
    keys("zpopmin", 8, &["{z}", "{z} 3", "{z} 200"], scores::zpopmin),
    keys("zpopmax", 8, &["{z}", "{z} 3", "{z} 200"], scores::zpopmax),
    keys("zmpop", 3, &["1 {z} MIN", "2 {z} {z} MAX COUNT {few}"], scores::zmpop),
    keys("bzpopmin", 3, &["{z} {z} 0.001"], scores::bzpopmin),
    keys("bzpopmax", 3, &["{z} 0.001"], scores::bzpopmax),
    keys("bzmpop", 3, &["0.001 2 {z} {z} MIN COUNT {few}", "0.001 1 {z} MAX"], scores::bzmpop),
    keys("zrangestore", 8, &["{z} {z} {zs} {zs} BYSCORE", "{z} {z} -20 10 BYSCORE"], scores::zrangestore),
    keys("geoadd", 8, &["{p} {gp}", "{p} CH {gp}", "{p} NX {gp}"], scores::geoadd),
    keys("geosearchstore", 3, &["{p} {p} FROMLONLAT 15 37 BYRADIUS 30000 km"], scores::geosearchstore),
    keys("georadius", 2, &["{p} 15 37 30000 km STORE {p}"], scores::georadius),
    keys("georadiusbymember", 1, &["{p} 1 0 m"], scores::georadiusbymember),
    keys("zunionstore", 6, &["{z} 2 {z} {z}", "{z} 3 {z} {u} {z}"], scores::zunionstore),
    keys("zinterstore", 4, &["{z} 2 {z} {z}", "{z} 2 {z} {u}"], scores::zinterstore),
    keys("zdiffstore", 4, &["{z} 2 {z} {z}", "{z} 2 {z} {u}"], scores::zdiffstore),

    keys("lpush", 40, &["{l} {e}", "{l} {es}", "{l} {emany}", "{l} {tail}", "{l} {text}"], lists::lpush),
    keys("rpush", 40, &["{l} {e}", "{l} {es}", "{l} {emany}", "{l} {tail}", "{l} {ewide}", "{l} {ewide}"],
        lists::rpush),
    keys("lpushx", 6, &["{l} {es}"], lists::lpushx),
    keys("rpushx", 6, &["{l} {es}"], lists::rpushx),
    keys("lpop", 20, &["{l}", "{l} {few}", "{l} 150"], lists::lpop),
    keys("rpop", 20, &["{l}", "{l} {few}", "{l} 150"], lists::rpop),
    keys("lmpop", 6, &["2 {l} {l} {end} COUNT {few}"], lists::lmpop),
    keys("lset", 12, &["{l} {index} {e}", "{l} {index} {tail}"], lists::lset),
    keys("linsert", 20, &["{l} BEFORE {e} {e}", "{l} AFTER {e} {tail}"], lists::linsert),
    keys("lrem", 12, &["{l} {index} {e}", "{l} 1 {e}", "{l} -1 {e}"], lists::lrem),
    keys("ltrim", 10, &["{l} {index} {index}", "{l} {few} -1", "{l} 0 50", "{l} -100 -3"], lists::ltrim),
    keys("lmove", 12, &["{l} {l} {end} {end}"], lists::lmove),
    keys("rpoplpush", 6, &["{l} {l}"], lists::rpoplpush),
    // Nobody else writes these keys: a wait ends with its time. `tests/lists.rs` has waits that are served.
    keys("sort", 6, &["{l} ALPHA STORE {l}", "{u} ALPHA DESC STORE {l}", "{z} ALPHA ASC STORE {l}",
        "{l} BY nosort LIMIT 0 5 STORE {l}"], sorting::sort),
    keys("blpop", 3, &["{l} {l} 0.001"], lists::blpop),
    keys("brpop", 3, &["{l} {l} 0.001"], lists::brpop),
    keys("blmpop", 3, &["0.001 2 {l} {l} {end} COUNT {few}"], lists::blmpop),
    keys("blmove", 3, &["{l} {l} {end} {end} 0.001"], lists::lmove),
    keys("brpoplpush", 2, &["{l} {l} 0.001"], lists::rpoplpush),

    keys("xadd", 90, &["{t} * {entry}", "{t} * {entry}", "{t} * {entry}", "{t} NOMKSTREAM * f {text}",
        "{t} MAXLEN {few} * {entry}", "{t} MINID {known} * {tail} {tail}", "{s} {add} {entry}",
        "{s} {add} {entry}", "{s} {add} {entry}", "{s} {add} f {text}",
        "{s} {add} {tail} {tail}", "{s} NOMKSTREAM {add} {entry}", "{s} MAXLEN {entries} {add} {entry}",
        "{s} MINID = {id} {add} {entry}", "{s} MAXLEN ~ 1000000 {add} {entry}",
        "{s} MAXLEN {entries} ACKED {add} {entry}", "{s} MINID {id} DELREF {add} {entry}",
        "{l} NOMKSTREAM {add} {entry}", "{t} IDMP {pid} {iid} * {entry}", "{t} IDMP {pid} {iid} * {entry}",
        "{t} IDMP {pid} {iid} MAXLEN {few} * {entry}", "{t} IDMPAUTO {pid} * f {iid}",
        "{t} NOMKSTREAM IDMPAUTO {pid} MINID {known} * f {iid} g {iid}"], streams::xadd),
    keys("xdel", 24, &["{t} {known}", "{t} {known} {known}", "{s} {id}", "{s} {ids}", "{s} {ids}",
        "{s} {idmany}"], streams::xdel),
    keys("xdelex", 12, &["{t} DELREF IDS 1 {known}", "{s} IDS 1 {id}", "{s} DELREF IDS 2 {id} {id}",
        "{s} ACKED IDS 3 {id} {id} {id}",
        "{s} DELREF IDS 3 {id} {id} {id}"], streams::xdelex),
    keys("xackdel", 12, &["{t} {g} IDS 1 {known}", "{s} {g} IDS 1 {id}", "{s} {g} DELREF IDS 2 {id} {id}",
        "{s} {g} ACKED IDS 3 {id} {id} {id}", "{s} {g} ACKED IDS 2 {id} {id}"], streams::xackdel),
    keys("xtrim", 8, &["{t} MAXLEN {few}", "{t} MINID {known}", "{s} MAXLEN {entries}",
        "{s} MAXLEN = {entries}", "{s} MINID {id}",
        "{s} MAXLEN {entries} ACKED", "{s} MINID {id} ACKED", "{s} MAXLEN {entries} DELREF",
        "{s} MAXLEN ~ 0 LIMIT 0 ACKED", "{s} MAXLEN ~ 0 LIMIT 0 DELREF",
        "{s} MAXLEN ~ 0 LIMIT 0", "{s} MINID ~ 1-1"], streams::xtrim),
    keys("xsetid", 6, &["{s} {idnext}", "{s} {id}", "{s} {idnext} ENTRIESADDED {entries} MAXDELETEDID {id}",
        "{s} {idnext} ENTRIESADDED 100000 MAXDELETEDID 0-0"], streams::xsetid),
    keys("xcfgset", 3, &["{s} IDMP-MAXSIZE 0", "{h} IDMP-DURATION 100 IDMP-MAXSIZE 10001",
        "{t} IDMP-DURATION 900 IDMP-MAXSIZE 2", "{t} IDMP-MAXSIZE 5", "{t} IDMP-MAXSIZE 100"],
        streams::xcfgset),
    keys("xgroup", 40, &["CREATE {t} {g} 0 MKSTREAM", "CREATE {t} {g} $ MKSTREAM",
        "CREATE {t} {g} {known}", "SETID {t} {g} {known}", "CREATE {s} {g} 0 MKSTREAM",
        "CREATE {s} {g} 0 MKSTREAM",
        "CREATE {s} {g} 0 MKSTREAM", "CREATE {h} {g} 0", "CREATE {s} {g} 0", "CREATE {s} {g} $ MKSTREAM",
        "CREATE {s} {g} {id} ENTRIESREAD {entries}", "SETID {s} {g} 0", "SETID {s} {g} $",
        "SETID {s} {g} {id} ENTRIESREAD {entries}", "DESTROY {s} {g}", "CREATECONSUMER {s} {g} {c}",
        "DELCONSUMER {s} {g} {c}"], groups::xgroup),
    keys("xreadgroup", 50, &["GROUP {g} {c} STREAMS {t} >", "GROUP {g} {c} COUNT {few} STREAMS {t} >",
        "GROUP {g} {c} NOACK STREAMS {t} >", "GROUP {g} {c} STREAMS {t} 0", "GROUP {g} {c} STREAMS {s} >",
        "GROUP {g} {c} STREAMS {s} >",
        "GROUP {g} {c} COUNT {few} STREAMS {s} >", "GROUP {g} {c} COUNT {entries} STREAMS {s} >",
        "GROUP {g} {c} NOACK COUNT {few} STREAMS {s} >", "GROUP {g} {c} STREAMS {s} 0",
        "GROUP {g} {c} COUNT {few} STREAMS {s} {id}", "GROUP {g} {c} STREAMS {s} {s} > >",
        "GROUP {g} {c} COUNT {few} STREAMS {s} {s} > 0",
        "GROUP {g} {c} STREAMS {s} {u} > >"], consumers::xreadgroup),
    keys("xack", 24, &["{t} {g} {known}", "{s} {g} {id}", "{s} {g} {ids}", "{s} {g} {idmany}",
        "{s} {g} {idmany}"],
        groups::xack),
    keys("xclaim", 14, &["{t} {g} {c} 0 {known}", "{t} {g} {c} 0 {known} {known} FORCE JUSTID",
        "{s} {g} {c} 0 {id}", "{s} {g} {c} 0 {ids}", "{s} {g} {c} 0 {idmany}",
        "{s} {g} {c} 0 {ids} JUSTID", "{s} {g} {c} 0 {ids} FORCE", "{s} {g} {c} 0 {idmany} FORCE JUSTID",
        "{s} {g} {c} 0 {ids} IDLE 0 RETRYCOUNT {few} LASTID {id}"], groups::xclaim),
    keys("xautoclaim", 10, &["{t} {g} {c} 0 {known}", "{s} {g} {c} 0 0", "{s} {g} {c} 0 {from} COUNT {few}",
        "{s} {g} {c} 0 {id} JUSTID", "{s} {g} {c} 0 - COUNT 1000"], groups::xautoclaim),

    keys("del", 20, &["{t}", "{v}", "{vs}", "{d}:0", "{n}", "{x}", "{h}", "{u}", "{z}", "{l}", "{y}", "{s}"],
        keys::del),
    keys("unlink", 10, &["{v}", "{vs}", "{h}"], keys::del),
    keys("expire", 8, &["{t} {secs}", "{v} {secs}", "{v} -1", "{n} {secs}", "{h} {secs}", "{h} -1",
        "{u} {secs}", "{z} {secs}", "{l} {secs}", "{y} {secs}", "{s} {secs}"], keys::expire),
    keys("pexpire", 8, &["{v} {secs}000", "{v} 0"], keys::pexpire),
    keys("expireat", 8, &["{v} {future-s}", "{v} {future-s} NX", "{v} {future-s} XX"], keys::expireat),
    keys("pexpireat", 8, &["{v} {future}", "{v} {future} GT", "{v} {future} LT", "{v} 1000"],
        keys::pexpireat),
    keys("persist", 12, &["{t}", "{v}", "{n}", "{h}", "{u}", "{z}", "{l}", "{s}"], keys::persist),
    keys("copy", 30, &["{t} {t} REPLACE", "{t} {t} DB {db} REPLACE", "{v} {v} REPLACE", "{v} {v}",
        "{v} {v} DB {db} REPLACE", "{n} {n} DB {db}",
        "{h} {h} REPLACE", "{h} {h} DB {db} REPLACE", "{u} {u} REPLACE",
        "{u} {u} DB {db} REPLACE", "{z} {z} REPLACE", "{z} {z} DB {db} REPLACE",
        "{l} {l} REPLACE", "{l} {l} DB {db} REPLACE", "{y} {y} REPLACE",
        "{s} {s} REPLACE", "{s} {s}", "{s} {s} DB {db} REPLACE"], keys::copy),
    keys("rename", 20, &["{t} {t}", "{v} {v}", "{n} {n}", "{h} {h}", "{u} {u}", "{z} {z}", "{l} {l}",
        "{y} {y}",
        "{s} {s}"], keys::rename),
    keys("renamenx", 10, &["{v} {v}", "{h} {h}", "{s} {s}"], keys::renamenx),
    keys("move", 16, &["{t} {db}", "{v} {db}", "{h} {db}", "{u} {db}", "{z} {db}", "{l} {db}",
        "{s} {db}"], keys::move_),
    keys("restore", 18, &["{v} 0 {payload}", "{v} 0 {payload} REPLACE", "{v} {secs}000 {payload} REPLACE",
        "{v} {future} {payload} REPLACE ABSTTL", "{v} 1000 {payload} REPLACE ABSTTL",
        "{h} 0 {hash} REPLACE", "{h} 0 {hash}", "{h} {future} {hash} REPLACE ABSTTL",
        "{h} 0 {hashmany} REPLACE", "{h} {future} {hashmany} REPLACE ABSTTL",
        "{s} 0 {stream} REPLACE", "{s} 0 {stream} REPLACE", "{s} 0 {stream} REPLACE", "{s} 0 {stream}",
        "{s} {future} {stream} REPLACE ABSTTL", "{s} 0 {hash} REPLACE", "{h} 0 {stream} REPLACE",
        "{l} 0 {stream} REPLACE"], keys::restore),
    keys("restore-asking", 2, &["{v} 0 {payload} REPLACE", "{h} 0 {hash}", "{s} 0 {stream}"], keys::restore),
    keys("migrate", 4, &["127.0.0.1 1 {v} 0 1000", "127.0.0.1 1 {h} 0 1000 COPY"], keys::migrate),
    // The operator's connection has a row of this name, too.
    keys("debug", 6, &["POPULATE 1 {d}", "POPULATE 1 {d} {few}000", "POPULATE 1 {d} {few}"], keys::populate),
    keys("select", 40, &["{db}"], reads::unreachable),

    global("flushdb", 2, &["", "ASYNC", "SYNC"], keys::flushdb),
    global("flushall", 1, &["", "ASYNC"], keys::flushall),
    global("swapdb", 4, &["{db} {db}"], keys::swapdb),

    keys("get", 20, &["{v}", "{n}", "{x}", "{y}", "{d}:0"], reads::get),
    keys("pfcount", 6, &["{y} {y}", "{y} {y} {y}"], hyperloglogs::pfcount),
    keys("mget", 8, &["{vs}"], reads::mget),
    keys("getrange", 8, &["{v} {at} 3000000", "{v} 0 100"], reads::getrange),
    keys("strlen", 6, &["{v}"], reads::strlen),
    keys("exists", 4, &["{vs}"], reads::exists),
    keys("touch", 2, &["{vs}"], reads::exists),
    keys("dump", 10, &["{t}", "{h}", "{h}", "{v}", "{u}", "{z}", "{l}", "{s}", "{s}"], reads::dump),
    keys("type", 4, &["{t}", "{v}", "{h}", "{u}", "{z}", "{l}", "{s}"], reads::type_),
    keys("pttl", 4, &["{v}", "{h}"], reads::pttl),
    keys("pexpiretime", 4, &["{v}"], reads::pexpiretime),
    keys("getbit", 4, &["{v} {bit}"], bits::getbit),
    keys("bitcount", 4, &["{v}"], bits::bitcount),
    keys("hget", 8, &["{h} {f}", "{h} {fn}"], hashes::hget),
    keys("hmget", 4, &["{h} {fs}"], hashes::hmget),
    keys("hgetall", 6, &["{h}"], hashes::hgetall),
    keys("hscan", 20, &["{h} {cursor}", "{h} {cursor} COUNT {few}", "{h} {cursor} COUNT 100 NOVALUES",
        "{h} {cursor} COUNT 30", "{h} {cursor} MATCH f1* COUNT 40", "{h} {cursor} NOVALUES MATCH *2 COUNT 60",
        "{h} 0 COUNT 100000"], scans::unreachable),
    keys("hlen", 4, &["{h}"], hashes::hlen),
    keys("hexists", 2, &["{h} {f}"], hashes::hexists),
    keys("hstrlen", 2, &["{h} {f}"], hashes::hstrlen),
    keys("smembers", 6, &["{u}"], sets::smembers),
    keys("sscan", 20, &["{u} {cursor}", "{u} {cursor} COUNT {few}", "{u} {cursor} COUNT 40",
        "{u} {cursor} COUNT 40", "{u} {cursor} MATCH m* COUNT 70", "{u} 0 COUNT 100000"], scans::unreachable),
    keys("scard", 4, &["{u}"], sets::scard),
    keys("sismember", 4, &["{u} {m}"], sets::sismember),
    keys("smismember", 3, &["{u} {ms}"], sets::smismember),
    keys("sinter", 3, &["{u} {u}", "{u} {u} {u}"], sets::sinter),
    keys("sunion", 3, &["{u} {u}", "{u} {u} {u}"], sets::sunion),
    keys("sdiff", 3, &["{u} {u}", "{u} {u} {u}"], sets::sdiff),
    keys("llen", 4, &["{l}"], lists::llen),
    keys("lindex", 6, &["{l} {index}"], lists::lindex),
    keys("lrange", 8, &["{l} {index} {index}", "{l} 0 -1"], lists::lrange),
    keys("lpos", 3, &["{l} {e}"], lists::lpos),
    keys("sintercard", 2, &["2 {u} {u}"], sets::sintercard),
    keys("zcard", 4, &["{z}"], scores::zcard),
    keys("zscan", 20, &["{z} {cursor}", "{z} {cursor} COUNT {few}", "{z} {cursor} COUNT 40 NOSCORES",
        "{z} {cursor} COUNT 40", "{z} {cursor} MATCH 1* COUNT 70", "{z} 0 COUNT 100000"], scans::unreachable),
    keys("zscore", 6, &["{z} {zm}"], scores::zscore),
    keys("zrank", 4, &["{z} {zm}"], scores::zrank),
    keys("zcount", 4, &["{z} {zs} {zs}"], scores::zcount),
    keys("zrange", 6, &["{z} 0 -1 WITHSCORES"], scores::zrange),
    keys("geosearch", 4, &["{p} BYPOLYGON 4 10 35 20 35 20 40 10 40", "{p} BYPOLYGON 3 14 36 16 36 15 38.5",
        "{p} BYPOLYGON 4 -130 30 -110 30 -110 45 -130 45"], scores::geosearch),
    keys("zunion", 3, &["2 {z} {z} WITHSCORES", "2 {u} {z} WITHSCORES"], scores::zunion),

    keys("xlen", 4, &["{t}", "{s}", "{s}", "{z}"], streams::xlen),
    keys("xrange", 12, &["{t} - +", "{t} {known} +", "{s} - +", "{s} {from} {to}",
        "{s} {from} {to} COUNT {few}", "{s} {id} {to}"],
        streams::xrange),
    keys("xrevrange", 8, &["{s} + -", "{s} {to} {from}", "{s} {to} {from} COUNT {few}"], streams::xrevrange),
    keys("xread", 8, &["STREAMS {t} {known}", "STREAMS {s} {id}", "COUNT {few} STREAMS {s} {s} 0 {id}",
        "STREAMS {s} $",
        "COUNT {entries} BLOCK 1 STREAMS {s} {id}"], consumers::xread),
    keys("xpending", 8, &["{t} {g} - + 10", "{s} {g}", "{s} {g} {from} {to} {few}", "{s} {g} - + 1000 {c}",
        "{s} {g} IDLE 0 {from} {to} 100 {c}", "{s} {g} IDLE 0 - + {entries}"], groups::xpending),
    keys("xinfo", 8, &["STREAM {t} FULL COUNT 0", "GROUPS {t}", "STREAM {s}", "STREAM {s} FULL COUNT 0",
        "GROUPS {s}", "CONSUMERS {s} {g}"],
        groups::xinfo),

    operator("bgrewriteaof", 50, &[""]),
    operator("bgsave", 10, &["", "", "CANCEL"]),
    operator("config", 40, &["SET hz {hz}", "SET appendfsync always", "SET appendfsync everysec", "SET appendfsync no",
        "SET maxmemory-policy noeviction", "SET maxmemory-policy offload", "SET rdbcompression no", "SET rdbcompression yes",
        "SET notify-keyspace-events KEA", "SET latency-monitor-threshold 1", "SET slowlog-log-slower-than 0",
        "SET hash-max-listpack-entries 3", "SET hash-max-listpack-entries 128",
        "SET hash-max-listpack-value 10", "SET hash-max-listpack-value 64",
        "SET set-max-intset-entries 5", "SET set-max-intset-entries 512", "SET set-max-listpack-entries 20",
        "SET zset-max-listpack-entries 10", "SET zset-max-listpack-entries 128",
        "SET list-max-listpack-size 10", "SET list-max-listpack-size -2",
        "REWRITE", "RESETSTAT"]),
    operator("debug", 20, &["RELOAD", "RELOAD", "LOADAOF", "OFFLOAD-ALL 1", "OFFLOAD-ALL 0", "OFFLOAD-ALL 0",
        "SMALL-BYTES 64", "SMALL-BYTES 64", "SMALL-BYTES 300", "SMALL-BYTES 4096"]),
    operator("memory", 3, &["PURGE"]),
    operator("info", 3, &["everything"]),
    operator("bigkeys", 2, &[""]),
    operator("client", 8, &["PAUSE 20 WRITE", "LIST", "LIST TYPE normal SKIPME yes", "LIST ID 1 2 3 4 5",
        "LIST NOT-TYPE pubsub IDLE 1 DB 0", "LIST MAXAGE 1 NOT-ID 3 4", "KILL ID 999999999 SKIPME no",
        "KILL TYPE pubsub", "KILL MAXAGE 1000000 SKIPME yes", "KILL NAME nobody NOT-FLAGS N",
        "KILL LADDR 192.0.2.1:1 IDLE 1", "KILL IDLE 1000000"]),
];

/// Commands that change items of a collection in its place: a scan of it goes on.
pub(crate) const IN_PLACE: &[&str] = &[
    "hset",
    "hmset",
    "hsetnx",
    "hdel",
    "hgetdel",
    "hexpire",
    "hpexpire",
    "hexpireat",
    "hpexpireat",
    "hpersist",
    "hgetex",
    "hsetex",
    "hincrby",
    "hincrbyfloat",
    "sadd",
    "srem",
    "smove",
    "zadd",
    "zincrby",
    "zrem",
    "zremrangebyrank",
    "zremrangebyscore",
    "zpopmin",
    "zpopmax",
    "zmpop",
    "bzpopmin",
    "bzpopmax",
    "bzmpop",
    "expire",
    "persist",
];

/// The row of a command.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    COMMANDS.iter().find(|row| row.name == name)
}

/// What stands in the place of a word about fields, members, scores or elements.
pub(crate) fn words_of_items(random: &mut fastrand::Rng, token: &str) -> Option<Vec<Arg>> {
    let words = hashes::words(random, token).or_else(|| sets::words(random, token));
    let words = words.or_else(|| scores::words(random, token));
    let words = words.or_else(|| hyperloglogs::words(random, token));
    words.or_else(|| lists::words(random, token))
}
