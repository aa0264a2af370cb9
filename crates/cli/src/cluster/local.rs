//! `cluster local N`: servers on this machine, each with a directory and a log, that share the slots evenly.
//!
//! ```text
//! DIR/map.toml
//! DIR/node-7000/   its data, ferrite.conf (what stood behind `--`), ferrite.log, ferrite.pid
//! DIR/node-7001/   ...
//! ```

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use map::{Draft, DraftNode, Map, even_ranges, ranges_text};

use super::columns::table;
use super::fleet::{Fleet, MAP, Member, read_map, wrong};
use super::given::Given;
use super::launch::{self, Launch};
use super::node_process::SETTINGS;
use super::probe::{self, Report};
use super::subcommand::{Rest, Subcommand, SubcommandFlag};
use super::{bench, port_owner};
use crate::access::Access;
use crate::amounts::{self, bytes_text};
use crate::failure::{Failure, Result};
use crate::flags::Options;
use crate::format::quoted;

pub(super) const SUBCOMMAND: Subcommand = Subcommand {
    name: "local",
    words: &["N"],
    summary: "Starts N servers on this machine that share the slots evenly, and waits until all serve. They \
              run on when this program has ended. If they run already it says so, and starts only those that \
              do not.",
    flags: &[
        SubcommandFlag {
            long: "port",
            value: "PORT",
            summary: "The port of the first; the others have those behind it (7000).",
        },
        SubcommandFlag {
            long: "dir",
            value: "DIR",
            summary: "Where the map is and each server has a directory of its own (cluster-PORT).",
        },
        SubcommandFlag {
            long: "bench",
            value: "",
            summary: "Puts a load on all of them when they serve (`cluster bench DIR 100000 50`), and stops \
                      those that were started.",
        },
    ],
    rest: Rest::BehindDashes("SERVER OPTION"),
    run,
};

/// The port of the first node, if nobody says otherwise.
const PORT: u16 = 7000;

/// The host of all nodes.
const HOST: &str = "127.0.0.1";

/// The most nodes.
const MAX_NODES: u64 = 256;

/// The map before it is whole, which a start that was killed may leave.
const DRAFT: &str = "map.toml.partial";

/// What `--bench` sends, and over how many connections.
const REQUESTS: &str = "100000";
const CONNECTIONS: &str = "50";

/// What a node is started with; nobody else sets it.
const OWN_SETTINGS: &[&str] = &[
    "port",
    "bind",
    "dir",
    "logfile",
    "pidfile",
    "daemonize",
    "cluster-enabled",
    "cluster-map",
    "cluster-node",
];

fn run(given: &Given, options: &Options) -> Result {
    let Running {
        fleet,
        launch,
        reports,
        directory,
        access,
    } = start(given, &options.access)?;
    let text = tell(&fleet, &reports, launch.count(), &directory);
    io::stdout().write_all(text.as_bytes())?;
    if !given.has("bench") {
        launch.keep();
        return Ok(());
    }
    let (requests, connections) = (OsStr::new(REQUESTS), OsStr::new(CONNECTIONS));
    let loaded = bench::drive(&fleet, &access, requests, connections, &[]);
    let started = launch.count();
    drop(launch);
    writeln!(io::stdout(), "{} stopped.", servers(started))?;
    loaded
}

/// Servers that all serve.
struct Running {
    fleet: Fleet,
    launch: Launch,
    reports: Vec<Report>,
    directory: PathBuf,
    /// With the password that the servers were given.
    access: Access,
}

/// Starts what does not run, and waits until all serve.
fn start(given: &Given, access: &Access) -> Result<Running> {
    let count = given.number_at(0, 1..=MAX_NODES)? as usize;
    let port = given.number("port", 1..=65535)?.map(|port| port as u16);
    let settings = Settings::read(given)?;
    let mut access = access.clone();
    if access.password.is_none() {
        access.password.clone_from(&settings.password);
    }
    let directory = match given.value("dir") {
        Some(directory) => PathBuf::from(directory),
        None => PathBuf::from(format!("cluster-{}", port.unwrap_or(PORT))),
    };
    let directory = std::path::absolute(&directory).map_err(|error| wrong(&directory, &error))?;
    let asked = Asked {
        given,
        count,
        port,
        directory: &directory,
    };
    if !directory.exists() {
        // What is refused leaves no directory.
        asked.fleet(&access)?;
    }
    // Another call may do the same at this moment; what it has started runs then.
    let _lock = lock(&directory)?;
    let (fleet, is_new) = asked.fleet(&access)?;
    make(&fleet, &directory, is_new)?;
    let missing: Vec<&Member> = missing(&fleet).collect();
    for member in &missing {
        let place = member.directory.as_ref().expect("it is a local one");
        if !given.rest.is_empty() || !place.join(SETTINGS).exists() {
            launch::write_settings(place, &settings.text(count))
                .map_err(|error| wrong(place, &error))?;
        }
    }
    let mut launch = Launch::start(&missing, &directory.join(MAP))?;
    let reports = launch.wait(&fleet, &access)?;
    Ok(Running {
        fleet,
        launch,
        reports,
        directory,
        access,
    })
}

/// What the command line asks for.
struct Asked<'a> {
    given: &'a Given,
    count: usize,
    port: Option<u16>,
    directory: &'a Path,
}

impl Asked<'_> {
    /// The servers that there shall be, and whether their map has yet to be written.
    ///
    /// # Errors
    /// Why nothing may be started.
    fn fleet(&self, access: &Access) -> Result<(Fleet, bool)> {
        let (map, is_new) = match known(self.directory)? {
            Some(map) => {
                check_same(&map, self.count, self.port, self.directory)?;
                (map, false)
            }
            None => (
                new_map(self.given, self.count, self.port.unwrap_or(PORT))?,
                true,
            ),
        };
        let fleet = Fleet::of(map, Some(self.directory));
        check_ports(missing(&fleet))?;
        check_epoch(&fleet, access)?;
        let running = self.count - missing(&fleet).count();
        if running > 0 && !self.given.rest.is_empty() {
            return Err(self.given.wrong(&format!(
                "{running} of {} servers run already, and would not get the options behind --; stop them \
                 before",
                self.count
            )));
        }
        Ok((fleet, is_new))
    }
}

/// The members that do not run.
fn missing(fleet: &Fleet) -> impl Iterator<Item = &Member> {
    let members = fleet.members.iter();
    members.filter(|member| member.process().is_none())
}

/// Makes the directory, and waits until nobody else starts servers there.
fn lock(directory: &Path) -> Result<File> {
    let locked = fs::create_dir_all(directory)
        .and_then(|()| File::open(directory))
        .and_then(|file| file.lock().map(|()| file));
    locked.map_err(|error| wrong(directory, &error))
}

/// The map of a directory of `cluster local`; none if there is nothing yet.
fn known(directory: &Path) -> Result<Option<Map>> {
    let map = directory.join(MAP);
    if map.exists() {
        return read_map(&map).map(Some);
    }
    let is_empty = match fs::read_dir(directory) {
        Ok(entries) => entries.flatten().all(|entry| entry.file_name() == DRAFT),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(wrong(directory, &error)),
    };
    if is_empty {
        return Ok(None);
    }
    Err(Failure::Other(format!(
        "{} is not empty and has no {MAP}: a cluster wants a directory of its own (--dir)",
        directory.display()
    )))
}

/// Refuses the directory of another cluster than was asked for.
fn check_same(map: &Map, count: usize, port: Option<u16>, directory: &Path) -> Result {
    let first = map.nodes[0].port;
    let is_local = |(at, node): (usize, &map::Node)| {
        let port = usize::from(first) + at;
        node.host == HOST && usize::from(node.port) == port && node.name == format!("node-{port}")
    };
    let shown = directory.display();
    if !map.nodes.iter().enumerate().all(is_local) {
        return Err(Failure::Other(format!(
            "{shown} has the map of the cluster {}, which is none of `cluster local`",
            map.name
        )));
    }
    if map.nodes.len() != count || port.is_some_and(|port| port != first) {
        return Err(Failure::Other(format!(
            "{shown} has a cluster of {} servers from port {first} on; --dir chooses another directory",
            map.nodes.len()
        )));
    }
    Ok(())
}

fn new_map(given: &Given, count: usize, first: u16) -> Result<Map> {
    if usize::from(first) + count > 65536 {
        return Err(given.wrong(&format!("there are no {count} ports from {first} on")));
    }
    let node = |(slots, port): (_, u16)| DraftNode {
        id: format!("node-{port}"),
        host: HOST.to_owned(),
        port,
        slots: vec![(slots, 0)],
        ..DraftNode::default()
    };
    let draft = Draft {
        name: format!("local-{first}"),
        epoch: 1,
        nodes: even_ranges(count)
            .into_iter()
            .zip(first..=u16::MAX)
            .map(node)
            .collect(),
    };
    Ok(draft.check().expect("each node has a port of its own"))
}

/// Refuses ports that others use.
fn check_ports<'a>(missing: impl Iterator<Item = &'a Member>) -> Result {
    let taken: Vec<String> = missing
        .filter(|member| port_owner::is_taken(member.port))
        .map(|member| port_owner::told(member.port))
        .collect();
    if taken.is_empty() {
        return Ok(());
    }
    Err(Failure::Other(format!(
        "Nothing was started: {}",
        taken.join(", ")
    )))
}

/// Refuses a map that is older than that of a node which runs: nodes that start would disagree with it.
fn check_epoch(fleet: &Fleet, access: &Access) -> Result {
    let epoch = fleet.own_map().epoch;
    for (member, report) in fleet
        .members
        .iter()
        .zip(probe::ask_all(&fleet.members, access))
    {
        if let Some(facts) = report.facts()
            && facts.epoch > epoch
        {
            return Err(Failure::Other(format!(
                "Nothing was started: {MAP} has the epoch {}, and {} runs with a map of the epoch {}",
                epoch, member.name, facts.epoch
            )));
        }
    }
    Ok(())
}

/// Writes the map, and makes the directories of the nodes.
fn make(fleet: &Fleet, directory: &Path, is_new: bool) -> Result {
    if is_new {
        let (map, draft) = (directory.join(MAP), directory.join(DRAFT));
        fs::write(&draft, fleet.own_map().to_text())
            .and_then(|()| fs::rename(&draft, &map))
            .map_err(|error| wrong(&map, &error))?;
    }
    for member in &fleet.members {
        let place = member.directory.as_ref().expect("it is a local one");
        fs::create_dir_all(place).map_err(|error| wrong(place, &error))?;
    }
    Ok(())
}

/// What stands behind `--`: the settings of all nodes.
struct Settings {
    /// A line each.
    lines: Vec<String>,
    has_threads: bool,
    password: Option<Vec<u8>>,
}

impl Settings {
    fn read(given: &Given) -> Result<Settings> {
        let mut settings = Settings {
            lines: Vec::new(),
            has_threads: false,
            password: None,
        };
        let mut words = given.rest.iter().map(OsString::as_os_str).peekable();
        while let Some(word) = words.next() {
            let text = text_of(given, word)?;
            let name = text.strip_prefix("--").filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| {
                given.wrong(&format!("the option '{text}' of the servers has no dashes"))
            })?;
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (name, None),
            };
            let mut values: Vec<String> = value.iter().map(|&value| value.to_owned()).collect();
            while let Some(value) =
                words.next_if(|word| !word.as_encoded_bytes().starts_with(b"--"))
            {
                values.push(text_of(given, value)?.to_owned());
            }
            settings.add(given, &name.to_ascii_lowercase(), &values)?;
        }
        Ok(settings)
    }

    fn add(&mut self, given: &Given, name: &str, values: &[String]) -> Result {
        if OWN_SETTINGS.contains(&name) {
            return Err(given.wrong(&format!(
                "--{name} of a server is set by this command itself"
            )));
        }
        self.has_threads |= ["threads", "io-threads"].contains(&name);
        if let ("requirepass", [password]) = (name, values) {
            self.password = Some(password.as_bytes().to_vec());
        }
        let mut line = name.to_owned();
        for value in values {
            let _ = write!(line, " {}", quoted(value.as_bytes()));
        }
        self.lines.push(line);
        Ok(())
    }

    /// The file of a node's settings. So many nodes share the processors.
    fn text(&self, nodes: usize) -> String {
        let mut text = String::from("# Written by `ferrite-cli cluster local`.\n");
        if !self.has_threads {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            let _ = writeln!(text, "threads {}", (processors / nodes).max(1));
        }
        for line in &self.lines {
            text += line;
            text.push('\n');
        }
        text
    }
}

fn text_of<'a>(given: &Given, word: &'a OsStr) -> Result<&'a str> {
    let text = word.to_str();
    text.ok_or_else(|| given.wrong("an option of the servers is no UTF-8"))
}

fn servers(count: usize) -> String {
    amounts::count(count as u64, "server")
}

/// What runs, as text.
fn tell(fleet: &Fleet, reports: &[Report], started: usize, directory: &Path) -> String {
    let (map, count) = (fleet.own_map(), fleet.members.len());
    let ran = match count - started {
        0 => format!("{} started", servers(count)),
        all if all == count && count == 1 => "1 server runs already".to_owned(),
        all if all == count => format!("{count} servers run already"),
        ran => format!("{} started, {ran} run already", servers(started)),
    };
    let mut text = format!(
        "Cluster {}, epoch {}, in {}: {ran}.\n",
        map.name,
        map.epoch,
        directory.display()
    );
    let rows: Vec<Vec<String>> = fleet
        .members
        .iter()
        .zip(&map.nodes)
        .zip(reports)
        .map(|((member, node), report)| {
            let pid = member
                .process()
                .map_or("-".to_owned(), |pid| pid.to_string());
            let memory = report.facts().map(|facts| facts.info.number("used_memory"));
            vec![
                member.name.clone(),
                member.place().to_string(),
                ranges_text(&node.slots),
                pid,
                memory.map_or("-".to_owned(), bytes_text),
            ]
        })
        .collect();
    text += &table(
        &["id", "address", "slots", "pid", "memory"],
        &rows,
        &["pid", "memory"],
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Words, read};

    fn given(line: &str) -> Given {
        let words = line.split_whitespace().map(OsString::from).collect();
        match read(words) {
            Ok(Words::Subcommand(given)) => given,
            _ => panic!("{line}"),
        }
    }

    #[test]
    fn options_of_the_servers_become_lines_of_a_file() {
        let given =
            given("local 2 -- --maxmemory 512mb --save  60 1 --Threads=3 --requirepass a\"b");
        let settings = Settings::read(&given).expect("they are right");
        assert_eq!(
            settings.text(2),
            "# Written by `ferrite-cli cluster local`.\nmaxmemory \"512mb\"\nsave \"60\" \"1\"\n\
             threads \"3\"\nrequirepass \"a\\\"b\"\n"
        );
        assert_eq!(settings.password.as_deref(), Some(&b"a\"b"[..]));
    }

    #[test]
    fn what_this_command_sets_is_refused() {
        for (rest, expected) in [
            (
                "--port 5",
                "--port of a server is set by this command itself",
            ),
            (
                "--save 1 --Dir=/x",
                "--dir of a server is set by this command itself",
            ),
            ("appendonly no", "'appendonly' of the servers has no dashes"),
        ] {
            let error = Settings::read(&given(&format!("local 2 -- {rest}"))).err();
            let error = error.expect(rest).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_new_map_has_a_port_for_each_node() {
        let one = given("local 3");
        let map = new_map(&one, 3, 65533).expect("there are three");
        assert_eq!(map.nodes[2].port, 65535);
        assert_eq!(map.assigned(), 16384);
        let error = new_map(&one, 3, 65534)
            .expect_err("there are two")
            .to_string();
        assert!(error.contains("no 3 ports from 65534 on"), "{error}");
        check_same(&map, 3, Some(65533), Path::new("d")).expect("it is the same");
        for (count, port) in [(2, None), (3, Some(7000))] {
            assert!(check_same(&map, count, port, Path::new("d")).is_err());
        }
    }
}
