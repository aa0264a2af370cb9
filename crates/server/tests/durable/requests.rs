//! Requests of all kinds that change something.

/// A request over a small set of keys, of any kind that changes something.
pub(super) fn random_request(random: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let key = |random: &mut fastrand::Rng| format!("key:{}", random.u32(..60));
    let (one, two, three) = (key(random), key(random), key(random));
    let number = random.u32(..1000);
    let db = random.u32(..4);
    let words = match random.u32(..64) {
        0 => format!("SELECT {db}"),
        1 | 2 => format!("SET {one} {number}"),
        54 => format!(
            "EVAL redis.call('set',KEYS[1],{number})redis.call('rename',KEYS[1],KEYS[2]) 2 {one} {two}"
        ),
        3 => format!("SET {one} {number} EX 10000"),
        4 => format!("SET {one} text{number} KEEPTTL"),
        5 => format!("APPEND {one} {number}"),
        6 => format!("INCRBY number:{one} {number}"),
        7 => format!("INCRBYFLOAT float:{one} 1.25"),
        8 => format!("SETBIT {one} {number} {}", number % 2),
        9 => format!("SETRANGE {one} {number} {two}"),
        10 => format!("MSET {one} {number} {two} {number} {one} other{number}"),
        11 => format!("MSETNX {one} {number} {two} {number}"),
        12 => format!("DEL {one} {two} {three}"),
        13 => format!("UNLINK {one}"),
        14 => format!("RENAME {one} {two}"),
        15 => format!("RENAMENX {one} {two}"),
        16 => format!("COPY {one} {two} REPLACE"),
        17 => format!("COPY {one} {two} DB {db} REPLACE"),
        18 => format!("MOVE {one} {db}"),
        19 => format!("EXPIRE {one} 5000"),
        20 => format!("PERSIST {one}"),
        21 => format!("GETEX {one} EX 7000"),
        22 => format!("GETDEL {one}"),
        23 => format!("BITOP XOR {one} {two} {three}"),
        24 => format!("BITFIELD {one} SET u8 #3 {number}"),
        25 => format!("EXPIRE {one} -1"),
        26 => format!("SET {one} {}", "x".repeat(20_000 + number as usize)),
        27 if number < 100 => "FLUSHDB".to_owned(),
        27 if number < 110 => "FLUSHALL".to_owned(),
        28 if number < 300 => format!("SWAPDB {db} {}", random.u32(..4)),
        29 => format!("SETRANGE {one} {} {two}", 17 * number),
        30..36 => hash_request(random),
        36..41 => set_request(random),
        41..46 => scores_request(random),
        46..52 => list_request(random),
        55..61 => stream_request(random),
        61..64 => library_request(random, &one),
        _ => rare_request(random, &one, &two),
    };
    words
        .split(' ')
        .map(|word| match word {
            "{LIBRARIES}" => LIBRARIES.to_vec(),
            word => word.as_bytes().to_vec(),
        })
        .collect()
}

/// The payload that FUNCTION DUMP gives of one library.
const LIBRARIES: &[u8] = b"\xf5\xc3@W@]\x1f#!lua name=lib4\
\x0aredis.register_f\x0cunction('f4',\xe0\x00\x0d\x08k)return\x20\
    \x80.\x17call('set',k[1],'r')end)\x0a\x00\xff\xb9$\xf1ta\xfc`";

/// A request over a few libraries, with no blank in it.
fn library_request(random: &mut fastrand::Rng, key: &str) -> String {
    let (name, number) = (random.u32(..5), random.u32(..1000));
    let code = || {
        let padding = "-".repeat(number as usize * 20);
        format!(
            "#!lua\tname=lib{name}\nredis.register_function('f{name}',\
             function(keys)return\tredis.call('set',keys[1],'{number}')end)--{padding}"
        )
    };
    match random.u32(..16) {
        0..6 => format!("FUNCTION LOAD REPLACE {}", code()),
        6 | 7 => format!("FUNCTION LOAD {}", code()),
        8 | 9 => format!("FUNCTION DELETE lib{name}"),
        10 if number < 300 => "FUNCTION FLUSH".to_owned(),
        11 => "FUNCTION RESTORE {LIBRARIES} REPLACE".to_owned(),
        12 if number < 300 => "FUNCTION RESTORE {LIBRARIES} FLUSH".to_owned(),
        _ => format!("FCALL f{name} 1 {key}"),
    }
}

/// What DUMP gives of a short string.
const PAYLOAD: &str = "\x00\x0brestored170\x0a\x00\x1f\x0a<qr;6Q";

/// What DUMP gives of a hash of two fields.
const HASH_PAYLOAD: &str = "\x04\x02\x05field\x08value414\x01n\x01x\x0a\x00kT\x1dJj\x00(R";

/// A request over a few hashes, of which some are trees.
fn hash_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("hash:{}", random.u32(..12));
    let (one, two) = (key(random), key(random));
    let (number, field) = (random.u32(..1000), random.u32(..300));
    // Far away, so that nothing expires while two states are compared.
    let at_s = 4_000_000_000 + u64::from(number);
    let fields = format!("FIELDS 2 {field} text:{field}");
    match random.u32(..30) {
        19 => format!("HEXPIRE {one} 900000 {fields}"),
        20 => format!("HPEXPIRE {one} 900000000 {fields}"),
        21 => format!("HEXPIREAT {one} {at_s} LT {fields}"),
        22 => format!("HPEXPIREAT {one} {at_s}000 {fields}"),
        23 => format!("HPEXPIREAT {one} 1 {fields}"),
        24 => format!("HPERSIST {one} {fields}"),
        25 => format!("HGETEX {one} PXAT {at_s}000 {fields}"),
        26 => format!("HGETEX {one} PERSIST {fields}"),
        27 => format!("HSETEX {one} EXAT {at_s} FIELDS 1 {field} {number}"),
        28 => format!("HSETEX {one} KEEPTTL FIELDS 1 {field} {number}"),
        29 => format!("HSETEX {one} PXAT 1 FIELDS 1 {field} {number}"),
        0..4 => format!("HSET {one} {field} {number} text:{field} text{number}"),
        4 => format!(
            "HMSET {one} {field} {number} text:{field} {}",
            "y".repeat(300)
        ),
        5 => {
            let pairs = (field..field + 40).map(|field| format!(" many:{field} {number}"));
            format!("HSET {one}{}", pairs.collect::<String>())
        }
        6 => format!("HSETNX {one} {field} {number}"),
        7 => format!("HDEL {one} {field} text:{field} {}", field + 1),
        8 => {
            let fields = (0..300).map(|field| format!(" many:{field} {field} text:{field}"));
            format!("HDEL {one}{}", fields.collect::<String>())
        }
        9 => format!("HGETDEL {one} FIELDS 2 {field} text:{field}"),
        10 | 11 => format!("HINCRBY {one} {field} {number}"),
        12 => format!("HINCRBYFLOAT {one} float:{field} 1.25"),
        13 => format!("RENAME {one} {two}"),
        14 => format!("COPY {one} {two} REPLACE"),
        15 => format!("DEL {one}"),
        16 => format!("EXPIRE {one} 5000"),
        17 => format!("RESTORE {one} 0 {HASH_PAYLOAD} REPLACE"),
        _ => format!("MOVE {one} {}", random.u32(..4)),
    }
}

/// A request over a few sorted sets, of which some are trees.
fn scores_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("scores:{}", random.u32(..10));
    let (one, two) = (key(random), key(random));
    let (number, score) = (random.u32(..400), f64::from(random.i32(-200..200)) / 4.0);
    match random.u32(..32) {
        0..5 => format!(
            "ZADD {one} {score} {number} {} member:{number}",
            random.u32(..9)
        ),
        5 | 6 => {
            let members =
                (number..number + 60).map(|number| format!(" {} many:{number}", number % 17));
            format!("ZADD {one}{}", members.collect::<String>())
        }
        7 => format!("ZADD {one} XX GT {score} {number}"),
        8..11 => format!("ZINCRBY {one} {score} many:{number}"),
        11 => format!("ZREM {one} {number} member:{number} many:{number}"),
        12 => {
            let members = (0..400).map(|number| format!(" {number} many:{number}"));
            format!("ZREM {one}{}", members.collect::<String>())
        }
        13 => format!("ZPOPMIN {one} {}", random.u32(1..9)),
        14 => format!("ZPOPMAX {one}"),
        15 => format!("ZMPOP 2 {one} {two} MAX COUNT 3"),
        16 => format!("ZREMRANGEBYSCORE {one} {score} {}", score + 3.0),
        17 => format!("ZREMRANGEBYRANK {one} 0 {}", random.u32(..30)),
        18 => format!("ZRANGESTORE {one} {two} 0 100"),
        19 => format!("COPY {one} {two} REPLACE"),
        20 => format!("RENAME {one} {two}"),
        21 => format!("ZREMRANGEBYLEX {one} [many: [many:3"),
        22 => format!("ZUNIONSTORE {one} 2 {two} {one} WEIGHTS 1 0.5"),
        23 => format!("ZINTERSTORE {one} 2 {two} {one} AGGREGATE MAX"),
        24 => format!("ZDIFFSTORE {one} 2 {two} {one}"),
        25 => format!("GEOADD places:{one} {score} {} {number}", score / 2.0),
        26 => format!("GEOSEARCHSTORE {two} places:{one} FROMLONLAT 1 2 BYRADIUS 2000 km"),
        27 => format!("GEORADIUS places:{one} 3 4 3000 km STORE {two}"),
        28 => format!("BZPOPMIN {one} {two} 0.001"),
        29 => format!("BZPOPMAX {one} 0.001"),
        30 => format!("BZMPOP 0.001 2 {one} {two} MIN COUNT 2"),
        _ => format!("GEORADIUSBYMEMBER places:{one} {number} 3000 km STOREDIST {two}"),
    }
}

/// What DUMP gives of a set of two members.
const SET_PAYLOAD: &str = "\x02\x02\x04m301\x04text\x0a\x00t\x1fk\x01\x1e,b&";

/// A request over a few sets, of which some are trees.
fn set_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("set:{}", random.u32(..10));
    let (one, two, three) = (key(random), key(random), key(random));
    let number = random.u32(..400);
    match random.u32(..20) {
        0..5 => format!("SADD {one} {number} member:{number}"),
        5 | 6 => {
            let members = (number..number + 60).map(|number| format!(" {number} many:{number}"));
            format!("SADD {one}{}", members.collect::<String>())
        }
        7 => format!("SREM {one} {number} member:{number} {}", number + 1),
        8 => {
            let members = (0..400).map(|number| format!(" {number} many:{number}"));
            format!("SREM {one}{}", members.collect::<String>())
        }
        9 | 10 => format!("SMOVE {one} {two} {number}"),
        11 => format!("SPOP {one}"),
        12 => format!("SPOP {one} {}", random.u32(..50)),
        13 => format!("SINTERSTORE {one} {two} {three}"),
        14 => format!("SUNIONSTORE {one} {two} {three}"),
        15 => format!("SDIFFSTORE {one} {two} {three}"),
        16 => format!("COPY {one} {two} REPLACE"),
        17 => format!("RENAME {one} {two}"),
        18 => format!("RESTORE {one} 0 {SET_PAYLOAD} REPLACE"),
        _ => format!("MOVE {one} {}", random.u32(..4)),
    }
}

/// What DUMP gives of a list of two elements.
const LIST_PAYLOAD: &str = "\x01\x02\x04e134\x04text\x0a\x00/nyKzigg";

/// A request over a few lists, of which some are trees.
fn list_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("list:{}", random.u32(..10));
    let (one, two) = (key(random), key(random));
    let number = random.u32(..40);
    let end = |random: &mut fastrand::Rng| ["LEFT", "RIGHT"][random.usize(..2)];
    let (from, to) = (end(random), end(random));
    // Enough for a tree.
    let many = |random: &mut fastrand::Rng| {
        let elements = (0..random.u32(1..300)).map(|number| format!(" many:{}", number % 40));
        elements.collect::<String>()
    };
    match random.u32(..30) {
        0 | 1 => format!("LPUSH {one} {number} element:{number}"),
        2 | 3 => format!("RPUSH {one} {number} element:{number}"),
        4 => format!("LPUSH {one}{}", many(random)),
        5 => format!("RPUSH {one}{}", many(random)),
        6 => format!("LPUSHX {one} {number}"),
        7 => format!("RPUSHX {one} {number}"),
        8 => format!("LPOP {one}"),
        9 => format!("RPOP {one}"),
        10 => format!("LPOP {one} {number}"),
        11 => format!("RPOP {one} {number}"),
        12 => format!("LMPOP 2 {one} {two} {from} COUNT {number}1"),
        13 => format!("LSET {one} {number} {}", "z".repeat(number as usize)),
        14 => format!("LSET {one} -{number} x"),
        15 => format!("LINSERT {one} BEFORE many:{number} {number}"),
        16 => format!("LINSERT {one} AFTER {number} many:{number}"),
        17 => format!("LREM {one} 0 many:{number}"),
        18 => format!("LREM {one} -2 many:{number}"),
        19 => format!("LTRIM {one} {} -{}", number / 4, number / 3),
        20 => format!("LMOVE {one} {two} {from} {to}"),
        21 => format!("RPOPLPUSH {one} {two}"),
        22 => format!("BLPOP {one} {two} 0.001"),
        23 => format!("BRPOP {one} {two} 0.001"),
        24 => format!("BLMPOP 0.001 2 {one} {two} {from}"),
        25 => format!("BLMOVE {one} {two} {from} {to} 0.001"),
        26 => format!("BRPOPLPUSH {one} {two} 0.001"),
        27 => format!("COPY {one} {two} REPLACE"),
        28 => format!("RENAME {one} {two}"),
        _ => format!("RESTORE {one} 0 {LIST_PAYLOAD} REPLACE"),
    }
}

/// A request over a few streams, of which some are trees, with groups.
fn stream_request(random: &mut fastrand::Rng) -> String {
    let key = |random: &mut fastrand::Rng| format!("stream:{}", random.u32(..6));
    let (one, two) = (key(random), key(random));
    let group = format!("g{}", random.u32(..3));
    let consumer = ["anna", "bert"][random.usize(..2)];
    let number = random.u32(..400);
    match random.u32(..32) {
        0..6 => format!("XADD {one} * field {number} other {number}"),
        6 => format!(
            "XADD {one} MAXLEN {number} * large {}",
            "x".repeat(number as usize)
        ),
        7 => format!("XTRIM {one} MAXLEN {number}"),
        8 => format!("XTRIM {one} MINID ~ {number}"),
        9 => format!("XDEL {one} {number} 1-1"),
        10 => format!("XSETID {one} 99999999999999-{number}"),
        11 | 12 => format!("XGROUP CREATE {one} {group} 0 MKSTREAM"),
        13 => format!("XGROUP SETID {one} {group} 0"),
        14 => format!("XGROUP DESTROY {one} {group}"),
        15 => format!("XGROUP CREATECONSUMER {one} {group} {consumer}"),
        16 => format!("XGROUP DELCONSUMER {one} {group} {consumer}"),
        17 | 18 => {
            format!("XREADGROUP GROUP {group} {consumer} COUNT {number} STREAMS {one} >")
        }
        19 => format!("XACK {one} {group} {number} 1-1"),
        20 => format!("XCLAIM {one} {group} {consumer} 0 {number} FORCE"),
        21 => format!("XAUTOCLAIM {one} {group} {consumer} 0 0 COUNT {number}"),
        22 => format!("COPY {one} {two} REPLACE"),
        23 => format!("XDELEX {one} DELREF IDS 2 {number} 1-1"),
        24 => format!("XACKDEL {one} {group} ACKED IDS 1 {number}"),
        25 => format!("XTRIM {one} MAXLEN {number} ACKED"),
        26 => format!("XADD {one} MAXLEN {number} DELREF * field {number}"),
        27 => format!("RENAME {one} {two}"),
        28 | 29 => format!("XADD {one} IDMP {consumer} {number} * field {number}"),
        30 => format!("XADD {one} IDMPAUTO {group} * field {number}"),
        _ => format!(
            "XCFGSET {one} IDMP-DURATION {} IDMP-MAXSIZE 9",
            number % 3 + 1
        ),
    }
}

/// What differs little from others in how it is logged.
fn rare_request(random: &mut fastrand::Rng, one: &str, two: &str) -> String {
    let number = random.u32(..1000);
    // Far away, so that nothing expires while two states are compared.
    let at_s = 4_000_000_000 + u64::from(number);
    let sketch = |random: &mut fastrand::Rng| format!("sketch:{}", random.u32(..4));
    match random.u32(..26) {
        18 => format!("MSETEX 2 {one} {number} {two} {number} PXAT {at_s}000"),
        19 => format!("PFADD {} {number} a{number} b{number}", sketch(random)),
        20 => format!(
            "PFMERGE {} {} {}",
            sketch(random),
            sketch(random),
            sketch(random)
        ),
        21 => format!("PFDEBUG TODENSE {}", sketch(random)),
        22 => format!("PFCOUNT {}", sketch(random)),
        23 => format!("SORT list:{} ALPHA STORE list:{}", number % 10, number % 7),
        0 => format!("SETEX {one} 9000 {number}"),
        1 => format!("PSETEX {one} 9000000 {number}"),
        2 => format!("SETNX {one} {number}"),
        3 => format!("GETSET {one} {number}"),
        4 => format!("INCR number:{one}"),
        5 => format!("DECR number:{one}"),
        6 => format!("DECRBY number:{one} {number}"),
        7 => format!("PEXPIRE {one} 8000000"),
        8 => format!("EXPIREAT {one} {at_s}"),
        9 => format!("PEXPIREAT {one} {at_s}000"),
        10 => format!("SET {one} {number} GET PXAT {at_s}000"),
        11 => format!("GETEX {one} PERSIST"),
        12 => format!("DELEX {one} IFEQ {number}"),
        13 => format!("DELIFEQ {one} {number}"),
        14 => format!("BITFIELD {two} OVERFLOW SAT INCRBY i5 {number} 7"),
        15 => format!("BITOP NOT {one} {two}"),
        16 => format!("SET {one} {number} IFEQ {number}"),
        17 => format!("RESTORE {one} {at_s}000 {PAYLOAD} REPLACE ABSTTL"),
        24 => format!("RESTORE-ASKING {two} 0 {PAYLOAD} REPLACE"),
        _ => format!("APPEND {two} {}", "y".repeat(5000)),
    }
}

/// A transaction of such requests.
pub(super) fn random_transaction(random: &mut fastrand::Rng) -> Vec<Vec<Vec<u8>>> {
    let mut requests = vec![vec![b"MULTI".to_vec()]];
    let count = random.usize(1..12);
    requests.extend((0..count).map(|_| random_request(random)));
    requests.push(vec![b"EXEC".to_vec()]);
    requests
}
