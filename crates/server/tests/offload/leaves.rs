//! Large collections of which only parts are in memory.

use std::collections::{HashMap, HashSet};
use std::thread;

use rustix::process::Signal;

use super::{SMALL, TWO, ok};
use crate::support::{Client, Server, Target, Value, eventually, info, items};

/// Fields of a hash that does not fit into the memory of a small server.
const MANY: usize = 260_000;
/// Fields of one that does.
const FEW: usize = 2_000;
const TEXT: &str =
    "a value that is long enough for the whole of them not to fit into memory, by far: ";

fn value(number: usize) -> String {
    format!("{TEXT}{TEXT}{number}")
}

fn fill(client: &mut Client, key: &str, fields: usize) {
    for first in (0..fields).step_by(1000) {
        let mut words = vec!["HSET".to_string(), key.to_string()];
        for number in first..(first + 1000).min(fields) {
            words.extend([format!("field:{number}"), value(number)]);
        }
        client.call(&words).expect("a reply");
    }
}

/// A hash of which all leaves are in the log alone.
fn fill_cold(client: &mut Client, key: &str) {
    fill(client, key, FEW);
    let before = info(client, "cold_leaves");
    assert_eq!(client.ask(&format!("DEBUG OFFLOAD {key}")), Value::Int(1));
    assert!(info(client, "cold_leaves") > before + 50);
}

fn get(client: &mut Client, key: &str, number: usize) {
    let reply = client.ask(&format!("HGET {key} field:{number}"));
    assert_eq!(reply.text(), value(number), "{key} {number}");
}

/// All fields, by HSCAN.
fn scan(client: &mut Client, key: &str, count: usize) -> HashMap<String, String> {
    let (mut cursor, mut fields) = ("0".to_string(), HashMap::new());
    loop {
        let reply = items(client.ask(&format!("HSCAN {key} {cursor} COUNT {count}")));
        let [next, shown] = <[Value; 2]>::try_from(reply).expect("a cursor and items");
        for pair in items(shown).chunks(2) {
            fields.insert(pair[0].text(), pair[1].text());
        }
        cursor = next.text();
        if cursor == "0" {
            return fields;
        }
    }
}

fn assert_all(fields: &HashMap<String, String>, count: usize) {
    assert_eq!(fields.len(), count);
    for (field, text) in fields {
        let number = field.strip_prefix("field:").expect("its name");
        assert_eq!(*text, value(number.parse().expect("a number")));
    }
}

/// HGETALL of the hash is that of one moment, whatever becomes of its fields and of the log meanwhile, and
/// takes no more memory than there is. A client that does not read it holds up nobody for ever.
fn assert_is_told_as_it_was(server: &Server, client: &mut Client) {
    let changed: Vec<usize> = (0..MANY).step_by(1301).collect();
    let mut fields = thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let mut writer = server.client();
            for &number in &changed {
                writer.ask(&format!("HSET hash field:{number} changed new:{number} 1"));
            }
            writer.ask("BGREWRITEAOF");
        });
        let reply = server.client().call(&["HGETALL", "hash"]);
        writes.join().expect("the writer is answered");
        items(reply.expect("a reply"))
            .chunks(2)
            .map(|pair| (pair[0].text(), pair[1].text()))
            .collect::<HashMap<String, String>>()
    });
    let is_new = |number: &usize| fields.contains_key(&format!("new:{number}"));
    let done = changed.iter().take_while(|number| is_new(number)).count();
    for &number in &changed[..done] {
        fields.remove(&format!("new:{number}"));
        let before = fields.insert(format!("field:{number}"), value(number));
        assert_eq!(before.as_deref(), Some("changed"));
    }
    assert_all(&fields, MANY);
    assert!(info(client, "used_memory") < 49 << 20);
    for &number in &changed {
        let field = format!("field:{number}");
        client
            .call(&["HSET", "hash", &field, &value(number)])
            .expect("a reply");
        client.ask(&format!("HDEL hash new:{number}"));
    }
    let mut unread = server.client();
    unread.send(&["HGETALL", "hash"]).expect("it is sent");
    let mut asked = (0..MANY).step_by(7919).cycle();
    eventually("the client that does not read is closed", || {
        // Commands that need memory find that there is too little. Each asks for another leaf.
        let number = asked.next().expect("it goes on for ever");
        client.ask(&format!("HGET hash field:{number}"));
        info(client, "client_output_buffer_limit_disconnections") == 1
    });
}

#[test]
fn a_hash_is_larger_than_memory() {
    let mut server = Server::start(TWO, SMALL);
    let mut client = server.client();
    fill(&mut client, "hash", MANY);
    let memory = info(&mut client, "used_memory");
    let cold = info(&mut client, "cold_leaf_bytes");
    assert!(memory < 49 << 20, "{memory} bytes");
    assert!(
        memory + cold > (MANY * TEXT.len() * 2) as u64,
        "{memory} and {cold} bytes"
    );
    for number in (0..MANY).step_by(7919) {
        get(&mut client, "hash", number);
    }
    assert_eq!(client.ask("HLEN hash"), Value::Int(MANY as i64));
    assert_eq!(
        client.ask("HSET hash field:5 other field:more x"),
        Value::Int(1)
    );
    assert_eq!(client.ask("HDEL hash field:more nope"), Value::Int(1));
    assert_eq!(
        client.ask("HSET hash field:5").text(),
        "ERR wrong number of arguments for 'hset' command"
    );
    client
        .call(&["HSET", "hash", "field:5", &value(5)])
        .expect("a reply");
    assert_all(&scan(&mut client, "hash", 1000), MANY);
    assert_is_told_as_it_was(&server, &mut client);
    let drawn = items(client.ask(&format!("HRANDFIELD hash {}", MANY / 2)));
    assert_eq!(drawn.len(), MANY / 2);
    let drawn: HashSet<String> = drawn.iter().map(Value::text).collect();
    assert_eq!(drawn.len(), MANY / 2);
    for _ in 0..20 {
        let field = client.ask("HRANDFIELD hash").text();
        assert!(drawn.contains(&field) || field.starts_with("field:"));
    }
    let some = items(client.ask("HRANDFIELD hash -500 WITHVALUES"));
    for pair in some.chunks(2) {
        let number = pair[0].text();
        let number = number.strip_prefix("field:").expect("its name");
        assert_eq!(pair[1].text(), value(number.parse().expect("a number")));
    }
    assert!(info(&mut client, "used_memory") < 49 << 20);
    // There is no room for all of it at once.
    client.ask("MULTI");
    client.ask("HVALS hash");
    client.ask("HLEN hash");
    let replies = items(client.ask("EXEC"));
    assert!(replies[0].text().starts_with("OOM "));
    assert_eq!(replies[1], Value::Int(MANY as i64));
    assert!(info(&mut client, "used_memory") < 49 << 20);
    assert_eq!(
        client.ask("BGSAVE"),
        Value::Simple(b"Background saving started".to_vec())
    );
    eventually("the snapshot is written", || {
        info(&mut client, "rdb_bgsave_in_progress") == 0
    });
    let everything = client.ask("INFO persistence").text();
    assert!(
        everything.contains("rdb_last_bgsave_status:ok"),
        "{everything}"
    );
    let digest = client.ask("DEBUG DIGEST-VALUE hash").text();
    server.start_again(TWO, Signal::KILL, &[]);
    let mut client = server.client();
    assert_eq!(client.ask("DEBUG DIGEST-VALUE hash").text(), digest);
    assert_all(&scan(&mut client, "hash", 10), MANY);
}

#[test]
fn commands_read_the_leaves_that_they_need_and_no_others() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    for (request, most) in [
        ("HLEN key", 0),
        ("TYPE key", 0),
        ("EXISTS key", 0),
        ("OBJECT ENCODING key", 0),
        ("EXPIRE key 1000", 0),
        ("PERSIST key", 0),
        ("GET key", 0),
        ("SADD key member", 0),
        ("HGET key field:1", 1),
        ("HGET key nope", 1),
        ("HMGET key field:1 field:2 field:3 nope", 4),
        ("HSET key field:1 a new b", 2),
        ("HINCRBY key number 1", 1),
        ("HDEL key field:1 field:2", 2),
        ("HEXISTS key field:1", 1),
        ("HSETNX key field:1 a", 1),
        ("HEXPIRE key 1000 FIELDS 2 field:1 field:2", 2),
        ("HTTL key FIELDS 2 field:1 field:2", 2),
        ("HPERSIST key FIELDS 2 field:1 field:2", 2),
        ("HGETEX key FIELDS 1 field:1", 1),
        ("HGETDEL key FIELDS 1 field:1", 1),
        ("HSETEX key EX 100 FIELDS 1 field:1 a", 4),
        ("HSCAN key 0 COUNT 100", 20),
        ("RENAME key other", 0),
        ("DEL key", 0),
    ] {
        client.ask("DEL key");
        fill_cold(&mut client, "key");
        let before = info(&mut client, "disk_reads");
        client.ask(request);
        let reads = info(&mut client, "disk_reads") - before;
        assert!(reads <= most, "{request} reads {reads}");
    }
    for (request, most) in [
        ("ZCARD key", 0),
        ("ZSCORE key member:7", 1),
        ("ZRANK key member:7", 1),
        ("ZRANGE key 0 9", 1),
        ("ZRANGE key -10 -1 REV", 1),
        ("ZRANGEBYSCORE key 100 110", 2),
        ("ZRANGE key (1 (9 BYSCORE LIMIT 1 2", 2),
        ("ZCOUNT key 10 1000", 2),
        ("ZLEXCOUNT key - +", 1),
        ("ZSCAN key 0", 20),
        ("ZPOPMIN key", 1),
        ("ZPOPMAX key 3", 1),
        ("ZMPOP 2 nope key MIN", 1),
        ("ZREMRANGEBYRANK key 3 5", 1),
        ("ZREMRANGEBYSCORE key 20 25", 2),
        ("ZREMRANGEBYRANK key 0 -1", 0),
    ] {
        client.ask("DEL key");
        fill_cold_sorted(&mut client);
        let before = info(&mut client, "disk_reads");
        let reply = client.ask(request);
        let reads = info(&mut client, "disk_reads") - before;
        assert!(reads <= most, "{request} reads {reads}: {}", reply.text());
    }
    for (request, most) in [
        ("SPOP key", 1),
        ("SPOP key 5", 5),
        ("SRANDMEMBER key", 1),
        ("SRANDMEMBER key 3", 3),
        ("SISMEMBER key member:3", 1),
    ] {
        client.ask("DEL key");
        fill_cold_set(&mut client);
        let before = info(&mut client, "disk_reads");
        client.ask(request);
        let reads = info(&mut client, "disk_reads") - before;
        assert!(reads <= most, "{request} reads {reads}");
    }
}

/// A sorted set of which all leaves are in the log alone. The score of a member is its number.
fn fill_cold_sorted(client: &mut Client) {
    let mut words = vec!["ZADD".to_string(), "key".to_string()];
    (0..FEW).for_each(|number| words.extend([number.to_string(), format!("member:{number}")]));
    client.call(&words).expect("a reply");
    assert_eq!(client.ask("DEBUG OFFLOAD key"), Value::Int(1));
    assert!(info(client, "cold_leaves") > 10);
}

/// A set of which all leaves are in the log alone.
fn fill_cold_set(client: &mut Client) {
    let mut words = vec!["SADD".to_string(), "key".to_string()];
    words.extend((0..FEW).map(|number| format!("member:{number}")));
    client.call(&words).expect("a reply");
    assert_eq!(client.ask("DEBUG OFFLOAD key"), Value::Int(1));
    assert!(info(client, "cold_leaves") > 10);
}

fn assert_digest(client: &mut Client, key: &str, digest: &Value) {
    let request = format!("DEBUG DIGEST-VALUE {key}");
    assert_eq!(client.ask(&request), *digest, "{key}");
}

#[test]
fn what_uses_all_of_a_collection_finds_all_of_it() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    fill(&mut client, "warm", FEW);
    let digest = client.ask("DEBUG DIGEST-VALUE warm");
    let same = |client: &mut Client, key: &str| assert_digest(client, key, &digest);
    fill_cold(&mut client, "key");
    same(&mut client, "key");
    assert!(
        info(&mut client, "cold_leaves") > 50,
        "a digest brings nothing back"
    );
    client.ask("DEBUG OBJECT key");
    assert_eq!(client.ask("COPY key copy"), Value::Int(1));
    same(&mut client, "copy");
    for request in [
        "HGETALL key",
        "HKEYS key",
        "HVALS key",
        "HRANDFIELD key 5000",
        "DUMP key",
    ] {
        fill_cold(&mut client, "key");
        let reply = client.ask(request);
        fill(&mut client, "key", FEW);
        if !request.starts_with("HRAND") {
            assert_eq!(client.ask(request), reply, "{request}");
        }
        assert_eq!(info(&mut client, "cold_leaves"), 0);
    }
}

#[test]
fn a_collection_in_the_log_is_moved_renamed_and_saved() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    fill(&mut client, "warm", FEW);
    let digest = client.ask("DEBUG DIGEST-VALUE warm");
    let same = |client: &mut Client, key: &str| assert_digest(client, key, &digest);
    fill_cold(&mut client, "key");
    assert_eq!(client.ask("MOVE key 1"), Value::Int(1));
    client.ask("SELECT 1");
    same(&mut client, "key");
    client.ask("DEBUG OFFLOAD key");
    client.ask("SWAPDB 0 1");
    client.ask("SELECT 0");
    same(&mut client, "key");
    client.ask("DEBUG OFFLOAD key");
    assert_eq!(client.ask("RENAME key other"), ok());
    assert!(
        info(&mut client, "cold_leaves") > 50,
        "a new name needs no items"
    );
    same(&mut client, "other");
    for number in 0..FEW {
        get(&mut client, "other", number);
    }
    client.ask("DEBUG OFFLOAD other");
    client.ask("MULTI");
    client.ask("RENAME other again");
    client.ask("HGET again field:7");
    client.ask("HSET again field:7 changed");
    client.ask("HLEN again");
    let replies = items(client.ask("EXEC"));
    assert_eq!(replies[1].text(), value(7));
    assert_eq!(replies[3], Value::Int(FEW as i64));
    client.ask("DEBUG OFFLOAD again");
    assert_eq!(client.ask("SAVE"), ok());
    client
        .call(&["HSET", "again", "field:7", &value(7)])
        .expect("a reply");
    client.ask("DEBUG OFFLOAD again");
    // The log ends, and with it what would be there alone.
    for switch in ["no", "yes"] {
        eventually("the log is begun or ended", || {
            client.ask(&format!("CONFIG SET appendonly {switch}")) == ok()
        });
        eventually("all leaves are in memory", || {
            info(&mut client, "cold_leaves") == 0
        });
        same(&mut client, "again");
    }
    same(&mut client, "again");
}

#[test]
fn a_key_whose_live_fields_are_in_the_log_is_there() {
    let server = Server::start(TWO, &[]);
    let mut client = server.client();
    fill(&mut client, "key", FEW);
    let expire = "HEXPIRE key 1000 FIELDS 1 field:5";
    assert_eq!(client.ask(expire), Value::Array(vec![Value::Int(1)]));
    client.ask("DEBUG OFFLOAD key");
    assert!(info(&mut client, "cold_leaves") > 50);
    let key = Value::Array(vec![Value::Bulk(b"key".to_vec())]);
    assert_eq!(client.ask("KEYS *"), key);
    assert_eq!(items(client.ask("SCAN 0"))[1], key);
    assert_eq!(client.ask("RANDOMKEY").text(), "key");
    assert_eq!(client.ask("DBSIZE"), Value::Int(1));
}

#[test]
fn a_set_leaves_memory_and_comes_back() {
    let server = Server::start(Target::Logged { threads: 1 }, &[]);
    let mut client = server.client();
    for key in ["one", "two"] {
        for first in (0..20_000).step_by(1000) {
            let members = (first..first + 1000).map(|number| number.to_string());
            let words = ["SADD".to_string(), key.to_string()]
                .into_iter()
                .chain(members);
            client.call(&words.collect::<Vec<_>>()).expect("a reply");
        }
    }
    let all = |client: &mut Client| {
        // The moments that commands have read end in the background.
        eventually("all leaves leave memory", || {
            let left = ["one", "two"]
                .map(|key| client.ask(&format!("DEBUG OFFLOAD {key}")) == Value::Int(1));
            left == [true, true] && info(client, "cold_leaves") > 20
        });
    };
    all(&mut client);
    assert_eq!(client.ask("SISMEMBER one 19999"), Value::Int(1));
    assert_eq!(client.ask("SISMEMBER one 20000"), Value::Int(0));
    all(&mut client);
    assert_eq!(client.ask("SMOVE one two 5"), Value::Int(1));
    all(&mut client);
    assert_eq!(client.ask("SINTERCARD 2 one two"), Value::Int(19_999));
    all(&mut client);
    assert_eq!(items(client.ask("SPOP one 100")).len(), 100);
    all(&mut client);
    assert_eq!(items(client.ask("SRANDMEMBER two 100")).len(), 100);
    all(&mut client);
    assert_eq!(client.ask("SUNIONSTORE three one two"), Value::Int(20_000));
    assert_eq!(client.ask("SDIFFSTORE four two one"), Value::Int(101));
    all(&mut client);
    assert_eq!(client.ask("SREM one 19998"), Value::Int(1));
    assert_eq!(items(client.ask("SMEMBERS two")).len(), 20_000);
}
