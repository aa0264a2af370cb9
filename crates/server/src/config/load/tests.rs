//! Command lines and files, and what becomes of them.

use super::*;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A directory of a test's own, removed with it.
pub(in crate::config) struct Scratch(PathBuf);

impl Scratch {
    pub(in crate::config) fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ferrite-config-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the directory for temporary files is writable");
        Scratch(fs::canonicalize(path).expect("it was just made"))
    }

    pub(in crate::config) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, and the directories that it is in.
    pub(in crate::config) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        let directory = path.parent().expect("it is in the directory");
        fs::create_dir_all(directory).expect("the directory is the test's own");
        fs::write(&path, text).expect("the directory is the test's own");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn start(args: &[&str], standard_input: &str) -> Result<(Settings, Option<PathBuf>), String> {
    let args = args.iter().map(OsString::from);
    match load_from(args, standard_input.as_bytes()) {
        Ok(Startup::Run { settings, file, .. }) => Ok((settings, file)),
        Ok(Startup::Help(text) | Startup::Version(text) | Startup::CheckConfig { text, .. }) => {
            Err(text)
        }
        Ok(Startup::Health(_)) => Err("a check of health".into()),
        Ok(Startup::CheckLog(directory) | Startup::RepairLog(directory)) => {
            Err(directory.display().to_string())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn settings(args: &[&str]) -> Settings {
    start(args, "").expect("nothing is wrong").0
}

fn error(args: &[&str]) -> String {
    start(args, "").err().expect("something is wrong")
}

#[test]
fn without_arguments_everything_is_at_its_default() {
    let (settings, file) = start(&[], "port 1").expect("nothing is wrong");
    assert_eq!(file, None);
    assert_eq!(settings.int(Setting::Port), 6379);
    let here = std::env::current_dir().and_then(fs::canonicalize);
    let here = here.expect("the tests run somewhere");
    assert_eq!(Path::new(&*settings.text(Setting::Dir)), here);
}

#[test]
fn flags_count_more_than_standard_input_and_that_more_than_the_file() {
    let scratch = Scratch::new();
    let path = scratch.write("a.conf", "timeout 1\nport 1\nmaxclients 1\nport 2\n");
    let path_text = path.to_str().expect("a path of UTF-8");
    let read = start(&[path_text, "-", "--timeout", "3"], "timeout 2\nport 3\n");
    let (settings, file) = read.expect("nothing is wrong");
    assert_eq!(settings.int(Setting::Timeout), 3);
    assert_eq!(settings.int(Setting::Port), 3);
    assert_eq!(settings.int(Setting::MaxClients), 1);
    assert_eq!(file, Some(path));
}

#[test]
fn flags_may_include_a_file() {
    let scratch = Scratch::new();
    let path = scratch.write("a.conf", "timeout 1\n");
    let path = path.to_str().expect("a path of UTF-8");
    let settings = settings(&["--timeout", "2", "--include", path]);
    assert_eq!(settings.int(Setting::Timeout), 1);
}

#[test]
fn save_points_add_up_until_an_empty_one() {
    for (args, points) in [
        (&["--save", "900", "1"][..], "900 1"),
        (&["--save", "900 1 300 10"], "900 1 300 10"),
        (&["--save", "900", "1", "--save", "300 10"], "900 1 300 10"),
        (
            &["--save", "900", "1", "--save", "", "--save", "5 6"],
            "5 6",
        ),
        (&["--save", "900", "1", "--save", ""], ""),
        (&[], ""),
        (&["--appendonly", "no"], "3600 1 300 100 60 10000"),
        (&["--appendonly", "no", "--save", ""], ""),
        (&["--appendonly", "no", "--save", "900 1"], "900 1"),
        (&["--save", "900 1", "--appendonly", "no"], "900 1"),
        (&["--appendonly", "no", "--appendonly", "yes"], ""),
    ] {
        assert_eq!(&*settings(args).text(Setting::Save), points, "{args:?}");
    }
}

#[test]
fn tools_turn_persistence_off() {
    let settings = settings(&["--save", "", "--appendonly", "no", "--port", "0"]);
    assert_eq!(settings.get_text(Setting::Save), "");
    assert_eq!(settings.get_text(Setting::AppendOnly), "no");
    assert_eq!(settings.int(Setting::Port), 0);
}

#[test]
fn lists_may_be_one_word_or_several() {
    for args in [
        &["--bind", "127.0.0.1", "::1"][..],
        &["--bind", "127.0.0.1 ::1"],
        &["--bind=127.0.0.1 ::1"],
        &["--bind", "::2", "--bind", "127.0.0.1", "::1"],
    ] {
        assert_eq!(&*settings(args).text(Setting::Bind), "127.0.0.1 ::1");
    }
    let input = "client-output-buffer-limit normal 1 2 3\n\
                 client-output-buffer-limit replica 4 5 6 pubsub 7 8 9\n\
                 client-output-buffer-limit normal 1kb 2 3\n";
    let (settings, _) = start(&["-"], input).expect("nothing is wrong");
    assert_eq!(
        settings.get_text(Setting::ClientOutputBufferLimit),
        "normal 1024 2 3 slave 4 5 6 pubsub 7 8 9"
    );
}

#[test]
fn the_short_flag_of_memory_counts_megabytes() {
    assert_eq!(settings(&["-m", "100"]).int(Setting::MaxMemory), 100 << 20);
    assert_eq!(settings(&["-m", "1gb"]).int(Setting::MaxMemory), 1 << 30);
    assert_eq!(
        settings(&["--maxmemory", "100"]).int(Setting::MaxMemory),
        100
    );
    assert_eq!(settings(&["-w", "3"]).int(Setting::Threads), 3);
}

#[test]
fn every_mistake_is_reported_with_its_place_and_what_would_be_right() {
    let scratch = Scratch::new();
    let text = "port 1\n\nprot 6379\nport none\ntls-cluster yes\nmaxmemory 10 gigs\n";
    let path = scratch.write("a.conf", text);
    let path = path.to_str().expect("a path of UTF-8");
    let expected = format!(
        "{path}:3: 'prot 6379'\n  \
           unknown directive; did you mean 'port'?\n\
         {path}:4: 'port none'\n  \
           argument couldn't be parsed into an integer; port takes a number from 0 to 65535\n\
         {path}:5: 'tls-cluster yes'\n  \
           not possible here: there is no TLS; tls-cluster takes 'no'\n\
         {path}:6: 'maxmemory 10 gigs'\n  \
           wrong number of arguments; maxmemory takes a size such as 100mb or a share such as 80%\n\
         command line: '--loglevel loud'\n  \
           argument(s) must be one of the following: debug, verbose, notice, warning; \
           loglevel takes debug, verbose, notice, warning"
    );
    assert_eq!(error(&[path, "--loglevel", "loud"]), expected);
}

#[test]
fn what_redis_only_tunes_is_accepted_and_told_of_once() {
    let text = "list-compress-depth 2\nslave-priority 7\nhz 20\nreplica-priority 8\n";
    let args = ["-", "--io-threads", "4"].iter().map(OsString::from);
    let Ok(Startup::Run {
        settings, ignored, ..
    }) = load_from(args, text.as_bytes())
    else {
        panic!("nothing is wrong");
    };
    assert_eq!(
        ignored,
        ["list-compress-depth", "replica-priority", "io-threads"]
    );
    assert_eq!(settings.int(Setting::Hz), 20);
    let row = foreign::Foreign::find(b"slave-priority").expect("it is a directive");
    assert_eq!(settings.foreign_text(row).as_deref(), Some("8"));
}

#[test]
fn a_check_tells_of_each_directive_with_its_place() {
    let scratch = Scratch::new();
    let text = "port 1\nactivedefrag yes\n\ntls-cluster yes\nbind \"a\nprot 1\nmasterauth hidden\n";
    let path = scratch.write("a.conf", text);
    let path = path.to_str().expect("a path of UTF-8");
    let check = |args: &[&str], input: &str| match load_from(
        args.iter().map(OsString::from),
        input.as_bytes(),
    ) {
        Ok(Startup::CheckConfig { text, is_right, .. }) => (text, is_right),
        _ => panic!("{args:?} asks for a check"),
    };
    let (said, is_right) = check(&["--check-config", path, "--hz", "none"], "");
    assert!(!is_right);
    assert!(!said.contains("hidden"), "{said}");
    for line in [
        format!("{path}:2: ignored: activedefrag yes (it tunes the memory allocator"),
        format!("{path}:4: refused: tls-cluster yes (not possible here: there is no TLS"),
        format!("{path}:5: refused: bind \"a (Unbalanced quotes"),
        format!("{path}:6: refused: prot 1 (unknown directive; did you mean 'port'?)"),
        format!("{path}:7: ignored: masterauth ... (there is no replication)"),
        "command line: refused: --hz none (argument couldn't be parsed".to_owned(),
    ] {
        assert!(
            said.lines().any(|said| said.starts_with(&line)),
            "{line}: {said}"
        );
    }
    let counts = "7 directives: 1 take effect, 2 are accepted and change nothing, 4 are refused\n";
    assert!(said.ends_with(counts), "{said}");

    let (said, is_right) = check(&["--check-config", "/no/such"], "");
    assert!(
        !is_right && said.starts_with("/no/such: refused: (cannot be read"),
        "{said}"
    );
    assert!(error(&["--check-config"]).contains("one configuration file has to follow"));
    assert!(error(&["a", "--check-config", "b"]).contains("one configuration file"));
}

#[test]
fn each_mistake_stops_the_start() {
    for (args, wrong) in [
        (&["--port"][..], "wrong number of arguments"),
        (&["--port", "1", "2"], "wrong number of arguments"),
        (&["--port", ""], "couldn't be parsed into an integer"),
        (&["--port", "65536"], "between 0 and 65535 inclusive"),
        (&["--bind"], "wrong number of arguments"),
        (&["--daemonize", "--port"], "must be 'yes' or 'no'"),
        (&["--unixsocketperm", "999"], "parsed as an octal number"),
        (
            &["--client-output-buffer-limit", "normal", "1"],
            "Wrong number of arguments in",
        ),
        (
            &["--save", "900"],
            "Invalid save parameters; save takes pairs of seconds",
        ),
        (&["--save", "900", "--save", "1"], "Invalid save parameters"),
        (&["--dbfilename", "a/b"], "dbfilename can't be a path"),
        (
            &["--appendfsync", "now"],
            "must be one of the following: always, everysec, no",
        ),
        (
            &["--maxmemory-policy", "allkeys"],
            "must be one of the following: volatile-lru, volatile-lfu",
        ),
        (
            &["--dir", "/no/such/directory"],
            "No such file or directory",
        ),
        (&["--shards", "100"], "0 or a power of two"),
        (
            &["--replicaof", "host", "1"],
            "not possible here: there is no replication",
        ),
        (&["--foo", "1"], "unknown directive"),
        (&["-x"], "unknown flag"),
        (
            &["/no/such/file.conf"],
            "/no/such/file.conf: cannot be read: No such file",
        ),
    ] {
        let error = error(args);
        assert!(error.contains(wrong), "{args:?}: {error}");
    }
}

#[test]
fn a_password_is_in_no_message() {
    let error = error(&["--requirepass", "hidden", "hidden"]);
    assert!(!error.contains("hidden"), "{error}");
}

#[test]
fn a_list_of_problems_has_an_end() {
    let text = "nonsense\n".repeat(MAX_PROBLEMS + 5);
    let error = start(&["-"], &text).err().expect("something is wrong");
    assert_eq!(error.matches("nonsense").count(), MAX_PROBLEMS);
    assert!(error.ends_with("\nand 5 more"));
}

#[test]
fn help_and_version_win_over_mistakes() {
    let text = start(&["--nonsense=1", "--help"], "").err().expect("help");
    assert!(text.starts_with("Usage:"), "{text}");
    let text = start(&["-v"], "").err().expect("a version");
    assert!(text.contains(env!("CARGO_PKG_VERSION")), "{text}");
}
