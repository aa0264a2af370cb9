//! Directories of redis-server are taken over: its append-only files in all forms, or a refusal that names
//! the place.

mod forms;
mod interrupted;
mod random;
mod refusals;
mod valkey;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use rustix::process::Signal;

use crate::support::{
    Client, PATIENCE, Server, StartFailure, Target, Value, encode_request, eventually,
};

const LOGGED: Target = Target::Logged { threads: 2 };

/// Where redis-server has its append-only file, and where Ferrite has its log beside it.
const REDIS: &str = "appendonlydir";
const OWN: &str = "appendonlydir.ferrite";

/// What redis-server is started with: rewrites begin when a test says so.
const KEEPS: [&str; 6] = [
    "--appendonly",
    "yes",
    "--auto-aof-rewrite-percentage",
    "0",
    // What was answered is in the file when the server is killed, however slow the disk is.
    "--appendfsync",
    "always",
];

/// A data directory that outlives servers.
struct Data(PathBuf);

impl Data {
    fn new() -> Data {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-takeover-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        Data(path)
    }

    /// A directory with the same files, Ferrite's own apart.
    fn copy(&self) -> Data {
        let copy = Data::new();
        for (name, bytes) in self.files() {
            copy.write(&name, &bytes);
        }
        copy
    }

    /// A directory whose append-only file is that of Redis 6: one file.
    fn of_redis_6(file: &[u8]) -> Data {
        let data = Data::new();
        data.write("appendonly.aof", file);
        data
    }

    /// A directory with a manifest and these files: type and contents.
    fn with_files(files: &[(char, &[u8])]) -> Data {
        let (data, mut manifest) = (Data::new(), String::new());
        for (number, (kind, bytes)) in files.iter().enumerate() {
            let name = format!("appendonly.aof.{}.{kind}", number + 1);
            data.write(&format!("{REDIS}/{name}"), bytes);
            manifest += &format!("file {name} seq {} type {kind}\n", number + 1);
        }
        data.write(
            &format!("{REDIS}/appendonly.aof.manifest"),
            manifest.as_bytes(),
        );
        data
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a path of UTF-8")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        let parent = path.parent().expect("it is in the directory");
        fs::create_dir_all(parent).expect("the directory is ours");
        fs::write(path, bytes).expect("the directory is ours");
    }

    /// All files but Ferrite's own, by name.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(&self.0, "", &mut files);
        files
    }

    /// The names of the files that redis-server has in its directory, in the order in which they are read.
    fn listed(&self) -> Vec<String> {
        let path = self.path(&format!("{REDIS}/appendonly.aof.manifest"));
        let manifest = fs::read_to_string(path).expect("there is a manifest");
        let lines = manifest.lines().filter(|line| !line.ends_with("type h"));
        let name = |line: &str| line.split(' ').nth(1).map(|name| format!("{REDIS}/{name}"));
        lines.filter_map(name).collect()
    }

    /// Nothing of redis-server's has changed since these were its files.
    fn assert_untouched(&self, before: &BTreeMap<String, Vec<u8>>, story: &str) {
        let now = self.files();
        let names = now.keys().chain(before.keys());
        let changed: Vec<_> = names
            .filter(|name| now.get(*name) != before.get(*name))
            .collect();
        assert!(changed.is_empty(), "{changed:?} have changed: {story}");
    }

    fn options<'o>(&'o self, options: &[&'o str]) -> Vec<&'o str> {
        [&["--dir", self.text()], options].concat()
    }

    /// Starts redis-server with an append-only file.
    fn redis(&self, options: &[&str]) -> Server {
        let server = Server::start(Target::Redis, &self.options(&[&KEEPS, options].concat()));
        let mut client = server.client();
        eventually("redis-server has loaded its data", || {
            client.ask("PING") == Value::Simple(b"PONG".to_vec())
        });
        server
    }

    fn try_ferrite(&self, options: &[&str]) -> Result<Server, StartFailure> {
        Server::try_start(LOGGED, &[], &self.options(options))
    }

    fn ferrite(&self, options: &[&str]) -> Server {
        self.try_ferrite(options)
            .unwrap_or_else(|failure| panic!("{failure}"))
    }

    /// What Ferrite says when it does not start. Nothing of redis-server's has changed then.
    fn refusal(&self, options: &[&str]) -> String {
        let before = self.files();
        let Err(failure) = self.try_ferrite(options) else {
            panic!("it started");
        };
        self.assert_untouched(&before, "");
        let code = failure.status.and_then(|status| status.code());
        assert_eq!(code, Some(1), "{failure}");
        failure.output
    }

    /// The digest of what redis-server finds in a copy of the directory; `None` if it does not start there.
    fn redis_digest(&self, options: &[&str]) -> Option<String> {
        let copy = self.copy();
        let options = [&KEEPS, options].concat();
        let mut server = Server::try_start(Target::Redis, &[], &copy.options(&options)).ok()?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if server.has_ended().is_some() {
                return None;
            }
            if let Ok(mut client) = Client::connect(server.addr())
                && let Ok(Value::Simple(_)) = client.call(&["PING"])
            {
                return Some(digest(&server));
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        panic!("redis-server does not come up: {}", server.output());
    }

    /// Starts Ferrite, which finds what redis-server finds, and leaves its files alone. redis-server starts
    /// from them afterwards.
    fn assert_taken_over(&self, options: &[&str]) -> Server {
        let expected = self.redis_digest(&[]).expect("redis-server starts there");
        let before = self.files();
        let server = self.ferrite(options);
        assert_eq!(digest(&server), expected, "{}", server.output());
        self.assert_untouched(&before, "");
        assert_eq!(self.redis_digest(&[]), Some(expected), "it starts again");
        server
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        crate::support::remove_data(&self.0);
    }
}

/// What a log of Ferrite is made of, where it has redis-server's directory for itself.
const FERRITES: [&str; 7] = [
    "log",
    "blobs",
    "lost",
    "LOCK",
    "CLOSED",
    "SIZES",
    "INCOMPLETE",
];

/// Reads all files below a directory, Ferrite's own apart.
fn collect(directory: &Path, name: &str, files: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory)
        .expect("the directory is ours")
        .flatten()
    {
        let own = entry.file_name().into_string().expect("a name of UTF-8");
        let name = format!("{name}{own}");
        if entry.path().is_dir() {
            let is_own = own.ends_with(".ferrite") || own.ends_with(".old");
            if !is_own && !FERRITES.contains(&own.as_str()) {
                collect(&entry.path(), &format!("{name}/"), files);
            }
        } else if !FERRITES.contains(&own.as_str()) && !own.starts_with("temp-") {
            // A process that redis-server has left behind may still write its draft.
            files.insert(name, fs::read(entry.path()).unwrap_or_default());
        }
    }
}

fn digest(server: &Server) -> String {
    server.client().ask("DEBUG DIGEST").text()
}

fn end(server: &mut Server, signal: Signal) {
    server.signal(signal);
    assert!(server.wait_for_exit().is_some());
}

/// Commands of an append-only file: words between spaces, one command a line.
fn commands(lines: &str) -> Vec<u8> {
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let lines = lines.lines().map(words).filter(|words| !words.is_empty());
    lines.flat_map(|words| encode_request(&words)).collect()
}

/// Asks for each line; none is answered with an error.
fn ask_all(client: &mut Client, lines: &str) {
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let reply = client.ask(line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
    }
}

/// Rewrites the append-only file of redis-server, and waits until that is done.
fn rewrite(client: &mut Client) {
    client.ask("BGREWRITEAOF");
    eventually("the append-only file is rewritten", || {
        crate::support::info(client, "aof_rewrite_in_progress") == 0
            && crate::support::info(client, "aof_rewrite_scheduled") == 0
    });
}
