//! The configuration file that Debian's package of redis-server 7.0.15 installs starts this server, too.
//!
//! The text of that file is not here, only its directives and their values. Where the file itself is
//! installed, it is used as well.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support;

use rustix::process::Signal;
use support::{Server, Target, Value, eventually, info};

/// The directives of the file, in its order, with their values.
const STOCK: &[&str] = &[
    "bind 127.0.0.1 -::1",
    "protected-mode yes",
    "port 6379",
    "tcp-backlog 511",
    "timeout 0",
    "tcp-keepalive 300",
    "daemonize yes",
    "pidfile /run/redis/redis-server.pid",
    "loglevel notice",
    "logfile /var/log/redis/redis-server.log",
    "databases 16",
    "always-show-logo no",
    "set-proc-title yes",
    "proc-title-template \"{title} {listen-addr} {server-mode}\"",
    "stop-writes-on-bgsave-error yes",
    "rdbcompression yes",
    "rdbchecksum yes",
    "dbfilename dump.rdb",
    "rdb-del-sync-files no",
    "dir /var/lib/redis",
    "replica-serve-stale-data yes",
    "replica-read-only yes",
    "repl-diskless-sync yes",
    "repl-diskless-sync-delay 5",
    "repl-diskless-sync-max-replicas 0",
    "repl-diskless-load disabled",
    "repl-disable-tcp-nodelay no",
    "replica-priority 100",
    "acllog-max-len 128",
    "lazyfree-lazy-eviction no",
    "lazyfree-lazy-expire no",
    "lazyfree-lazy-server-del no",
    "replica-lazy-flush no",
    "lazyfree-lazy-user-del no",
    "lazyfree-lazy-user-flush no",
    "oom-score-adj no",
    "oom-score-adj-values 0 200 800",
    "disable-thp yes",
    "appendonly no",
    "appendfilename \"appendonly.aof\"",
    "appenddirname \"appendonlydir\"",
    "appendfsync everysec",
    "no-appendfsync-on-rewrite no",
    "auto-aof-rewrite-percentage 100",
    "auto-aof-rewrite-min-size 64mb",
    "aof-load-truncated yes",
    "aof-use-rdb-preamble yes",
    "aof-timestamp-enabled no",
    "slowlog-log-slower-than 10000",
    "slowlog-max-len 128",
    "latency-monitor-threshold 0",
    "notify-keyspace-events \"\"",
    "hash-max-listpack-entries 512",
    "hash-max-listpack-value 64",
    "list-max-listpack-size -2",
    "list-compress-depth 0",
    "set-max-intset-entries 512",
    "zset-max-listpack-entries 128",
    "zset-max-listpack-value 64",
    "hll-sparse-max-bytes 3000",
    "stream-node-max-bytes 4096",
    "stream-node-max-entries 100",
    "activerehashing yes",
    "client-output-buffer-limit normal 0 0 0",
    "client-output-buffer-limit replica 256mb 64mb 60",
    "client-output-buffer-limit pubsub 32mb 8mb 60",
    "hz 10",
    "dynamic-hz yes",
    "aof-rewrite-incremental-fsync yes",
    "rdb-save-incremental-fsync yes",
    "jemalloc-bg-thread yes",
];

/// Directives that Redis 7.2, Redis 7.4 and Valkey 8 have beside them in their files, or that their CONFIG
/// REWRITE adds.
const NEWER: &[&str] = &[
    "set-max-listpack-entries 128",
    "set-max-listpack-value 64",
    "locale-collate \"\"",
    "dual-channel-replication-enabled no",
    "hide-user-data-from-log yes",
    "latency-tracking-info-percentiles 50 99 99.9",
    "supervised systemd",
    "user default on nopass sanitize-payload ~* &* +@all",
];

/// Directives of the file that are no settings here.
const IGNORED: usize = 29;

/// Where Debian's package puts the file.
const INSTALLED: &str = "/etc/redis/redis.conf";

/// The lines of a file that a test may start with: what says where files are is as the test wants it.
fn placed(lines: &[&str]) -> Vec<String> {
    let elsewhere = ["daemonize ", "logfile ", "dir ", "port "];
    lines
        .iter()
        .filter(|line| !elsewhere.iter().any(|name| line.starts_with(name)))
        .map(|line| (*line).to_owned())
        .collect()
}

fn ferrite() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
}

#[test]
fn the_directives_of_the_stock_file_start_a_server() {
    let lines = placed(STOCK);
    let server =
        Server::try_start(Target::AsIs, &lines, &[]).unwrap_or_else(|failure| panic!("{failure}"));
    let said = server.output();
    let told: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("accepted and change nothing"))
        .collect();
    let [told] = told[..] else {
        panic!("one line tells of them: {said}");
    };
    assert!(told.contains(&format!("{IGNORED} directives")), "{told}");
    assert!(
        told.contains("activerehashing") && !told.contains("timeout"),
        "{told}"
    );
    // The directory of the file with the process's number is made by the service manager of redis-server.
    if !Path::new("/run/redis").exists() {
        assert!(
            said.contains("cannot write 'pidfile' /run/redis/redis-server.pid"),
            "{said}"
        );
    }
    let mut client = server.client();
    for (request, value) in [
        ("CONFIG GET hash-max-ziplist-entries", "512"),
        ("CONFIG GET oom-score-adj-values", "0 200 800"),
        ("CONFIG GET appendonly", "no"),
    ] {
        let reply = client.ask(request);
        assert!(format!("{reply:?}").contains(value), "{request}: {reply:?}");
    }
}

#[test]
fn what_newer_versions_and_their_rewrites_add_starts_a_server() {
    let lines: Vec<&str> = STOCK.iter().chain(NEWER).copied().collect();
    let server = Server::try_start(Target::AsIs, &placed(&lines), &[]);
    server.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn all_that_changes_meaning_is_told_at_once() {
    let mut lines = placed(STOCK);
    let wrong = [
        "tls-cluster yes",
        "replicaof 10.0.0.1 6379",
        "rename-command FLUSHALL \"\"",
        "loadmodule /usr/lib/redisearch.so",
        "tls-port 6380",
        "min-replicas-to-write 1",
    ];
    lines.extend(wrong.map(str::to_owned));
    lines.extend((0..40).map(|number| format!("nonsense-{number} 1")));
    let failure = Server::try_start(Target::AsIs, &lines, &[]).err();
    let said = failure.expect("it does not start").output;
    for name in wrong {
        assert!(said.contains(&format!("'{name}'")), "{name}: {said}");
    }
    for number in 0..40 {
        assert!(said.contains(&format!("'nonsense-{number} 1'")), "{said}");
    }
    assert!(!said.contains("activerehashing"), "{said}");
}

/// Checks a file, and returns whether a server would start with it and what is printed.
fn check(file: &Path, flags: &[&str]) -> (bool, String) {
    let output = ferrite()
        .arg("--check-config")
        .arg(file)
        .args(flags)
        .output();
    let output = output.expect("the server can be started");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success(), said)
}

#[test]
fn a_check_of_the_stock_file_lists_what_is_ignored() {
    let file = std::env::temp_dir().join(format!("ferrite-stock-{}.conf", std::process::id()));
    let lines = placed(STOCK);
    fs::write(&file, lines.join("\n")).expect("the directory for temporary files is writable");
    let (is_right, said) = check(&file, &[]);
    assert!(is_right, "{said}");
    assert_eq!(said.matches(": ignored: ").count(), IGNORED, "{said}");
    let line = 1 + lines
        .iter()
        .position(|line| line.starts_with("disable-thp"))
        .expect("it is there");
    let place = format!("{}:{line}: ignored: disable-thp yes (", file.display());
    assert!(said.contains(&place), "{said}");
    let (is_right, said) = check(&file, &["--tls-cluster", "yes"]);
    assert!(!is_right, "{said}");
    assert!(
        said.contains("command line: refused: --tls-cluster yes"),
        "{said}"
    );
    fs::remove_file(&file).expect("it was written");
}

/// The file itself, where it is installed. It names directories that a test leaves alone, so that a copy says
/// otherwise.
#[test]
fn the_installed_file_starts_a_server() {
    let Ok(text) = fs::read_to_string(INSTALLED) else {
        eprintln!(
            "{INSTALLED} is not installed or not readable: its directives are tested by the others"
        );
        return;
    };
    let lines: Vec<&str> = text.lines().collect();
    let server = Server::try_start(Target::AsIs, &placed(&lines), &[]);
    let server = server.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(server.output().contains("accepted and change nothing"));
}

/// Both servers, each with the file alone.
const BOTH: [Target; 2] = [Target::RedisAsIs, Target::AsIs];

/// What redis-server has where no line says anything about snapshots.
const DEFAULT_POINTS: &str = "3600 1 300 100 60 10000";

/// Starts a server with the file, which is the installed one where there is one, and with further lines.
fn start_stock(target: Target, further: &[&str]) -> Server {
    let installed = fs::read_to_string(INSTALLED);
    let mut lines = match &installed {
        Ok(text) => placed(&text.lines().collect::<Vec<_>>()),
        Err(_) => placed(STOCK),
    };
    lines.retain(|line| !line.starts_with("pidfile "));
    lines.extend(further.iter().map(|line| (*line).to_owned()));
    Server::try_start(target, &lines, &[]).unwrap_or_else(|failure| panic!("{target}: {failure}"))
}

/// What CONFIG GET says of a setting.
fn setting(server: &Server, name: &str) -> String {
    let Value::Array(pair) = server.client().ask(&format!("CONFIG GET {name}")) else {
        panic!("CONFIG GET answers pairs");
    };
    pair[1].text()
}

fn set(server: &Server, key: &str) {
    assert_eq!(server.client().ask(&format!("SET {key} kept")).text(), "OK");
}

fn is_kept(server: &Server, key: &str) -> bool {
    let mut client = server.client();
    eventually("loading", || client.ask("PING").text() == "PONG");
    client.ask(&format!("GET {key}")) == Value::Bulk(b"kept".to_vec())
}

fn config(server: &Server, words: &[&str]) {
    let reply = server.client().call(&[&["CONFIG"], words].concat());
    assert_eq!(reply.expect("a reply").text(), "OK", "{words:?}");
}

#[test]
fn the_stock_file_keeps_data_over_each_orderly_end() {
    for target in BOTH {
        let mut server = start_stock(target, &[]);
        assert_eq!(setting(&server, "save"), DEFAULT_POINTS, "{target}");
        set(&server, "by-signal");
        server.start_again(target, Signal::TERM, &[]);
        assert!(is_kept(&server, "by-signal"), "{target}");
        set(&server, "by-command");
        // Its reply is the end of the connection.
        let _ = server.client().send(&["SHUTDOWN"]);
        assert!(server.wait_for_exit().is_some(), "{target}");
        server.start_again(target, Signal::TERM, &[]);
        assert!(is_kept(&server, "by-command"), "{target}");
        set(&server, "thrown-away");
        let _ = server.client().send(&["SHUTDOWN", "NOSAVE"]);
        assert!(server.wait_for_exit().is_some(), "{target}");
        server.start_again(target, Signal::TERM, &[]);
        assert!(is_kept(&server, "by-signal"), "{target}");
        assert!(!is_kept(&server, "thrown-away"), "{target}");
    }
}

/// A process that is killed keeps what a save point has saved.
#[test]
fn the_stock_file_with_a_save_point_keeps_data_over_a_kill() {
    for target in BOTH {
        let mut server = start_stock(target, &["save 1 1"]);
        // The line takes the place of the default, and adds nothing to it.
        assert_eq!(setting(&server, "save"), "1 1", "{target}");
        set(&server, "k");
        let mut client = server.client();
        eventually("the save point is met", || {
            info(&mut client, "rdb_changes_since_last_save") == 0
        });
        server.start_again(target, Signal::KILL, &[]);
        assert!(is_kept(&server, "k"), "{target}");
    }
}

#[test]
fn the_stock_file_without_save_points_keeps_nothing() {
    for target in BOTH {
        let mut server = start_stock(target, &["save \"\""]);
        assert_eq!(setting(&server, "save"), "", "{target}");
        set(&server, "k");
        server.start_again(target, Signal::TERM, &[]);
        assert!(!is_kept(&server, "k"), "{target}");
        assert!(!server.dir().join("dump.rdb").exists(), "{target}");
    }
}

#[test]
fn the_stock_file_is_rewritten_as_it_is_meant() {
    for target in BOTH {
        let mut server = start_stock(target, &[]);
        config(&server, &["REWRITE"]);
        server.start_again(target, Signal::TERM, &[]);
        assert_eq!(setting(&server, "save"), DEFAULT_POINTS, "{target}");
        for points in ["", "900 1", DEFAULT_POINTS] {
            config(&server, &["SET", "save", points]);
            config(&server, &["REWRITE"]);
            server.start_again(target, Signal::TERM, &[]);
            assert_eq!(setting(&server, "save"), points, "{target}");
        }
    }
}

/// The log keeps everything, so that there are no snapshots beside it unless somebody asks for them; without
/// it there are those of redis-server.
#[test]
fn save_points_follow_the_log_while_the_server_runs() {
    let mut server = start_stock(Target::AsIs, &["appendonly yes"]);
    assert_eq!(setting(&server, "save"), "");
    set(&server, "logged");
    config(&server, &["SET", "appendonly", "no"]);
    assert_eq!(setting(&server, "save"), DEFAULT_POINTS);
    config(&server, &["REWRITE"]);
    set(&server, "saved");
    server.start_again(Target::AsIs, Signal::TERM, &[]);
    assert_eq!(setting(&server, "save"), DEFAULT_POINTS);
    assert!(is_kept(&server, "logged") && is_kept(&server, "saved"));

    config(&server, &["SET", "appendonly", "yes"]);
    assert_eq!(setting(&server, "save"), "");
    let mut client = server.client();
    eventually("the log has begun", || {
        info(&mut client, "aof_rewrite_in_progress") == 0
    });
    set(&server, "logged-again");
    config(&server, &["REWRITE"]);
    server.start_again(Target::AsIs, Signal::KILL, &[]);
    assert_eq!(setting(&server, "save"), "");
    assert!(is_kept(&server, "saved") && is_kept(&server, "logged-again"));

    // What somebody has chosen does not follow.
    config(&server, &["SET", "save", ""]);
    config(&server, &["SET", "appendonly", "no"]);
    assert_eq!(setting(&server, "save"), "");
}

/// The line of the log that says where data is.
fn told_of_directory(server: &Server) -> String {
    let said = server.output();
    let line = said.lines().find(|line| line.contains("Data directory "));
    let line = line.unwrap_or_else(|| panic!("no line says where data is: {said}"));
    let dir = fs::canonicalize(server.dir()).expect("it is there");
    let beginning = format!("Data directory {}: ", dir.display());
    let (_, found) = line.split_once(&beginning).expect("it names the directory");
    found.to_owned()
}

#[test]
fn a_start_says_where_data_is_and_what_was_there() {
    let logged = Target::Logged { threads: 1 };
    let mut server = Server::start(logged, &[]);
    assert_eq!(
        told_of_directory(&server),
        "new ('dir' or -d chooses another)"
    );
    assert_eq!(server.client().ask("SET k v").text(), "OK");
    server.start_again(logged, Signal::TERM, &[]);
    let found = told_of_directory(&server);
    assert!(found.starts_with("existing log, 1 segments, "), "{found}");

    // Somebody who starts without the log is told that the data is not gone.
    let cache = Target::Ferrite { threads: 1 };
    server.start_again(cache, Signal::TERM, &[]);
    assert_eq!(told_of_directory(&server), "nothing that is read");
    let said = server.output();
    assert!(
        said.contains("The log in ./appendonlydir is not read, because appendonly is no"),
        "{said}"
    );

    let mut server = Server::start(cache, &[]);
    assert_eq!(server.client().ask("SET k v").text(), "OK");
    assert_eq!(server.client().ask("SAVE").text(), "OK");
    server.start_again(cache, Signal::TERM, &[]);
    let found = told_of_directory(&server);
    assert!(found.starts_with("existing snapshot, "), "{found}");
}
