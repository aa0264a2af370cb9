//! redis-rs's cluster client against three nodes: the checks of `tests/clients/cluster.py`.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};
use redis::cluster_async::ClusterConnection as AsyncConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo};
use redis::{
    Commands, FromRedisValue, ProtocolVersion, PushInfo, PushKind, RedisResult, Value, cmd,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const KEYS: usize = 10_000;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("tests/clients/run sets {name}"))
}

/// One of the nodes; the client finds the others.
fn node() -> String {
    let nodes = variable("CLIENTS_NODES");
    format!("redis://{}", nodes.split(' ').next().expect("three nodes"))
}

/// Hash tags at home at each of the nodes.
fn tags() -> Vec<String> {
    let tags = variable("CLIENTS_TAGS");
    tags.split(' ').map(str::to_string).collect()
}

/// Asks the runner for something, and waits until it is done.
fn please(wish: &str) {
    println!("please {wish}");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).expect("an answer");
    assert_eq!(answer.trim(), "done", "{wish}");
}

/// Fails with both values, also with the kind of an error.
#[track_caller]
fn equal<T: Debug + PartialEq>(actual: RedisResult<T>, expected: T) {
    assert_eq!(actual, Ok(expected));
}

type Check = (&'static str, fn(&mut ClusterConnection));

const CHECKS: [Check; 8] = [
    ("spread", spread),
    ("hash_tags", hash_tags),
    ("pipeline", pipeline),
    ("transaction", transaction),
    ("crossslot", crossslot),
    ("reload", reload),
    ("node_down", node_down),
    ("sharded_pubsub", sharded_pubsub),
];

fn main() -> ExitCode {
    let (_, entry) = include_str!("../Cargo.lock")
        .split_once("name = \"redis\"\nversion = \"")
        .expect("a locked version");
    println!("version {}", entry.split('"').next().expect("a quote"));
    let client = ClusterClient::new(vec![node()]).expect("a client");
    let mut connection = client.get_connection().expect("a cluster");
    let mut passed = true;
    for (name, body) in CHECKS {
        match catch_unwind(AssertUnwindSafe(|| body(&mut connection))) {
            Ok(()) => println!("ok cluster {name}"),
            Err(panic) => {
                let message = panic.downcast_ref::<String>().map_or("", String::as_str);
                let message: String = message.replace('\n', " ").chars().take(300).collect();
                println!("not ok cluster {name}: {message}");
                passed = false;
            }
        }
    }
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The values of all keys with one mark.
fn marked(mark: &str) -> Vec<String> {
    (0..KEYS).map(|number| format!("{mark}{number}")).collect()
}

/// Gives every key a value: the first thousand by themselves, the others in a pipeline.
fn write(c: &mut ClusterConnection, mark: &str) {
    let mut pipe = cluster_pipe();
    for (number, value) in marked(mark).into_iter().enumerate() {
        let key = format!("key:{number}");
        if number < 1000 {
            equal(c.set(key, value), ());
        } else {
            pipe.set(key, value).ignore();
        }
    }
    equal(pipe.query(c), ());
}

/// The values of all keys: the last thousand one by one, the others from a pipeline.
fn read(c: &mut ClusterConnection) -> Vec<String> {
    let last: Vec<String> = (KEYS - 1000..KEYS)
        .map(|number| c.get(format!("key:{number}")).expect("a value"))
        .collect();
    let mut pipe = cluster_pipe();
    for number in 0..KEYS - 1000 {
        pipe.get(format!("key:{number}"));
    }
    let mut values: Vec<String> = pipe.query(c).expect("the pipeline");
    values.extend(last);
    values
}

fn spread(c: &mut ClusterConnection) {
    write(c, "a");
    assert!(read(c) == marked("a"), "a value is another's");
    let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
    let sizes = c.route_command(&cmd("DBSIZE"), all).expect("DBSIZE");
    let sizes = Vec::<(String, usize)>::from_redis_value(sizes).expect("a size a node");
    assert_eq!(sizes.len(), 3);
    assert_eq!(sizes.iter().map(|(_, size)| size).sum::<usize>(), KEYS);
    assert!(sizes.iter().all(|(_, size)| *size > KEYS / 4), "{sizes:?}");
}

fn hash_tags(c: &mut ClusterConnection) {
    // A tag for the keys of each node, and keys all over, which this client asks each node for.
    let places = tags().into_iter().map(|tag| format!("{{{tag}}}"));
    for place in places.chain(["many".to_string()]) {
        let keys: Vec<_> = (0..100).map(|number| format!("{place}:{number}")).collect();
        let pairs: Vec<_> = keys.iter().map(|key| (key, key)).collect();
        equal(c.mset(&pairs), ());
        equal(c.mget(&keys), keys.clone());
        equal(c.del(&keys), 100);
    }
}

fn pipeline(c: &mut ClusterConnection) {
    let mut pipe = cluster_pipe();
    for number in 0..500 {
        let key = format!("pipe:{number}");
        pipe.incr(&key, number)
            .ignore()
            .get(&key)
            .del(&key)
            .ignore();
    }
    equal(pipe.query::<Vec<i64>>(c), (0..500).collect());
}

/// The asynchronous client alone has transactions in a cluster.
fn transaction(_: &mut ClusterConnection) {
    asynchronously(async |mut c, _| {
        for tag in tags() {
            let key = format!("{{{tag}}}:count");
            let mut pipe = redis::pipe();
            pipe.atomic().set(&key, 1).ignore().incr(&key, 1).del(&key);
            equal(pipe.query_async::<(i64, i64)>(&mut c).await, (2, 1));
        }
    });
}

fn crossslot(c: &mut ClusterConnection) {
    let error = c.rename::<_, _, ()>("foo", "bar").expect_err("two slots");
    assert_eq!(error.code(), Some("CROSSSLOT"), "{error:?}");
    assert_eq!(
        error.detail(),
        Some("Keys in request don't hash to the same slot")
    );
}

fn reload(c: &mut ClusterConnection) {
    please("swap");
    write(c, "b");
    assert!(read(c) == marked("b"), "a value is another's");
    please("swap");
    // What has moved lies where it was before, with the values of then.
    let values = read(c);
    let is_first = |(value, first): &(&String, String)| **value == *first;
    let moved = values.iter().zip(marked("a")).filter(is_first).count();
    let stayed = values.iter().zip(marked("b")).filter(is_first).count();
    assert_eq!(moved.to_string(), variable("CLIENTS_MOVED"));
    assert_eq!(moved + stayed, KEYS);
    please("swap");
    assert!(read(c) == marked("b"), "a value is another's");
    please("swap");
    assert!(read(c) == values, "a value is another's");
}

fn node_down(c: &mut ClusterConnection) {
    let key = |tag: &str| format!("{{{tag}}}:down");
    let tags = tags();
    for tag in &tags {
        equal(c.set(key(tag), tag), ());
    }
    please("down");
    for tag in [&tags[0], &tags[2]] {
        for _ in 0..100 {
            equal(c.get(key(tag)), tag.clone());
        }
    }
    let error = c.get::<_, String>(key(&tags[1]));
    error.expect_err("a node that is down has answered");
    please("up");
    until(|| c.get(key(&tags[1])) == Ok(tags[1].clone()));
    let values = read(c);
    let is_own = |(number, value): (usize, &String)| value[1..] == number.to_string();
    assert!(
        values.iter().enumerate().all(is_own),
        "a value is another's"
    );
}

/// Waits for something that comes true in its own time.
fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("it did not come true");
}

/// The asynchronous client alone subscribes in a cluster.
fn sharded_pubsub(_: &mut ClusterConnection) {
    asynchronously(async |mut c, mut heard| {
        for tag in tags() {
            c.ssubscribe(&tag).await.expect("SSUBSCRIBE");
            let publish = cmd("SPUBLISH").arg(&tag).arg("news").to_owned();
            equal(publish.query_async(&mut c).await, 1);
            let message = loop {
                let wait = tokio::time::timeout(Duration::from_secs(10), heard.recv());
                let push = wait.await.expect("a message").expect("an open channel");
                if push.kind == PushKind::SMessage {
                    break push.data;
                }
            };
            let text = |text: &str| Value::BulkString(text.into());
            assert_eq!(message, [text(&tag), text("news")]);
        }
    });
}

/// Runs `body` with a connection of the asynchronous client, and what it is told unasked.
fn asynchronously(body: impl AsyncFnOnce(AsyncConnection, UnboundedReceiver<PushInfo>)) {
    let runtime = tokio::runtime::Runtime::new().expect("threads");
    runtime.block_on(async {
        let (sender, heard) = unbounded_channel();
        let client = ClusterClient::builder(vec![node()])
            .use_protocol(ProtocolVersion::RESP3)
            .push_sender(sender)
            .build()
            .expect("a client");
        let connection = client.get_async_connection().await.expect("a cluster");
        body(connection, heard).await;
    });
}
