//! The tests that have names, with those of redis-benchmark first and in its order.
//!
//! A row says what `-t` calls a test, what reports call it, and which commands it sends. Words with
//! underscores are the placeholders of `template`; `__multi__` repeats what follows it once per key of
//! a command on several keys.

/// A test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    /// The names that `-t` knows it by, the first one its own.
    pub(crate) names: &'static [&'static str],
    /// What reports call it; `{keys}` is the number of keys.
    pub(crate) title: &'static str,
    /// The commands, words apart by spaces, commands by `;`.
    pub(crate) commands: &'static str,
    /// It runs when no test is named.
    pub(crate) is_default: bool,
    /// It writes: `--key-pattern` has a pattern for such and one for others.
    pub(crate) writes: bool,
    /// What it does, for `--help`.
    pub(crate) summary: &'static str,
}

const fn test(
    names: &'static [&'static str],
    title: &'static str,
    commands: &'static str,
    writes: bool,
) -> Test {
    Test {
        names,
        title,
        commands,
        is_default: true,
        writes,
        summary: "",
    }
}

const fn extra(
    names: &'static [&'static str],
    title: &'static str,
    commands: &'static str,
    writes: bool,
    summary: &'static str,
) -> Test {
    Test {
        names,
        title,
        commands,
        is_default: false,
        writes,
        summary,
    }
}

/// Sent as it is, not as an array.
pub(crate) const INLINE_PING: &str = "PING\r\n";

/// Every test.
pub(crate) const TESTS: &[Test] = &[
    test(&["ping_inline", "ping"], "PING_INLINE", INLINE_PING, false),
    test(&["ping_mbulk", "ping"], "PING_MBULK", "PING", false),
    test(&["set"], "SET", "SET __key__ __data__", true),
    test(&["get"], "GET", "GET __key__", false),
    test(&["incr"], "INCR", "INCR counter:__rand_int__", true),
    test(&["lpush"], "LPUSH", "LPUSH mylist __data__", true),
    test(&["rpush"], "RPUSH", "RPUSH mylist __data__", true),
    test(&["lpop"], "LPOP", "LPOP mylist", true),
    test(&["rpop"], "RPOP", "RPOP mylist", true),
    test(&["sadd"], "SADD", "SADD myset element:__rand_int__", true),
    test(
        &["hset"],
        "HSET",
        "HSET myhash element:__rand_int__ __data__",
        true,
    ),
    test(&["spop"], "SPOP", "SPOP myset", true),
    test(
        &["zadd"],
        "ZADD",
        "ZADD myzset __score__ element:__rand_int__",
        true,
    ),
    test(&["zpopmin"], "ZPOPMIN", "ZPOPMIN myzset", true),
    test(
        &[
            "lrange",
            "lrange_100",
            "lrange_300",
            "lrange_500",
            "lrange_600",
        ],
        "LPUSH (needed to benchmark LRANGE)",
        "LPUSH mylist __data__",
        true,
    ),
    test(
        &["lrange_100", "lrange"],
        "LRANGE_100 (first 100 elements)",
        "LRANGE mylist 0 99",
        false,
    ),
    test(
        &["lrange_300", "lrange"],
        "LRANGE_300 (first 300 elements)",
        "LRANGE mylist 0 299",
        false,
    ),
    test(
        &["lrange_500", "lrange"],
        "LRANGE_500 (first 500 elements)",
        "LRANGE mylist 0 499",
        false,
    ),
    test(
        &["lrange_600", "lrange"],
        "LRANGE_600 (first 600 elements)",
        "LRANGE mylist 0 599",
        false,
    ),
    test(
        &["mset"],
        "MSET ({keys} keys)",
        "MSET __multi__ __key__ __data__",
        true,
    ),
    extra(
        &["mget"],
        "MGET ({keys} keys)",
        "MGET __multi__ __key__",
        false,
        "MGET of --multi-keys keys",
    ),
    extra(&["del"], "DEL", "DEL __key__", true, "DEL of one key"),
    extra(
        &["setex"],
        "SET EX",
        "SET __key__ __data__ EX __expiry__",
        true,
        "SET with an expiry of --expiry-range",
    ),
    extra(
        &["multi"],
        "MULTI ({keys} INCR)",
        "MULTI ; __multi__ INCR counter:__rand_int__ ; EXEC",
        true,
        "a transaction of --multi-keys INCR",
    ),
    extra(
        &["connect"],
        "CONNECT",
        "PING",
        false,
        "a new connection for each PING, timed from its beginning",
    ),
    extra(
        &["pubsub"],
        "PUBLISH",
        "PUBLISH __key__ __data__",
        true,
        "PUBLISH to as many channels as there are keys, which --subscribers connections all listen to",
    ),
];

impl Test {
    /// The commands with their words, for so many keys where there are several.
    pub(crate) fn words(&self, keys: usize) -> Vec<Vec<Vec<u8>>> {
        self.commands
            .split(" ; ")
            .flat_map(|command| expand(command, keys))
            .collect()
    }

    /// The names of the commands that it sends.
    pub(crate) fn command_names(&self) -> impl Iterator<Item = &'static str> {
        let repeated = |command: &'static str| command.trim_start_matches("__multi__ ");
        let commands = self.commands.split(" ; ").map(repeated);
        commands.filter_map(|command| command.split_whitespace().next())
    }

    /// The title for so many keys.
    pub(crate) fn title(&self, keys: usize) -> String {
        self.title.replace("{keys}", &keys.to_string())
    }
}

fn expand(command: &str, keys: usize) -> Vec<Vec<Vec<u8>>> {
    let words = |text: &str| -> Vec<Vec<u8>> {
        text.split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    let Some((before, repeated)) = command.split_once("__multi__") else {
        return vec![words(command)];
    };
    let (before, repeated) = (words(before), words(repeated));
    if before.is_empty() {
        // A whole command, several times.
        return vec![repeated; keys];
    }
    let repeated = vec![repeated; keys].concat();
    vec![[before, repeated].concat()]
}

/// The tests that a list of names means, in the table's order.
///
/// # Errors
/// A name is not known; the text says which is near.
pub(crate) fn select(names: &str) -> Result<Vec<&'static Test>, String> {
    let names: Vec<_> = names
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    for name in &names {
        if !TESTS.iter().any(|test| test.names.contains(&name.as_str())) {
            return Err(unknown(name));
        }
    }
    let is_meant = |test: &&Test| names.iter().any(|name| test.names.contains(&name.as_str()));
    Ok(TESTS.iter().filter(is_meant).collect())
}

fn unknown(name: &str) -> String {
    let nearest = TESTS
        .iter()
        .map(|test| test.names[0])
        .max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    match nearest {
        Some(near) if strsim::jaro(near, name) > 0.75 => {
            format!("there is no test '{name}'; did you mean '{near}'?")
        }
        _ => {
            let known: Vec<_> = TESTS.iter().map(|test| test.names[0]).collect();
            format!("there is no test '{name}'; there are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(test: &str, keys: usize) -> Vec<String> {
        let selected = select(test).expect("it is in the table");
        let words = selected[0].words(keys);
        words
            .iter()
            .map(|command| String::from_utf8_lossy(&command.join(&b' ')).into_owned())
            .collect()
    }

    #[test]
    fn names_select_what_they_do_in_redis_benchmark() {
        let titles = |names| {
            let selected = select(names).expect("they are in the table");
            selected
                .iter()
                .map(|test| test.title(10))
                .collect::<Vec<_>>()
        };
        assert_eq!(titles("get,SET"), ["SET", "GET"]);
        assert_eq!(titles("ping"), ["PING_INLINE", "PING_MBULK"]);
        assert_eq!(
            titles("lrange_300"),
            [
                "LPUSH (needed to benchmark LRANGE)",
                "LRANGE_300 (first 300 elements)"
            ]
        );
        assert_eq!(titles("lrange").len(), 5);
        assert_eq!(titles("mset"), ["MSET (10 keys)"]);
        assert_eq!(TESTS.iter().filter(|test| test.is_default).count(), 20);
    }

    #[test]
    fn unknown_names_are_refused_with_a_hint() {
        let error = select("gett").expect_err("there is none");
        assert!(error.contains("did you mean 'get'"), "{error}");
        let error = select("set,qqq").expect_err("there is none");
        assert!(error.contains("ping_inline, "), "{error}");
    }

    #[test]
    fn keys_are_repeated_inside_a_command_and_as_commands() {
        assert_eq!(text("mset", 2), ["MSET __key__ __data__ __key__ __data__"]);
        assert_eq!(text("mget", 1), ["MGET __key__"]);
        assert_eq!(
            text("multi", 2),
            [
                "MULTI",
                "INCR counter:__rand_int__",
                "INCR counter:__rand_int__",
                "EXEC"
            ]
        );
    }

    #[test]
    fn names_of_commands_are_told() {
        let names = |test: &str| -> Vec<&str> {
            let selected = select(test).expect("it is in the table");
            selected[0].command_names().collect()
        };
        assert_eq!(names("ping_inline"), ["PING"]);
        assert_eq!(names("mset"), ["MSET"]);
        assert_eq!(names("multi"), ["MULTI", "INCR", "EXEC"]);
        for name in TESTS.iter().flat_map(Test::command_names) {
            assert!(name.bytes().all(|byte| byte.is_ascii_uppercase()), "{name}");
        }
    }

    #[test]
    fn every_extra_test_says_what_it_does() {
        for test in TESTS {
            assert_eq!(test.is_default, test.summary.is_empty(), "{}", test.title);
        }
    }
}
