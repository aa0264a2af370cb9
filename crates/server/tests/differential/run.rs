//! Driving requests through both servers: batches, comparison, and what happens when replies differ.
//!
//! What is sent is decided in `stream` and `scenarios`.

use std::collections::{HashSet, VecDeque};
use std::fmt::Write as _;

use fastrand::Rng;

use super::compare::{DIFFERENCES, Rule, alike, leaves, rule};
use super::heard::Ears;
use super::pair::Pair;
use super::report::{Mismatch, Report, Sent, first_difference, is_related, printed};
use super::request::Request;
use super::stream::{Generator, Step};
use super::support::{Proto, Server, Value, encode_request};

/// Connections in use, each with its own database and name; batches take turns.
pub(super) const CONNECTIONS: usize = 3;
pub(super) const BATCH_REQUESTS_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 4 << 20;
/// Mismatches reported before the run gives up, and how many of one command.
const MISMATCHES_MAX: usize = 12;
const MISMATCHES_OF_ONE_COMMAND_MAX: usize = 2;
/// How many requests back a report looks, and how many it prints.
const HISTORY_MAX: usize = 5_000;
const HISTORY_SHOWN_MAX: usize = 30;
/// Replies that may differ, reported or not, before the run gives up; waiting in vain for one weighs more.
const DIVERGENCES_MAX: usize = 200;
const SILENCE_WEIGHT: usize = 50;

/// What a run is to do.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// What a report names.
    pub(crate) seed: u64,
    /// Tells apart the streams of one seed.
    pub(crate) stream: u64,
    pub(crate) commands: usize,
    pub(crate) proto: Proto,
    /// Changes replies of the subject on their way, knowing the number of the request and how its reply is
    /// compared.
    pub(crate) tamper: Option<fn(usize, Rule, Value) -> Value>,
    /// Whether what is published about keys is compared too.
    pub(crate) listens: bool,
    /// Requests of a hundred that are scripts, if not as many as usual.
    pub(crate) scripts: Option<u32>,
    /// Requests that only the subject gets, between the stream and the closing look.
    pub(crate) sabotage: &'static [&'static str],
}

impl Plan {
    fn stream_seed(&self) -> u64 {
        self.seed.wrapping_add(self.stream << 32)
    }
}

/// The subject no longer answers, or no longer answers alike: the rest of the batch means nothing.
pub(super) struct Diverged;

/// A run in progress.
pub(crate) struct Run<'a> {
    pub(super) plan: Plan,
    reference: &'a Server,
    subject: &'a Server,
    pub(super) generator: Generator,
    /// Decides where batches end and where their bytes are cut; apart from the generator, so that the stream
    /// does not depend on it.
    pub(super) shape: Rng,
    pub(super) pairs: Vec<Pair>,
    pub(super) ears: Option<Ears>,
    /// The last requests, oldest first.
    history: VecDeque<Sent>,
    pub(super) report: Report,
    divergences: usize,
}

impl<'a> Run<'a> {
    pub(crate) fn new(plan: Plan, reference: &'a Server, subject: &'a Server) -> Self {
        let mut run = Self {
            plan,
            reference,
            subject,
            generator: Generator::new(plan.stream_seed(), plan.proto),
            shape: Rng::with_seed(!plan.stream_seed()),
            pairs: Vec::new(),
            ears: None,
            history: VecDeque::new(),
            report: Report {
                differences: vec![0; DIFFERENCES.len()],
                ..Report::default()
            },
            divergences: 0,
        };
        if let Some(percent) = plan.scripts {
            run.generator.script_percent = percent;
        }
        assert!(
            run.reset(),
            "no start with the subject: {}",
            subject.output()
        );
        run
    }

    /// Whether there is a point in sending more, after a mismatch from an empty keyspace again.
    pub(super) fn goes_on(&mut self, result: Result<(), Diverged>) -> bool {
        match result {
            Ok(()) => true,
            Err(Diverged) => {
                self.divergences += 1;
                self.report.mismatches.len() < MISMATCHES_MAX
                    && self.divergences < DIVERGENCES_MAX
                    && self.reset()
            }
        }
    }

    /// New connections to two empty keyspaces; false where the subject is no longer there.
    fn reset(&mut self) -> bool {
        self.history.clear();
        let open = || Pair::open(self.reference, self.subject, self.plan.proto);
        self.pairs = std::iter::repeat_with(open)
            .take(CONNECTIONS)
            .flatten()
            .collect();
        if self.plan.listens {
            self.ears = Ears::open(self.reference, self.subject);
        }
        self.pairs.len() == CONNECTIONS
            && self.ears.is_some() == self.plan.listens
            && self.pairs[0].ask(&["FLUSHALL"]).is_some()
    }

    /// Sends up to `limit` requests of the stream at once over one connection.
    pub(super) fn batch(&mut self, connection: usize, limit: usize) -> Result<(), Diverged> {
        let wanted = self.shape.usize(1..=limit);
        let (mut requests, mut bytes, mut walk) = (Vec::new(), 0, None);
        while requests.len() < wanted && bytes < BATCH_BYTES_MAX && walk.is_none() {
            for step in self.generator.next() {
                match step {
                    Step::Send(request) => {
                        bytes += request.len();
                        requests.push(request);
                    }
                    Step::Walk(head, options) => walk = Some((head, options)),
                }
            }
        }
        self.exchange(connection, requests)?;
        match walk {
            Some((head, options)) => self.walk(connection, &head, &options),
            None => Ok(()),
        }
    }

    /// Sends requests in one go and compares the replies; returns those of the reference.
    pub(super) fn exchange(
        &mut self,
        connection: usize,
        requests: Vec<Request>,
    ) -> Result<Vec<Value>, Diverged> {
        let mut bytes = Vec::new();
        requests
            .iter()
            .for_each(|request| bytes.extend(encode_request(&request.words)));
        let cuts = self.cuts(bytes.len());
        self.pairs[connection].send(&bytes, &cuts);
        let mut replies: Vec<Value> = Vec::with_capacity(requests.len());
        let mut claimed_keys = None;
        let batch = if self.ears.is_some() {
            requests.clone()
        } else {
            Vec::new()
        };
        for request in requests {
            let sent = self.remember(connection, request);
            let reference = self.pairs[connection].read_reference();
            let subject = match self.pairs[connection].read_subject() {
                Ok(reply) => self.tampered(&sent, reply),
                Err(link) => {
                    self.divergences += SILENCE_WEIGHT;
                    return self.mismatch(&sent, &reference, &link.to_string());
                }
            };
            self.judge(&sent, &reference, &subject)?;
            if let Some(keys) = claimed_keys.take() {
                self.check_claim(&sent, keys, &reference)?;
            }
            if rule(&sent) == Rule::Chosen && !matches!(reference, Value::Error(_)) {
                claimed_keys = Some((reference.clone(), subject));
            }
            replies.push(reference);
        }
        self.listen(&batch)?;
        Ok(replies)
    }

    /// Up to three places at which a batch is cut, so that requests arrive in parts.
    fn cuts(&mut self, length: usize) -> Vec<usize> {
        let count = self.shape.usize(0..4);
        let mut cuts: Vec<_> = (0..count).map(|_| self.shape.usize(0..=length)).collect();
        cuts.sort_unstable();
        cuts
    }

    fn tampered(&self, sent: &Request, reply: Value) -> Value {
        match self.plan.tamper {
            Some(tamper) => tamper(self.report.commands, rule(sent), reply),
            None => reply,
        }
    }

    /// Counts a request and keeps it for reports.
    fn remember(&mut self, connection: usize, request: Request) -> Request {
        self.report.commands += 1;
        if self.history.len() == HISTORY_MAX {
            self.history.pop_front();
        }
        self.history.push_back(Sent {
            index: self.report.commands,
            connection,
            request: request.clone(),
        });
        request
    }

    /// Compares two replies.
    fn judge(
        &mut self,
        sent: &Request,
        reference: &Value,
        subject: &Value,
    ) -> Result<(), Diverged> {
        let tally = self.report.tallies.entry(sent.name()).or_default();
        match reference {
            Value::Error(_) => tally.refused += 1,
            _ => tally.answered += 1,
        }
        if alike(rule(sent), reference, subject) {
            return Ok(());
        }
        let difference = DIFFERENCES
            .iter()
            .position(|difference| (difference.covers)(sent, reference, subject));
        match difference {
            Some(index) => {
                self.report.differences[index] += 1;
                Ok(())
            }
            None => {
                let text = printed(subject) + &first_difference(reference, subject);
                self.mismatch(sent, reference, &text)
            }
        }
    }

    /// What both servers chose freely, keys or fields with values, must be among all of them.
    fn check_claim(
        &mut self,
        sent: &Request,
        claim: (Value, Value),
        all: &Value,
    ) -> Result<(), Diverged> {
        if matches!(all, Value::Error(_)) {
            return Ok(());
        }
        let all: HashSet<&[u8]> = leaves(all).into_iter().collect();
        let is_honest = |chosen: &Value| match chosen {
            Value::Bulk(_) | Value::Array(_) => {
                leaves(chosen).iter().all(|leaf| all.contains(leaf))
            }
            _ => all.is_empty(),
        };
        if is_honest(&claim.0) && is_honest(&claim.1) {
            return Ok(());
        }
        self.mismatch(
            sent,
            &claim.0,
            &format!("{} of free choice", printed(&claim.1)),
        )
    }

    /// Records a mismatch; the run goes on with two empty keyspaces.
    pub(super) fn mismatch<T>(
        &mut self,
        sent: &Request,
        reference: &Value,
        subject: &str,
    ) -> Result<T, Diverged> {
        let (index, name) = (self.report.commands, sent.name());
        let same = self
            .report
            .mismatches
            .iter()
            .filter(|other| other.name == name);
        if same.count() < MISMATCHES_OF_ONE_COMMAND_MAX {
            let text = self.describe(sent, reference, subject);
            self.report.mismatches.push(Mismatch { index, name, text });
        }
        Err(Diverged)
    }

    fn describe(&self, sent: &Request, reference: &Value, subject: &str) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "FERRITE_SEED={}, request {}: {sent}",
            self.plan.seed, self.report.commands
        );
        let _ = writeln!(text, "  redis-server: {}", printed(reference));
        let _ = writeln!(text, "  subject:      {subject}");
        let _ = writeln!(
            text,
            "  before it, on the same keys or on all of them (connection in brackets):"
        );
        let related = self
            .history
            .iter()
            .rev()
            .skip(1)
            .filter(|past| is_related(&past.request, sent));
        let related: Vec<_> = related.take(HISTORY_SHOWN_MAX).collect();
        for past in related.iter().rev() {
            let _ = writeln!(
                text,
                "    {} [{}] {}",
                past.index, past.connection, past.request
            );
        }
        text
    }
}
