//! One start of the program in its usual mode: the tests of the command line on its server, or on several
//! in turn, and the reports of them.

use crate::drive::audience::{Audience, Heard};
use crate::drive::find::{Step, Wanted, best, find_rate};
use crate::drive::idle;
use crate::drive::outcome::Outcome;
use crate::drive::plan::Plan;
use crate::drive::run::run;
use crate::load::catalogue::{TESTS, Test};
use crate::load::workload::Workload;
use crate::machine;
use crate::options::{self, Options};
use crate::report::document::{Document, Messages, Run};
use crate::report::hdr::{self, HdrLog};
use crate::report::output::Output;
use crate::report::targets::{Figures, Sides};
use crate::report::text::{Format, Host};
use crate::report::{csv, html, text};
use crate::wire::ask::Asker;
use crate::wire::cluster;
use crate::wire::map::Map;
use crate::wire::target::Target;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use sys::socket::Endpoint;

/// The state of a start.
struct Session<'a> {
    options: &'a Options,
    servers: Vec<(Target, Host)>,
    /// By server: the titles of the tests that it cannot run.
    skipped: Vec<Vec<String>>,
    /// There are several tests.
    has_several: bool,
    output: Output,
    format: Format,
    document: Document,
    hdr: HdrLog,
    /// By test, where there are several servers.
    sides: Sides,
    all_well: bool,
}

/// Runs what the command line says; false if requests failed.
///
/// # Errors
/// The options make no sense, a server cannot be reached, or a file cannot be written.
pub(crate) fn start(options: &Options) -> Result<bool, String> {
    // Each connection is a descriptor; if there are too few, the first that fails says so.
    let _ = sys::process::raise_open_files(options.clients as u64 + 64);
    let meaning = options::understand(options)?;
    if options.is_idle {
        return idle::wait(&meaning.targets, options.clients).map(|()| true);
    }
    let acquainted = |mut target: Target| {
        if options.is_cluster {
            target.nodes = Some(Arc::new(nodes(&target, options)?));
        }
        let host = get_acquainted(&mut target, options.timeout);
        Ok((target, host))
    };
    let servers = meaning.targets.into_iter().map(acquainted);
    let servers: Vec<_> = servers.collect::<Result<_, String>>()?;
    let skipped = servers
        .iter()
        .map(|(target, host)| skipped(options, target, host))
        .collect();
    let mut session = Session {
        options,
        servers,
        skipped,
        has_several: meaning.jobs.len() > 1,
        output: Output::open(options.out_file.as_deref())?,
        format: Format {
            precision: options.precision,
            hides_histogram: options.hides_histogram,
            percentiles: options.percentiles.clone(),
        },
        document: Document::new(machine::command_line()),
        hdr: HdrLog::default(),
        sides: Sides::default(),
        all_well: true,
    };
    if options.is_csv {
        session.output.line(csv::HEADER)?;
    } else if let Some(map) = &session.servers[0].0.nodes {
        session.output.text(&text::masters(map))?;
    }
    loop {
        for _ in 0..options.rounds.unwrap_or(1) {
            for (plan, workload) in &meaning.jobs {
                session.play(plan, workload)?;
            }
        }
        if session.servers.len() > 1 {
            let text = session.sides.text();
            session.output.text(&text)?;
        }
        if !options.repeats {
            return Ok(session.all_well);
        }
    }
}

impl Session<'_> {
    /// A test on all servers.
    fn play(&mut self, plan: &Plan, workload: &Workload) -> Result<(), String> {
        for index in 0..self.servers.len() {
            if self.skipped[index].contains(&workload.title) {
                continue;
            }
            if self.options.find_rate {
                self.search(plan, workload, index)?;
                continue;
            }
            let mut runs = Vec::new();
            for number in 1..=self.options.run_count {
                let outcome = self.once(plan, workload, index, number)?;
                runs.push(outcome);
            }
            if runs.len() > 1 {
                self.print_extremes(plan, workload, &runs, index)?;
            }
        }
        Ok(())
    }

    /// One run of a test on a server.
    fn once(
        &mut self,
        plan: &Plan,
        workload: &Workload,
        index: usize,
        number: usize,
    ) -> Result<Outcome, String> {
        let target = &self.servers[index].0;
        let listening = plan.listening.as_ref();
        let audience = listening.map(|listening| Audience::gather(target, listening));
        let audience = audience.transpose()?;
        let outcome = run(plan, workload, target)?;
        if self.options.run_count == 1 {
            let title = self.title(workload, index);
            self.print(&title, plan, workload, &outcome, index)?;
        }
        let mut heard = None;
        if let (Some(audience), Some(listening)) = (audience, listening) {
            let published = outcome.total().requests() - outcome.total().errors;
            let expected = published * listening.subscribers as u64;
            heard = Some(audience.disperse(expected)?);
        }
        if let Some(heard) = &heard {
            self.print_heard(plan, heard)?;
            // What was published to warm up is not among what is expected.
            self.all_well &= heard.messages >= heard.expected;
        }
        if let Some(prefix) = &self.options.hdr_prefix {
            let prefix = self.hdr_prefix(prefix, workload, index);
            hdr::write_run(&prefix, number, &workload.rows, &outcome)?;
        }
        self.keep(plan, workload, &outcome, heard, index)?;
        Ok(outcome)
    }

    /// The prefix of a run's files, with what tells it from the runs of other tests and servers.
    fn hdr_prefix(&self, prefix: &str, workload: &Workload, index: usize) -> String {
        let mut parts = vec![prefix.to_owned()];
        if self.servers.len() > 1 {
            parts.push(hdr::tag(&self.servers[index].0.name));
        }
        if self.has_several {
            parts.push(hdr::tag(&workload.title));
        }
        parts.join("_")
    }

    /// The best of several runs, the worst, and the average, as memtier_benchmark reports them.
    fn print_extremes(
        &mut self,
        plan: &Plan,
        workload: &Workload,
        runs: &[Outcome],
        index: usize,
    ) -> Result<(), String> {
        let (best, worst) = text::extremes(runs);
        let title = self.title(workload, index);
        for (name, at) in [("BEST", best), ("WORST", worst)] {
            let title = format!("{title}: {name} RUN RESULTS (run {})", at + 1);
            self.print(&title, plan, workload, &runs[at], index)?;
        }
        let title = format!("{title}: AGGREGATED AVERAGE RESULTS ({} runs)", runs.len());
        let precision = self.format.precision;
        let text = if self.options.is_csv {
            csv::average(&title, runs, precision) + "\n"
        } else if self.options.is_quiet {
            text::quiet_average(&title, runs, precision)
        } else {
            text::average(&title, workload, runs, &self.format)
        };
        self.output.text(&text)
    }

    fn search(&mut self, plan: &Plan, workload: &Workload, index: usize) -> Result<(), String> {
        let wanted = Wanted {
            p99: self.options.p99,
            step_time: self.options.step_time,
            arrivals: self.options.arrivals,
        };
        let target = self.servers[index].0.clone();
        let output = &mut self.output;
        output.line(&format!(
            "====== {} on {} ======",
            workload.title, target.name
        ))?;
        let mut shown = Ok(());
        let show = |step: &Step| {
            let text = text::step(step.planned, step.holds, &step.outcome);
            shown = std::mem::replace(&mut shown, Ok(())).and(output.text(&text));
        };
        let steps = find_rate(plan, &wanted, workload, &target, show)?;
        shown?;
        output.line(&text::found(
            best(&steps).map(|step| step.planned),
            wanted.p99,
        ))?;
        for step in &steps {
            let server = self.servers[index].1.version.clone();
            let run = Run::of(
                &step.plan,
                workload,
                &target,
                server.as_deref(),
                &step.outcome,
            );
            self.document.runs.push(run);
        }
        self.write_files()
    }

    fn title(&self, workload: &Workload, index: usize) -> String {
        // With one server it goes without saying which.
        match self.servers.len() {
            1 => workload.title.clone(),
            _ => format!("{} on {}", workload.title, self.servers[index].0.name),
        }
    }

    fn print(
        &mut self,
        title: &str,
        plan: &Plan,
        workload: &Workload,
        outcome: &Outcome,
        index: usize,
    ) -> Result<(), String> {
        let host = &self.servers[index].1;
        let precision = self.format.precision;
        let text = if self.options.is_csv {
            csv::line(title, outcome, precision) + "\n"
        } else if self.options.is_quiet {
            text::quiet(title, outcome, precision)
        } else {
            text::full(title, plan, workload, outcome, host, &self.format)
        };
        self.output.text(&text)
    }

    fn print_heard(&mut self, plan: &Plan, heard: &Heard) -> Result<(), String> {
        match &plan.listening {
            Some(listening) if !self.options.is_csv => {
                self.output.text(&text::heard(listening, heard))
            }
            _ => Ok(()),
        }
    }

    /// Adds a run to everything that is made of runs.
    fn keep(
        &mut self,
        plan: &Plan,
        workload: &Workload,
        outcome: &Outcome,
        heard: Option<Heard>,
        index: usize,
    ) -> Result<(), String> {
        let (target, host) = &self.servers[index];
        let version = host.version.as_deref();
        let mut run = Run::of(plan, workload, target, version, outcome);
        run.messages = heard.map(|heard| Messages::of(plan, &heard));
        self.document.runs.push(run);
        self.hdr.add(&workload.title, outcome);
        self.sides
            .add(&workload.title, &target.name, Figures::of(outcome));
        self.all_well &= !text::has_problems(outcome);
        // After each, so that a start that is stopped has left something.
        self.write_files()
    }

    fn write_files(&self) -> Result<(), String> {
        if let Some(path) = &self.options.json {
            self.document.write(path)?;
        }
        if let Some(path) = &self.options.hdr {
            self.hdr.write(path)?;
        }
        if let Some(path) = &self.options.html {
            std::fs::write(path, html::page(&self.document))
                .map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
        }
        Ok(())
    }
}

/// The nodes of the cluster that a server belongs to.
fn nodes(target: &Target, options: &Options) -> Result<Map, String> {
    let map = cluster::read(target, options.timeout)?;
    let count = map.serving();
    if options.clients < count {
        return Err(format!(
            "the cluster has {count} nodes with slots, more than --clients ({})",
            options.clients
        ));
    }
    Ok(map)
}

/// Asks the server what reports show of it, and for its process if it is on this machine. None of it
/// is needed, so a server that does not tell is loaded all the same.
fn get_acquainted(target: &mut Target, patience: Duration) -> Host {
    let Ok(mut asker) = Asker::open(target, patience) else {
        return Host::default();
    };
    // A server that does not answer the first question is not asked the others.
    let Ok(info) = asker.info() else {
        return Host::default();
    };
    // The process of one node says nothing of all.
    if target.pid.is_none() && target.nodes.is_none() && is_local(target) {
        let pid = info.field("process_id").and_then(|pid| pid.parse().ok());
        target.pid = pid.filter(|&pid| sys::process::cpu_time_of(pid).is_some());
    }
    Host {
        version: info.version(),
        save: asker.setting("save"),
        appendonly: asker.setting("appendonly"),
        lacks: asker.lacking(&default_commands()),
    }
}

/// The commands of the tests that run when none are named.
fn default_commands() -> Vec<&'static str> {
    let tests = TESTS.iter().filter(|test| test.is_default);
    let mut names: Vec<_> = tests.flat_map(Test::command_names).collect();
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(*name));
    names
}

/// The titles of the tests that nobody asked for by name and that a server has no commands for. Says so.
fn skipped(options: &Options, target: &Target, host: &Host) -> Vec<String> {
    if options::has_choice(options) || !options.words.is_empty() || host.lacks.is_empty() {
        return Vec::new();
    }
    let lacks = |test: &&Test| {
        let mut names = test.command_names();
        test.is_default && names.any(|name| host.lacks.contains(&name))
    };
    let tests = TESTS.iter().filter(lacks);
    let titles: Vec<_> = tests.map(|test| test.title(options.multi_keys)).collect();
    eprintln!(
        "Skipping {} tests: {} has no {}",
        titles.len(),
        target.name,
        host.lacks.join(", ")
    );
    titles
}

fn is_local(target: &Target) -> bool {
    match &target.endpoint {
        Endpoint::Unix(_) => true,
        Endpoint::Tcp(address) => address.ip().is_loopback(),
    }
}
