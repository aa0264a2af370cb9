//! `cluster deploy NODES`: the server on other machines, as nodes of one cluster.
//!
//! ```text
//! look      what is on each host                    a host that fails here: nothing is changed anywhere
//! plan      the map, and what each host lacks
//! prepare   new files beside those in use           a host that fails here: all new files are removed
//! switch    stop, take the new files, start, wait   a host that fails here goes back to what it had
//! ```
//!
//! | file | what |
//! |---|---|
//! | `wanted` | the flags |
//! | `found` | what is on a host |
//! | `plan` | map, configuration, service |
//! | `source` | the sources, for hosts that build |
//! | `progress` | a line a host |
//! | `*.sh` | what runs on the hosts |
//!
//! Hosts do each step at once, and begin the next one together: nothing is switched before all are ready.

mod found;
mod plan;
mod progress;
mod source;
mod wanted;

use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use map::{Map, ranges_text};

use super::given::Given;
use super::nodes::{self, Node};
use super::ssh::{Failed, RemoteInput, Ssh, for_all, open, quote};
use super::subcommand::{Rest, Subcommand};
use crate::failure::{Failure, Result};
use crate::flags::Options;
use found::{Found, Manager};
use progress::Progress;
use source::Archive;
use wanted::Wanted;

/// See the module.
pub(super) const SUBCOMMAND: Subcommand = Subcommand {
    name: "deploy",
    words: &["NODES"],
    summary: "Copies ferrite-server to the hosts of a file (lines `user@host[:sshport] [port]`) by ssh, \
              deals out the slots and starts the nodes. Once more, it brings them up to date and keeps their \
              data.",
    flags: wanted::FLAGS,
    rest: Rest::BehindDashes("SERVER OPTION"),
    run,
};

/// How long a look at a host may take.
const LOOK: Duration = Duration::from_secs(60);
/// How long a short script may take.
const SHORT: Duration = Duration::from_secs(120);
/// How long copying may take.
const COPY: Duration = Duration::from_secs(30 * 60);
/// How long building may take.
const BUILD: Duration = Duration::from_secs(60 * 60);
/// How long a node may take to end, and to load its data.
const START: Duration = Duration::from_secs(600);
/// How long this machine tries to reach a node.
const REACH: Duration = Duration::from_secs(3);

/// Kibibytes that the log of a new node takes at first.
const DATA_KIB: u64 = 32 << 10;
/// Kibibytes that sources and what is built of them take.
const BUILD_KIB: u64 = 2 << 20;

const COMMON: &str = include_str!("deploy/common.sh");

/// Where the server of a host comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    /// It has it.
    Same,
    Copied,
    Built,
}

/// What is to be done on a host.
struct Task {
    id: String,
    binary: Binary,
    /// New files.
    config: Option<String>,
    map: Option<String>,
    manager: Manager,
}

impl Task {
    /// The word for `switch.sh`.
    fn action(&self, found: &Found) -> &'static str {
        let is_same = self.binary == Binary::Same && self.config.is_none();
        match (found.is_running && is_same, self.map.is_some()) {
            (true, false) => "wait",
            (true, true) => "reload",
            (false, _) => "start",
        }
    }
}

/// What all steps need.
struct Deploy {
    wanted: Wanted,
    nodes: Vec<Node>,
    server: PathBuf,
    /// What `cksum` says of it.
    sum: String,
    progress: Progress,
}

fn run(given: &Given, _: &Options) -> Result {
    let wanted = Wanted::read(given)?;
    let nodes = nodes::read(&wanted.nodes, wanted.port).map_err(Failure::Other)?;
    let mut deploy = Deploy {
        progress: Progress::new(nodes.iter().map(Node::address).collect()),
        nodes,
        server: PathBuf::new(),
        sum: String::new(),
        wanted,
    };
    let done = deploy.run();
    deploy.progress.finish();
    done
}

impl Deploy {
    fn run(&mut self) -> Result {
        // With `--build` no program of this machine is needed.
        if !self.wanted.builds {
            self.server = self.wanted.server()?;
            self.sum = source::sum(&self.server)?;
        }
        let archive = match self.wanted.builds {
            true => Some(source::pack(self.wanted.source.as_deref())?),
            false => None,
        };
        let found = self.all("the other hosts are left as they are", |at| self.look(at))?;
        let archive = match archive {
            None if found.iter().any(is_foreign) => {
                Some(source::pack(self.wanted.source.as_deref())?)
            }
            archive => archive,
        };
        let plan = plan::make(&self.wanted, &self.nodes, &found)?;
        let tasks: Vec<Task> = (0..found.len())
            .map(|at| self.task(&plan.map, (at, &found[at]), archive.as_ref()))
            .collect();
        let prepared = self.all("nothing was changed, on no host", |at| {
            self.prepare(at, &found[at], &tasks[at], archive.as_ref())
        });
        if prepared.is_err() {
            for_all(found.len(), |at| self.discard(at, &found[at]));
            prepared?;
        }
        let switched = self.all("the other nodes serve", |at| {
            self.switch(at, &found[at], (&tasks[at], &plan.map))
        });
        self.progress.finish();
        switched?;
        for note in plan.notes {
            eprintln!("{note}");
        }
        Ok(())
    }

    /// Does a step on all hosts at once.
    ///
    /// # Errors
    /// At least one failed, which was told.
    fn all<T: Send>(
        &self,
        others: &str,
        step: impl Fn(usize) -> std::result::Result<T, Failed> + Sync,
    ) -> Result<Vec<T>> {
        let results = for_all(self.nodes.len(), |at| {
            let result = step(at);
            if result.is_err() {
                self.progress.say(at, "failed");
            }
            result
        });
        let errors = results.iter().enumerate();
        let errors = errors.filter_map(|(at, result)| Some((at, result.as_ref().err()?)));
        let count = self.progress.tell_failures(errors);
        if count == 0 {
            return Ok(results.into_iter().flatten().collect());
        }
        if count < self.nodes.len() {
            eprintln!("{count} of {} hosts failed; {others}", self.nodes.len());
        }
        Err(Failure::Told)
    }

    fn ssh(&self) -> &Ssh {
        &self.wanted.ssh
    }

    /// Looks at a host, and refuses what cannot work.
    fn look(&self, at: usize) -> std::result::Result<Found, Failed> {
        let node = &self.nodes[at];
        self.progress.say(at, "looking at the host");
        let place = quote(&self.wanted.place(node.port));
        let script = format!(
            "place={place}\nhex={:04x}\n{COMMON}{}",
            node.port,
            include_str!("deploy/probe.sh")
        );
        let answer = self
            .ssh()
            .script(node, "cannot look at it", &script, LOOK)?;
        let found = Found::read(&answer)?;
        if let Some(why) = &found.unwritable {
            return Err(Failed::because(
                format!("cannot use the directory {}", found.dir),
                why,
            ));
        }
        if found.dir.contains(char::is_control) {
            return Err(Failed::because("its directory has control characters", ""));
        }
        let builds = self.wanted.builds || is_foreign(&found);
        if builds && !found.has_cargo {
            let why = match self.wanted.builds {
                true => "--build needs it: https://rustup.rs".to_owned(),
                false => format!(
                    "it is {} {}, and ferrite-server here is for {} {}; the sources would be built there \
                     (https://rustup.rs)",
                    found.system,
                    found.machine,
                    std::env::consts::OS,
                    std::env::consts::ARCH
                ),
            };
            return Err(Failed::because("there is no cargo", why));
        }
        self.check_space(&found, builds)?;
        if plan::port_is_taken(node, &found) {
            return Err(Failed::because(
                format!("port {} is in use there", node.port),
                format!("another process listens at {}", found.listens[0]),
            ));
        }
        Ok(found)
    }

    fn check_space(&self, found: &Found, builds: bool) -> std::result::Result<(), Failed> {
        let data = if found.map.is_none() { DATA_KIB } else { 0 };
        let binary = match self.server.metadata() {
            _ if builds && found.source.is_none() => BUILD_KIB,
            Ok(facts) if !builds && found.binary.as_ref() != Some(&self.sum) => {
                facts.len() / 1024 + 1
            }
            _ => 0,
        };
        let needed = data + binary;
        if found.free_kib().is_some_and(|free| free < needed) {
            return Err(Failed::because(
                format!(
                    "no space: {} MiB are needed in {}",
                    needed.div_ceil(1024),
                    found.dir
                ),
                format!("df says {}", found.space),
            ));
        }
        Ok(())
    }

    /// What a host lacks.
    fn task(&self, map: &Map, (at, found): (usize, &Found), archive: Option<&Archive>) -> Task {
        let node = &self.nodes[at];
        let its = map.nodes.iter();
        let mut its =
            its.filter(|its| its.port == node.port && its.host.eq_ignore_ascii_case(&node.host));
        let id = its
            .next()
            .map(|its| its.name.clone())
            .expect("the map was made of these nodes");
        let config = plan::config(&self.wanted, (node, found), &id);
        let binary = match archive {
            Some(archive) if self.wanted.builds || is_foreign(found) => {
                match found.source.as_ref() == Some(&archive.sum) && found.binary.is_some() {
                    true => Binary::Same,
                    false => Binary::Built,
                }
            }
            _ if found.binary.as_ref() == Some(&self.sum) => Binary::Same,
            _ => Binary::Copied,
        };
        let manager = match self.wanted.is_detached {
            true => Manager::None,
            false => found.manager,
        };
        Task {
            id,
            binary,
            config: (found.config.as_ref() != Some(&config)).then_some(config),
            map: (found.map.as_ref() != Some(map)).then(|| map.to_text()),
            manager,
        }
    }

    /// Puts what is new beside what is in use.
    fn prepare(
        &self,
        at: usize,
        found: &Found,
        task: &Task,
        archive: Option<&Archive>,
    ) -> std::result::Result<(), Failed> {
        let (ssh, node) = (self.ssh(), &self.nodes[at]);
        if task.action(found) == "wait" {
            return Ok(());
        }
        let dir = format!("dir={}\n", quote(&found.dir));
        let begin = format!("{dir}umask 077\nmkdir -p \"$dir/data\"\nrm -rf \"$dir\"/*.new\n");
        ssh.script(node, "cannot make its directory", &begin, SHORT)?;
        let built_from = match (task.binary, archive) {
            (Binary::Same, _) => None,
            (Binary::Built, Some(archive)) => {
                self.build(at, found, archive)?;
                Some(archive.sum.as_str())
            }
            _ => {
                self.progress.say(at, "copying the server");
                let path = format!("{}/ferrite-server.new", found.dir);
                let file = RemoteInput::File(open(&self.server)?);
                ssh.write(node, "cannot copy the server", (file, &path), COPY)?;
                Some("")
            }
        };
        let config = quote(task.config.as_deref().unwrap_or_default());
        let map = quote(task.map.as_deref().unwrap_or_default());
        let built_from = built_from.map_or(String::new(), |sum| {
            format!(
                "printf %s {} >\"$dir/built-from.new\" || exit\n",
                quote(sum)
            )
        });
        let script = format!(
            "{dir}config={config}\nmap={map}\n{}{built_from}",
            include_str!("deploy/prepare.sh")
        );
        ssh.script(node, "cannot run the server there", &script, SHORT)
            .map_err(|mut failed| {
                if failed.words.contains("GLIBC") || failed.words.contains("Exec format") {
                    failed.hint = Some("--build builds it there");
                }
                failed
            })?;
        self.progress.say(at, "ready to start");
        Ok(())
    }

    fn build(
        &self,
        at: usize,
        found: &Found,
        archive: &Archive,
    ) -> std::result::Result<(), Failed> {
        let (ssh, node) = (self.ssh(), &self.nodes[at]);
        self.progress.say(at, "copying the sources");
        let tar = format!("{}/source.tar.new", found.dir);
        let file = RemoteInput::Bytes(&archive.bytes);
        ssh.write(node, "cannot copy the sources", (file, &tar), COPY)?;
        let dir = format!("dir={}\n", quote(&found.dir));
        let unpack = format!(
            "{dir}cd \"$dir\" && mkdir source.new && tar -xf source.tar.new -C source.new \
             && rm source.tar.new\n"
        );
        ssh.script(node, "cannot unpack the sources", &unpack, COPY)?;
        self.progress.say(at, "building");
        let script = format!("{dir}{}", include_str!("deploy/build.sh"));
        ssh.script(node, "cannot build the server", &script, BUILD)
            .map(|_| ())
    }

    /// Removes what was put beside what is in use.
    fn discard(&self, at: usize, found: &Found) {
        let dir = quote(&found.dir);
        let script = format!("dir={dir}\n{}", include_str!("deploy/discard.sh"));
        // A host that does not do it is told of by what failed before, and the next deploy removes them too.
        let _ = self
            .ssh()
            .script(&self.nodes[at], "cannot clean up", &script, SHORT);
    }

    /// Takes what is new, and waits until the node serves.
    fn switch(
        &self,
        at: usize,
        found: &Found,
        (task, map): (&Task, &Map),
    ) -> std::result::Result<(), Failed> {
        let node = &self.nodes[at];
        let action = task.action(found);
        let (doing, done) = match action {
            "wait" => ("waiting", "is as it should be, was left alone"),
            "reload" => ("giving it the map", "has the new map"),
            _ if found.is_running => ("starting it again", "was brought up to date"),
            _ => ("starting", "was started"),
        };
        if !(action == "wait" && found.serves) {
            self.progress.say(at, doing);
            let is_system = task.manager == Manager::System;
            let unit_text = plan::unit_text(&map.name, &task.id, &found.dir, is_system);
            let script = format!(
                "dir={}\naction={action}\nmanager={}\nunit={}\nunit_text={}\nepoch={}\n\
                 patience={}\n{COMMON}{}",
                quote(&found.dir),
                quote(task.manager.word()),
                quote(&plan::unit(&task.id)),
                quote(&unit_text),
                map.epoch,
                START.as_secs() * 10,
                include_str!("deploy/switch.sh")
            );
            // Stopping, starting and going back each have their time.
            self.ssh()
                .script(node, "the node does not serve", &script, 5 * START)?;
        }
        let its = map.nodes.iter().find(|its| its.name == task.id);
        let slots = its.map(|its| ranges_text(&its.slots)).unwrap_or_default();
        let slots = match slots.as_str() {
            "" => "no slots".to_owned(),
            slots => format!("slots {slots}"),
        };
        let reached = match reaches(node) {
            true => "",
            false => "; this machine does not reach it: is there a firewall?",
        };
        self.progress
            .say(at, &format!("{done}: serves {slots}{reached}"));
        Ok(())
    }
}

/// Whether a host cannot run a program of this machine.
fn is_foreign(found: &Found) -> bool {
    found.machine != std::env::consts::ARCH || found.system != std::env::consts::OS
}

/// Whether a node can be connected to from here.
fn reaches(node: &Node) -> bool {
    let addresses = (node.host.as_str(), node.port).to_socket_addrs();
    addresses
        .is_ok_and(|mut all| all.any(|address| TcpStream::connect_timeout(&address, REACH).is_ok()))
}
