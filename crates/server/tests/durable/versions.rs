//! Kills beside scripts: a script gives one version to keys of several types. After a kill, and after a loss
//! of power, all of them have one version: the last that was acknowledged, or a later one. With everysec a
//! loss of power may take the last versions.
//!
//! `FERRITE_CRASHES=300` makes it thorough (`make crash` runs it, too).

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::killed::crashes;
use crate::support::{Client, Link, Server, Target, Value};

/// Sets of keys.
const GROUPS: usize = 3;
const CLIENTS: usize = 6;

/// Fields of the hash of a group before the first script: of a tree the log gets the changes alone.
const FIELDS: usize = 600;

/// Names of the keys of a group, without its number.
const KEYS: [&str; 6] = ["count", "text", "list", "set", "scores", "hash"];

/// A script with K1 to K6 for its keys, and WORK for a pause.
const TEXT: &str = "WORK local version = redis.call('incr', K1) \
    redis.call('set', K2, 'version ' .. version) \
    redis.call('rpush', K3, version) redis.call('ltrim', K3, -3, -1) WORK \
    redis.call('del', K4) redis.call('sadd', K4, version) \
    redis.call('zadd', K5, version, 'version', version % 50, 'm' .. version % 200) \
    redis.call('hset', K6, 'version', version, 'f' .. version % 700, version) return version";

/// Takes some ten microseconds, in a text that is proven to use no keys but its own.
const SEARCH: &str = "string.find('aaaaaaa', 'a?a?a?a?a?a?a?aaaaaaab')";

/// Lasts for so many microseconds: a script that has not changed anything moves to a thread of its own.
const LOOP: &str = "from = redis.call('time') repeat now = redis.call('time') \
    until (now[1] - from[1]) * 1000000 + now[2] - from[2] >= tonumber(ARGV[1])";

/// The ways of a script to name its keys and to take time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// It holds the shards of its keys.
    Proven,
    /// It runs alone.
    Computed,
    /// It runs alone, mostly on a thread of its own.
    Slow,
}

const FORMS: [Form; 3] = [Form::Proven, Form::Computed, Form::Slow];

impl Form {
    fn text(self) -> String {
        let mut text = match self {
            Form::Proven | Form::Computed => TEXT.replace("WORK", SEARCH),
            Form::Slow => format!("local from, now {}", TEXT.replace("WORK", LOOP)),
        };
        for number in 1..=KEYS.len() {
            let key = match self {
                Form::Computed => format!("(KEYS[1] .. '{}')", KEYS[number - 1]),
                Form::Proven | Form::Slow => format!("KEYS[{number}]"),
            };
            text = text.replace(&format!("K{number}"), &key);
        }
        text
    }

    /// A request for the script on the keys of a group.
    fn request(self, group: usize, micros: u32) -> Vec<String> {
        let names = names(group);
        let keys = match self {
            Form::Computed => vec![format!("{group}:")],
            Form::Proven | Form::Slow => names.to_vec(),
        };
        let mut words = vec!["EVAL".to_owned(), self.text(), keys.len().to_string()];
        words.extend(keys);
        words.push(micros.to_string());
        words
    }
}

fn names(group: usize) -> [String; KEYS.len()] {
    KEYS.map(|key| format!("{group}:{key}"))
}

/// A life of the server and the way in which it ends.
#[derive(Clone, Copy, Debug)]
struct Life {
    threads: usize,
    appendfsync: &'static str,
    /// With the process all is lost that is not synced.
    is_power_lost: bool,
}

const LIVES: [Life; 5] = [
    life(2, "always", true),
    life(4, "everysec", false),
    life(2, "everysec", true),
    life(1, "always", true),
    life(4, "always", false),
];

const fn life(threads: usize, appendfsync: &'static str, is_power_lost: bool) -> Life {
    Life {
        threads,
        appendfsync,
        is_power_lost,
    }
}

impl Life {
    fn options(&self) -> [&'static str; 2] {
        ["--appendfsync", self.appendfsync]
    }

    fn target(self) -> Target {
        let threads = self.threads;
        Target::Logged { threads }
    }

    /// Whether all that was acknowledged is there afterwards.
    fn keeps_all(&self) -> bool {
        self.appendfsync == "always" || !self.is_power_lost
    }
}

/// The replies about each group in one life.
#[derive(Default)]
struct Told {
    versions: Mutex<[BTreeSet<i64>; GROUPS]>,
    unanswered: Mutex<[i64; GROUPS]>,
    count: AtomicUsize,
}

/// Runs scripts until the server ends.
fn keep_running(mut client: Client, seed: u64, told: &Told) {
    let mut random = fastrand::Rng::with_seed(seed);
    loop {
        let group = random.usize(..GROUPS);
        let form = FORMS[random.usize(..FORMS.len())];
        let micros = match random.u8(..3) {
            0 => random.u32(5_000..9_000),
            _ => random.u32(..200),
        };
        let request = form.request(group, micros);
        let reply = match random.u8(..4) {
            0 => in_transaction(&mut client, &request),
            _ => client.call(&request),
        };
        let version = match reply {
            Ok(Value::Int(version)) => version,
            Err(Link::Closed) => {
                told.unanswered.lock().expect("no panic")[group] += 1;
                return;
            }
            other => panic!("{form:?} in group {group}: {other:?}"),
        };
        let is_new = told.versions.lock().expect("no panic")[group].insert(version);
        assert!(is_new, "two scripts have made version {version}");
        told.count.fetch_add(1, SeqCst);
    }
}

/// The reply to a request between MULTI and EXEC.
fn in_transaction(client: &mut Client, request: &[String]) -> Result<Value, Link> {
    for (words, wanted) in [
        (&["MULTI".to_owned()][..], "OK"),
        (request, "QUEUED"),
        (&["GET".to_owned(), "none".to_owned()], "QUEUED"),
    ] {
        assert_eq!(client.call(words)?.text(), wanted);
    }
    match client.call(&["EXEC"])? {
        Value::Array(mut replies) => Ok(replies.swap_remove(0)),
        other => panic!("EXEC: {other:?}"),
    }
}

/// The version of a group, which all of its keys have.
fn version(client: &mut Client, group: usize) -> i64 {
    let mut ask = |words: &str| client.ask(&words.replace('@', &format!("{group}:"))).text();
    let text = ask("GET @text");
    let versions = [
        ask("GET @count"),
        text.trim_start_matches("version ").to_owned(),
        ask("LINDEX @list -1"),
        ask("SRANDMEMBER @set"),
        ask("ZSCORE @scores version"),
        ask("HGET @hash version"),
    ];
    let is_one = versions.iter().all(|one| *one == versions[0]);
    assert!(is_one, "group {group} is torn: {versions:?}");
    assert_eq!(ask("SCARD @set"), "1");
    versions[0].parse().expect("a number")
}

/// Gives all keys of all groups version 0.
fn begin(client: &mut Client) {
    for group in 0..GROUPS {
        let fields: String = (0..FIELDS).map(|field| format!(" f{field} 0")).collect();
        let request = format!("HSET @hash version 0{fields};SET @count -1");
        for words in request.replace('@', &format!("{group}:")).split(';') {
            client.ask(words);
        }
        let request = Form::Proven.request(group, 0);
        assert_eq!(client.call(&request).expect("a reply"), Value::Int(0));
    }
}

/// Lets clients run scripts until so many were answered, and kills the server.
fn live(server: &mut Server, life: Life, until: usize, seed: u64) -> Told {
    if life.is_power_lost {
        assert_eq!(server.client().ask("DEBUG DISK volatile").text(), "OK");
    }
    let told = Told::default();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS as u64)
            .map(|number| {
                let (client, told) = (server.client(), &told);
                scope.spawn(move || keep_running(client, seed ^ number, told))
            })
            .collect();
        while told.count.load(SeqCst) < until {
            let has_ended = threads.iter().any(|thread| thread.is_finished());
            assert!(!has_ended, "a client has ended: {}", server.output());
            thread::sleep(Duration::from_millis(1));
        }
        server.signal(Signal::KILL);
    });
    told
}

#[test]
fn all_keys_of_a_script_have_one_version() {
    let mut random = fastrand::Rng::new();
    let mut server = Server::start(LIVES[0].target(), &LIVES[0].options());
    begin(&mut server.client());
    let mut base = [0; GROUPS];
    for kill in 0..crashes(10) {
        let life = LIVES[kill % LIVES.len()];
        let next = LIVES[(kill + 1) % LIVES.len()];
        let told = live(&mut server, life, random.usize(10..150), random.u64(..));
        server.start_again(next.target(), Signal::KILL, &next.options());
        let mut client = server.client();
        let versions = told.versions.into_inner().expect("no panic");
        let unanswered = told.unanswered.into_inner().expect("no panic");
        for group in 0..GROUPS {
            let found = version(&mut client, group);
            let acknowledged = base[group] + versions[group].len() as i64;
            let last = versions[group].last().copied().unwrap_or_default();
            let most = acknowledged + unanswered[group];
            let least = match life.keeps_all() {
                true => acknowledged.max(last),
                false => base[group],
            };
            assert!(
                (least..=most).contains(&found),
                "kill {kill}, {life:?}: group {group} has version {found}, not {least} to {most}"
            );
            base[group] = found;
        }
    }
}
