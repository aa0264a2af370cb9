//! Command lines and what they set.

use super::*;
use crate::load::numbers::Pattern;
use crate::load::sizes::Sizes;
use std::time::Duration;

fn parsed(line: &str) -> Options {
    parse(line.split_whitespace().map(OsString::from))
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn refused(line: &str) -> String {
    match parse(line.split_whitespace().map(OsString::from)) {
        Ok(options) => panic!("{line} was taken: {options:?}"),
        Err(error) => error,
    }
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = FLAGS.iter().flat_map(|flag| flag.names).collect();
    let mut letters: Vec<_> = FLAGS.iter().filter_map(|flag| flag.short).collect();
    let before = (names.len(), letters.len());
    names.sort_unstable();
    names.dedup();
    letters.sort_unstable();
    letters.dedup();
    assert_eq!((names.len(), letters.len()), before);
}

#[test]
fn redis_benchmarks_options_mean_what_they_do_there() {
    let options =
        parsed("-h h -p 7 -a pw --user me -n 1000 -c 5 -P 16 -d 100 -r 1000 -t set,get -q -3");
    assert_eq!((options.host.as_str(), options.port), ("h", 7));
    assert_eq!(
        (options.password.as_deref(), options.user.as_deref()),
        (Some("pw"), Some("me"))
    );
    assert_eq!(
        (options.requests, options.clients, options.pipeline),
        (Some(1_000), 5, 16)
    );
    assert_eq!(
        (options.sizes, options.keyspace),
        (Sizes::Fixed(100), Some(1_000))
    );
    assert!(options.is_quiet && options.is_resp3 && !options.is_csv);
    let options = parsed("-n100 -k 0 -l --csv --dbnum 3 --threads 2 -s /tmp/x -x get");
    assert_eq!(
        (options.requests, options.keep_alive, options.repeats),
        (Some(100), false, true)
    );
    assert_eq!((options.database, options.threads), (3, 2));
    assert!(options.last_from_stdin && options.socket.is_some());
}

#[test]
fn memtiers_options_are_there_too() {
    let options = parsed(
        "--server=h --ratio=1:10 --key-pattern=S:Z --key-minimum 5 --key-maximum 10 --key-prefix=m- \
         --data-size-range=1-1kb --expiry-range=10-20 --test-time=3 --select-db=2 --random-data",
    );
    assert_eq!(options.ratio, Some((1, 10)));
    assert_eq!(options.key_pattern, (Pattern::Sequential, Pattern::Zipf));
    assert_eq!(
        (options.key_minimum, options.key_maximum),
        (Some(5), Some(10))
    );
    assert_eq!(options.sizes, Sizes::Range(1, 1_024));
    assert_eq!(options.expiry_s, Some((10, 20)));
    assert_eq!(options.test_time, Some(Duration::from_secs(3)));
    assert!(options.random_data && options.database == 2);
    let options = parsed("--command=PING --command-ratio=3 --command=INFO --command-key-pattern=H");
    assert_eq!(options.commands[0].weight, 3);
    assert_eq!(options.commands[1].pattern, Some(Pattern::Hot));
}

#[test]
fn the_command_is_everything_behind_the_first_word() {
    let options = parsed("-n 10 lpush mylist -1 --csv");
    let words: Vec<_> = options
        .words
        .iter()
        .map(|word| String::from_utf8_lossy(word))
        .collect();
    assert_eq!(words, ["lpush", "mylist", "-1", "--csv"]);
    assert!(!options.is_csv);
    assert_eq!(parsed("-- -odd").words, [b"-odd"]);
}

#[test]
fn what_memtiers_users_script_means_the_same() {
    let options = parsed(
        "--hide-histogram --run-count=3 --print-percentiles=50,90,99.9 --out-file=o --reconnect-interval=7 \
         --hdr-file-prefix=h --seed 1 --randomize --distinct-client-seed -e",
    );
    assert!(options.hides_histogram && options.distinct_seeds && options.shows_errors);
    assert_eq!(
        (options.run_count, options.reconnect_interval),
        (3, Some(7))
    );
    assert_eq!(options.percentiles, Some(vec![50.0, 90.0, 99.9]));
    assert_eq!(
        (options.hdr_prefix.as_deref(), options.seed),
        (Some("h"), None)
    );
    assert_eq!(options.out_file, Some("o".into()));
}

#[test]
fn what_was_typed_can_be_typed_again() {
    let options = parsed("side-by-side -r 1k -R --cells x");
    let words: Vec<_> = options.typed.iter().flat_map(Typed::words).collect();
    assert_eq!(words, ["--keyspace", "1k", "--random-data", "--cells", "x"]);
}

#[test]
fn mistakes_are_named() {
    for (line, reason) in [
        ("-Z", "no option -Z"),
        ("--requets 5", "did you mean --requests"),
        ("--frobnicate", "--help"),
        ("-n", "argument"),
        ("-n x", "-n (--requests): 'x' is no count"),
        ("-n 0", "-n (--requests): it has to be at least 1"),
        ("--test-time 0", "more than 0"),
        ("--run-count 0", "from 1"),
        ("--reconnect-interval 0", "at least 1"),
        ("--print-percentiles 50,x", "'x'"),
        ("side-by-side --csv", "side-by-side has no option --csv"),
        ("side-by-side -h h", "-h (--host)"),
        ("--find-rate side-by-side", "--find-rate"),
        ("floor --cells x", "floor has no option --cells"),
        ("--quick", "side-by-side"),
        ("-p 0", "from 1 to 65535"),
        ("-c 0", "from 1"),
        ("--csv=1", "csv"),
        ("--command-ratio 3", "no --command"),
        ("--key-pattern Q", "no key pattern"),
        ("--arrivals x", "neither"),
        ("-u rediss://h", "TLS"),
    ] {
        let error = refused(line);
        assert!(error.contains(reason), "{line}: {error}");
    }
}
