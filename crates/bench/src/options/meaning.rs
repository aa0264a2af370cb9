//! From what was typed to what is to be done: which server, which workloads, how they are put on it.

use super::typed::{MixedCommand, Options};
use super::uri::Uri;
use crate::drive::plan::{Listening, Pace, Plan, Until};
use crate::limits::MAX_CHANNELS;
use crate::load::catalogue::{INLINE_PING, TESTS, Test, select};
use crate::load::data::Data;
use crate::load::home::{TAG, tagged};
use crate::load::numbers::{Pattern, Spec};
use crate::load::template::{KeyForm, Template, ValueForm};
use crate::load::workload::{Shape, Workload};
use crate::wire::target::{Address, Greeting, Target};
use std::io::Read;
use std::time::Duration;

/// How many keys a mix has when nobody says, as in memtier_benchmark.
const MIX_KEYS: u64 = 10_000_001;

/// Everything that is to be done.
#[derive(Clone, Debug)]
pub(crate) struct Meaning {
    /// One, or those of --target.
    pub(crate) targets: Vec<Target>,
    /// What to send, one after the other, and how.
    pub(crate) jobs: Vec<(Plan, Workload)>,
}

/// Finds out what options mean. Looks up the server's name, and reads the standard input where the
/// options say so.
///
/// # Errors
/// Options contradict each other, name what is not there, or the server's name cannot be looked up.
pub(crate) fn understand(options: &Options) -> Result<Meaning, String> {
    Ok(Meaning {
        jobs: jobs(options)?,
        targets: targets(options)?,
    })
}

fn check(options: &Options) -> Result<(), String> {
    let is_open = options.rate.is_some() || options.rate_per_client.is_some();
    if is_open && !options.keep_alive {
        return Err("--rate needs connections that stay (-k 1)".into());
    }
    if options.reconnect_interval.is_some() && !options.keep_alive {
        return Err("--reconnect-interval needs connections that stay (-k 1)".into());
    }
    if options.run_count > 1 && options.find_rate {
        return Err("--run-count repeats whole tests; --find-rate does not take it".into());
    }
    if options.find_rate && (is_open || !options.keep_alive) {
        return Err("--find-rate sets the rate itself, on connections that stay".into());
    }
    if options.threads > options.clients {
        return Err("there are more --threads than --clients".into());
    }
    if options.user.is_some() && options.password.is_none() && options.uri.is_none() {
        return Err("--user needs a password (-a)".into());
    }
    let (low, high) = (options.key_minimum.unwrap_or(0), options.key_maximum);
    if high.is_some_and(|high| high < low) {
        return Err("--key-maximum is below --key-minimum".into());
    }
    Ok(())
}

fn plan(options: &Options) -> Plan {
    let per_client = options
        .rate_per_client
        .map(|rate| rate * options.clients as f64);
    let pace = match options.rate.or(per_client) {
        Some(rate) => Pace::Open {
            rate,
            arrivals: options.arrivals,
        },
        None => Pace::Closed,
    };
    let until = match (options.test_time, options.requests) {
        (Some(time), _) => Until::Time(time),
        (None, requests) => Until::Requests(requests.unwrap_or(100_000)),
    };
    Plan {
        clients: options.clients,
        threads: options.threads,
        pipeline: options.pipeline,
        pace,
        until,
        warmup: options.warmup.unwrap_or(Duration::ZERO),
        keep_alive: options.keep_alive,
        seed: options.seed.unwrap_or_else(random_seed),
        cpus: options.cpus.clone(),
        timeout: options.timeout.max(Duration::from_millis(1)),
        reconnect: options.reconnect,
        reconnect_interval: options.reconnect_interval,
        distinct_seeds: options.distinct_seeds,
        shows_errors: options.shows_errors,
        keeps_intervals: options.hdr.is_some(),
        // A program reads these columns, and often both streams.
        has_progress: options.has_progress && !options.is_csv,
        listening: None,
    }
}

fn random_seed() -> u64 {
    let mut bytes = [0; 8];
    // Without the kernel's randomness any seed will do: it keeps no secret.
    let _ = sys::random::fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// The server, where there can be only one.
///
/// # Errors
/// There are several, or its name cannot be looked up.
pub(crate) fn only_target(options: &Options) -> Result<Target, String> {
    let mut targets = targets(options)?;
    match (targets.pop(), targets.is_empty()) {
        (Some(target), true) => Ok(target),
        _ => Err("this needs a single server".into()),
    }
}

fn targets(options: &Options) -> Result<Vec<Target>, String> {
    if options.targets.is_empty() {
        return Ok(vec![target(options, None, options.uri.as_ref())?]);
    }
    let named = options.targets.iter();
    named
        .map(|(name, uri)| target(options, Some(name), Some(uri)))
        .collect()
}

fn target(options: &Options, name: Option<&String>, uri: Option<&Uri>) -> Result<Target, String> {
    let address = match (&options.socket, uri) {
        // A target says all by itself.
        (Some(path), _) if name.is_none() => Address::Unix(path.clone()),
        (_, Some(uri)) => uri.address.clone(),
        _ => Address::Tcp(options.host.clone(), options.port),
    };
    let from_uri = |field: fn(&Uri) -> &Option<String>| uri.and_then(|uri| field(uri).clone());
    let user = options.user.clone();
    let password = options.password.clone();
    let greeting = Greeting {
        user: user.or_else(|| from_uri(|uri| &uri.user)),
        password: password.or_else(|| from_uri(|uri| &uri.password)),
        is_resp3: options.is_resp3,
        database: uri.and_then(|uri| uri.database).unwrap_or(options.database),
        has_tracking: options.has_tracking,
    };
    Ok(Target {
        name: name.cloned().unwrap_or_else(|| address.text()),
        endpoint: address.endpoint()?,
        greeting,
        pid: options.server_pid.filter(|_| name.is_none()),
        nodes: None,
    })
}

/// What to send, one after the other, and how.
///
/// # Errors
/// Options contradict each other or name what is not there.
pub(crate) fn jobs(options: &Options) -> Result<Vec<(Plan, Workload)>, String> {
    check(options)?;
    let plan = &plan(options);
    let maker = Maker::new(options, plan);
    if !options.words.is_empty() {
        return Ok(vec![(plan.clone(), maker.command(words(options)?))]);
    }
    if options.ratio.is_some() || !options.commands.is_empty() {
        return Ok(vec![(plan.clone(), maker.mix()?)]);
    }
    let tests: Vec<&Test> = match &options.tests {
        Some(names) => select(names)?,
        None => TESTS.iter().filter(|test| test.is_default).collect(),
    };
    let job = |test: &Test| {
        let mut plan = plan.clone();
        plan.keep_alive &= test.names[0] != "connect";
        if test.names[0] == "pubsub" {
            if options.is_cluster {
                return Err("the test pubsub does not go with --cluster".to_owned());
            }
            plan.listening = Some(maker.listening()?);
        }
        Ok((plan, maker.test(test)))
    };
    tests.into_iter().map(job).collect()
}

/// Whether the command line says what is to be sent, rather than leaving it to the default.
pub(crate) fn has_choice(options: &Options) -> bool {
    options.tests.is_some() || options.ratio.is_some() || !options.commands.is_empty()
}

/// The command of the command line, with its last word from the standard input if that is wanted.
fn words(options: &Options) -> Result<Vec<Vec<u8>>, String> {
    let mut words = options.words.clone();
    if options.last_from_stdin {
        let mut last = Vec::new();
        std::io::stdin()
            .read_to_end(&mut last)
            .map_err(|error| format!("the standard input cannot be read: {error}"))?;
        words.push(last);
    }
    Ok(words)
}

/// Makes workloads of tests and commands.
struct Maker<'a> {
    options: &'a Options,
    keys: KeyForm,
    values: ValueForm,
    data: Data,
}

impl<'a> Maker<'a> {
    fn new(options: &'a Options, plan: &Plan) -> Maker<'a> {
        let has_range = options.keyspace.is_some()
            || options.key_minimum.is_some()
            || options.key_maximum.is_some();
        // A pattern of one key is none: a pattern or a mix asks for keys.
        let uniform = (Pattern::Uniform, Pattern::Uniform);
        let is_mix = options.ratio.is_some();
        Maker {
            options,
            keys: KeyForm {
                prefix: match options.is_cluster {
                    true => [options.key_prefix.as_bytes(), TAG, b":"].concat(),
                    false => options.key_prefix.clone().into_bytes(),
                },
                digits: options.key_digits,
                is_random: has_range || is_mix || options.key_pattern != uniform,
            },
            values: ValueForm {
                sizes: options.sizes.clone(),
                is_varied: options.random_data,
            },
            data: Data::new(plan.seed),
        }
    }

    /// The numbers of requests that write or don't.
    fn numbers(&self, writes: bool, pattern: Option<Pattern>) -> Spec {
        let options = self.options;
        let (for_writes, for_reads) = options.key_pattern;
        let chosen = if writes { for_writes } else { for_reads };
        let (first, count) = match (options.key_minimum, options.key_maximum, options.keyspace) {
            (None, None, Some(count)) => (0, count),
            (low, Some(high), _) => {
                let low = low.unwrap_or(0);
                (low, (high - low).saturating_add(1))
            }
            (low, None, count) => (low.unwrap_or(0), count.unwrap_or(MIX_KEYS)),
        };
        Spec {
            first,
            count,
            pattern: pattern.unwrap_or(chosen),
            exponent: options.key_exponent,
            centre: options.key_centre,
            deviation: options.key_deviation,
            hot_share: options.hot_share,
            writes,
        }
    }

    /// Those who listen to what is published, and the channels, which have the names of keys.
    fn listening(&self) -> Result<Listening, String> {
        let numbers = self.numbers(true, None);
        if self.keys.is_random && numbers.count > MAX_CHANNELS {
            return Err(format!(
                "the test pubsub takes at most {MAX_CHANNELS} channels (-r)"
            ));
        }
        Ok(Listening {
            subscribers: self.options.subscribers,
            channels: self.keys.names(numbers.first, numbers.count),
        })
    }

    fn template(&self, commands: &[Vec<Vec<u8>>]) -> Template {
        let expiry_s = self.options.expiry_s.unwrap_or((60, 60));
        let new = |commands: &[_]| {
            Template::new(commands, &self.keys, &self.values, expiry_s, &self.data)
        };
        match self.options.is_cluster {
            true => new(commands).with_tags(),
            false => new(commands),
        }
    }

    fn shape(&self, row: usize, commands: &[Vec<Vec<u8>>], weight: u64) -> Shape {
        Shape {
            row,
            weight,
            template: self.template(commands),
            // Far below the limits of any protocol.
            replies: commands.len() as u32,
            numbers: row,
        }
    }

    /// A SET, with an expiry for as many as are to have one.
    fn set_shapes(&self, row: usize, weight: u64) -> Vec<Shape> {
        const PARTS: f64 = 1_000.0;
        let plain = words_of("SET __key__ __data__");
        let Some(_) = self.options.expiry_s else {
            return vec![self.shape(row, &[plain], weight)];
        };
        let expiring = words_of("SET __key__ __data__ EX __expiry__");
        let share = (self.options.expiry_share * PARTS).round() as u64;
        vec![
            self.shape(row, &[expiring], weight * share),
            self.shape(row, &[plain], weight * (PARTS as u64 - share)),
        ]
    }

    fn test(&self, test: &Test) -> Workload {
        let keys = self.options.multi_keys;
        let title = test.title(keys);
        let shapes = match test.names[0] {
            "set" => self.set_shapes(0, 1),
            "ping_inline" => vec![Shape {
                row: 0,
                weight: 1,
                template: Template::raw(INLINE_PING.as_bytes()),
                replies: 1,
                numbers: 0,
            }],
            _ => {
                let mut commands = test.words(keys);
                if self.options.is_cluster {
                    commands.iter_mut().for_each(|words| tagged(words));
                }
                vec![self.shape(0, &commands, 1)]
            }
        };
        Workload {
            rows: vec![title.clone()],
            title,
            shapes: shapes
                .into_iter()
                .filter(|shape| shape.weight > 0)
                .collect(),
            numbers: vec![self.numbers(test.writes, None)],
            payload_bytes: self.values.sizes.mean(),
        }
    }

    fn command(&self, words: Vec<Vec<u8>>) -> Workload {
        let title = String::from_utf8_lossy(&words.join(&b' ')).into_owned();
        Workload {
            rows: vec![title.clone()],
            title,
            shapes: vec![self.shape(0, &[words], 1)],
            numbers: vec![self.numbers(true, None)],
            payload_bytes: self.values.sizes.mean(),
        }
    }

    fn mix(&self) -> Result<Workload, String> {
        let mut workload = Workload {
            title: String::new(),
            rows: Vec::new(),
            shapes: Vec::new(),
            numbers: Vec::new(),
            payload_bytes: self.values.sizes.mean(),
        };
        let mut titles = Vec::new();
        if let Some((sets, gets)) = self.options.ratio {
            titles.push(format!("SET:GET {sets}:{gets}"));
            workload.rows = vec!["SET".into(), "GET".into()];
            workload.numbers = vec![self.numbers(true, None), self.numbers(false, None)];
            workload.shapes = self.set_shapes(0, sets);
            let scale = if self.options.expiry_s.is_some() {
                1_000
            } else {
                1
            };
            let get = words_of("GET __key__");
            workload.shapes.push(self.shape(1, &[get], gets * scale));
        }
        for command in &self.options.commands {
            self.add_command(&mut workload, command)?;
            titles.push(format!("{}:{}", command.line, command.weight));
        }
        workload.shapes.retain(|shape| shape.weight > 0);
        if workload.shapes.is_empty() {
            return Err("no command of the mix has a weight".into());
        }
        workload.title = titles.join(", ");
        Ok(workload)
    }

    fn add_command(&self, workload: &mut Workload, command: &MixedCommand) -> Result<(), String> {
        let words = words_of(&command.line);
        let Some(name) = words.first() else {
            return Err("--command is empty".into());
        };
        let row = workload.rows.len();
        workload
            .rows
            .push(String::from_utf8_lossy(name).to_uppercase());
        let is_read = [b"GET".as_slice(), b"MGET", b"EXISTS", b"TTL", b"STRLEN"]
            .contains(&name.to_ascii_uppercase().as_slice());
        workload
            .numbers
            .push(self.numbers(!is_read, command.pattern));
        // The weights of a --ratio beside it may be scaled; these have to be as well.
        let scale = if self.options.expiry_s.is_some() {
            1_000
        } else {
            1
        };
        let shape = self.shape(row, &[words], command.weight * scale);
        workload.shapes.push(shape);
        Ok(())
    }
}

fn words_of(line: &str) -> Vec<Vec<u8>> {
    line.split_whitespace()
        .map(|word| word.as_bytes().to_vec())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(line: &str) -> Result<Meaning, String> {
        let words = line.split_whitespace().map(std::ffi::OsString::from);
        understand(&super::super::parse(words).expect("it can be read"))
    }

    fn only_job(line: &str) -> (Plan, Workload) {
        let mut jobs = understood(line).expect("it makes sense").jobs;
        assert_eq!(jobs.len(), 1, "{line}");
        jobs.remove(0)
    }

    #[test]
    fn the_default_is_redis_benchmarks() {
        let meaning = understood("").expect("it makes sense");
        assert_eq!(meaning.jobs.len(), 20);
        assert_eq!(meaning.targets[0].name, "127.0.0.1:6379");
        let plan = &meaning.jobs[0].0;
        assert_eq!(plan.until, Until::Requests(100_000));
        assert_eq!(
            (plan.clients, plan.pipeline, plan.pace),
            (50, 1, Pace::Closed)
        );
    }

    #[test]
    fn ranges_come_from_either_tools_options() {
        for (line, first, count) in [
            ("-t set -r 1000", 0, 1_000),
            ("-t set --key-minimum 5 --key-maximum 14", 5, 10),
            ("-t set --key-maximum 14", 0, 15),
            ("-t set -r 1000 --key-minimum 7", 7, 1_000),
            ("--ratio 1:1", 0, MIX_KEYS),
        ] {
            let (_, workload) = only_job(line);
            let spec = &workload.numbers[0];
            assert_eq!((spec.first, spec.count), (first, count), "{line}");
        }
    }

    #[test]
    fn patterns_are_for_writes_and_reads() {
        let (_, mix) =
            only_job("--ratio 1:9 --key-pattern S:Z --expiry-range 1-5 --expiry-share 0.25");
        let patterns: Vec<_> = mix.numbers.iter().map(|spec| spec.pattern).collect();
        assert_eq!(patterns, [Pattern::Sequential, Pattern::Zipf]);
        let weights: Vec<_> = mix
            .shapes
            .iter()
            .map(|shape| (shape.row, shape.weight))
            .collect();
        assert_eq!(weights, [(0, 250), (0, 750), (1, 9_000)]);
        let (_, get) = only_job("-t get -r 10 --key-pattern S:Z");
        assert_eq!(get.numbers[0].pattern, Pattern::Zipf);
    }

    #[test]
    fn rates_make_an_open_loop() {
        let rate = |line| only_job(line).0.rate();
        assert_eq!(rate("-t get --rate 50k"), Some(50_000.0));
        assert_eq!(rate("-t get --rate-limiting 10 -c 20"), Some(200.0));
        assert_eq!(rate("-t get"), None);
    }

    #[test]
    fn contradictions_are_refused() {
        for (line, reason) in [
            ("--rate 5 -k 0", "connections that stay"),
            ("--reconnect-interval 5 -k 0", "connections that stay"),
            ("--find-rate --run-count 2", "does not take it"),
            ("--threads 4 -c 2", "more --threads"),
            ("--find-rate --rate 5", "sets the rate itself"),
            ("--user me", "password"),
            ("--key-minimum 5 --key-maximum 4", "below"),
            ("-t nonsense", "no test"),
            ("--ratio 0:1 -t set --command ''", ""),
            ("-h no.such.host.invalid -t set", "Could not connect"),
        ] {
            if let Err(error) = understood(line) {
                assert!(error.contains(reason), "{line}: {error}");
            } else {
                assert!(reason.is_empty(), "{line} was taken");
            }
        }
    }

    #[test]
    fn several_commands_have_as_many_replies() {
        let (_, multi) = only_job("-t multi --multi-keys 3");
        assert_eq!(multi.shapes[0].replies, 5);
        let (connect, _) = only_job("-t connect");
        assert!(!connect.keep_alive);
    }
}
