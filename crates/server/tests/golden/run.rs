//! Running one script against one server over one protocol.
//!
//! Every script begins from empty databases and new connections, and ends with a check that no connection has
//! a reply left over. Nothing here knows what is expected, except that `eventually` asks whether it has come
//! true.

use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::expect::{Expected, Outcome};
use super::script::{Action, Block, Command, Script};
use super::words::{Word, substitute};
use crate::support::{Client, Link, PATIENCE, Proto, Server, Target};

/// How long the answer to raw bytes may pause when its length is not known from an expectation.
const QUIET: Duration = Duration::from_millis(150);
/// How often `eventually` asks, and after how many times it gives up: 10 s.
const ASK_EVERY: Duration = Duration::from_millis(20);
const ASK_TIMES: usize = 500;
/// The first window of a block, and the longest after which it is not run again.
const WINDOW: Duration = Duration::from_millis(100);
const WINDOW_MAX: Duration = Duration::from_secs(30);

/// One command's outcome, with the protocol its connection spoke by then.
pub(crate) struct Step {
    pub(crate) outcome: Outcome,
    pub(crate) proto: Proto,
}

/// What differs between what a script expects and what came.
pub(crate) struct Mismatch {
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) expected: String,
    pub(crate) got: Outcome,
}

/// What a run of a script brought.
#[derive(Default)]
pub(crate) struct Run {
    /// Commands that were sent.
    pub(crate) commands: usize,
    pub(crate) mismatches: Vec<Mismatch>,
    /// The outcomes of every block that ran, by the block's number: one for each command that replies.
    pub(crate) steps: BTreeMap<usize, Vec<Step>>,
}

/// Mismatches after which a script is given up: what follows would only repeat the first.
const MISMATCHES_MAX: usize = 12;

/// Runs `script`; `recording` goes on where an expectation is missing or not met.
pub(crate) fn run_script(
    script: &Script,
    server: &Server,
    target: Target,
    proto: Proto,
    recording: bool,
) -> Run {
    let mut run = Run::default();
    let mut session = Session {
        server,
        proto,
        recording,
        hung: false,
        window: WINDOW,
        window_began: Instant::now(),
        connections: BTreeMap::new(),
        closed: BTreeSet::new(),
        variables: BTreeMap::new(),
    };
    let flushed = server.client().call(&["FLUSHALL"]);
    if flushed.is_err() {
        run.mismatches.push(mismatch_at(
            0,
            "FLUSHALL before the script",
            flushed.err().map(failed),
        ));
        return run;
    }
    for (number, block) in script
        .blocks()
        .enumerate()
        .filter(|(_, block)| block.admits(target, proto))
    {
        session.run_block(block, number, target, &mut run);
        if !recording && (session.hung || run.mismatches.len() >= MISMATCHES_MAX) {
            return run;
        }
    }
    if run.mismatches.is_empty() {
        session.finish(&mut run);
    }
    run
}

fn mismatch_at(line: usize, command: &str, got: Option<Outcome>) -> Mismatch {
    let got = got.unwrap_or_else(|| Outcome::Failed("nothing".to_owned()));
    Mismatch {
        line,
        command: command.to_owned(),
        expected: "success".to_owned(),
        got,
    }
}

fn failed(link: Link) -> Outcome {
    match link {
        Link::Closed => Outcome::Closed,
        other => Outcome::Failed(other.to_string()),
    }
}

struct Session<'a> {
    server: &'a Server,
    proto: Proto,
    recording: bool,
    /// A reply did not come: the rest of the script would wait for each of its replies in vain.
    hung: bool,
    /// `${window}`, and when it began.
    window: Duration,
    window_began: Instant,
    connections: BTreeMap<String, Client>,
    /// The connections that the script has seen closed by the server.
    closed: BTreeSet<String>,
    variables: BTreeMap<String, String>,
}

/// More than half of a window had passed before it was over.
struct Late;

impl Session<'_> {
    /// Runs a block, again with a longer window while it was late.
    fn run_block(&mut self, block: &Block, number: usize, target: Target, run: &mut Run) {
        let mismatches = run.mismatches.len();
        self.window = WINDOW;
        while self.try_block(block, number, target, run).is_err() && self.window < WINDOW_MAX {
            self.window *= 2;
            self.hung = false;
            run.mismatches.truncate(mismatches);
            for command in &block.commands {
                self.connections.remove(&command.connection);
                self.closed.remove(&command.connection);
            }
        }
    }

    fn try_block(
        &mut self,
        block: &Block,
        number: usize,
        target: Target,
        run: &mut Run,
    ) -> Result<(), Late> {
        let mut steps = Vec::new();
        self.window_began = Instant::now();
        for command in &block.commands {
            if matches!(command.action, Action::WindowOver) {
                self.end_window()?;
                continue;
            }
            run.commands += 1;
            let wanted = command.reply(target, self.proto);
            let outcome = self.perform(command, wanted.map(|reply| &reply.expected));
            if !command.action.replies() {
                if let Err(why) = outcome {
                    run.mismatches.push(mismatch_at(
                        command.line,
                        &command.text,
                        Some(Outcome::Failed(why)),
                    ));
                }
                continue;
            }
            let proto = self.proto_of(&command.connection);
            let outcome = outcome
                .unwrap_or_else(|why| Some(Outcome::Failed(why)))
                .unwrap_or(Outcome::Closed);
            self.hung |= matches!(outcome, Outcome::Failed(_));
            if matches!(outcome, Outcome::Closed | Outcome::Raw { closed: true, .. }) {
                self.closed.insert(command.connection.clone());
            }
            if !wanted.is_some_and(|reply| reply.expected.accepts(&outcome, proto)) {
                run.mismatches.push(Mismatch {
                    line: command.line,
                    command: command.text.clone(),
                    expected: wanted.map_or(
                        "(no expectation: run with UPDATE_GOLDEN=1)".to_owned(),
                        |reply| reply.text.clone(),
                    ),
                    got: outcome.clone(),
                });
            }
            steps.push(Step { outcome, proto });
        }
        run.steps.insert(number, steps);
        Ok(())
    }

    /// Waits until what was given a window has expired.
    fn end_window(&mut self) -> Result<(), Late> {
        if self.window_began.elapsed() > self.window / 2 {
            return Err(Late);
        }
        // What expires was set after the window began.
        sleep(self.window + ASK_EVERY);
        self.window_began = Instant::now();
        Ok(())
    }

    /// Does what the command says; the outcome is there where the command has one.
    fn perform(
        &mut self,
        command: &Command,
        expected: Option<&Expected>,
    ) -> Result<Option<Outcome>, String> {
        let name = command.connection.as_str();
        match &command.action {
            Action::Sleep(time) => {
                sleep(*time);
                Ok(None)
            }
            Action::WindowOver => Ok(None),
            Action::Close => {
                self.connections.remove(name);
                self.closed.remove(name);
                Ok(None)
            }
            Action::Call(words) => {
                let args = self.arguments(words)?;
                Ok(Some(self.call(name, &args)))
            }
            Action::Send(words) => {
                let args = self.arguments(words)?;
                self.connection(name)?
                    .send(&args)
                    .map(|()| None)
                    .map_err(|error| error.to_string())
            }
            Action::Write(bytes) => {
                let bytes = self.argument(bytes)?;
                self.connection(name)?
                    .send_bytes(&bytes)
                    .map(|()| None)
                    .map_err(|error| error.to_string())
            }
            Action::Read => match self.connection(name)?.read(PATIENCE) {
                Ok(value) => Ok(Some(Outcome::Reply(value))),
                Err(link) => Ok(Some(failed(link))),
            },
            Action::Raw(bytes) => {
                let bytes = self.argument(bytes)?;
                let expected = expected.filter(|_| !self.recording);
                let client = self.connection(name)?;
                // A server that has closed the connection shows it in what is read.
                let _ = client.send_bytes(&bytes);
                Ok(Some(answer(client, expected)))
            }
            Action::Eventually(words) => self.eventually(name, words, expected).map(Some),
            Action::Let {
                name: variable,
                words,
                regex,
            } => {
                let args = self.arguments(words)?;
                let Outcome::Reply(value) = self.call(name, &args) else {
                    return Err("no reply to keep".to_owned());
                };
                let text = value.text();
                let kept = match regex {
                    None => Some(text.clone()),
                    Some(regex) => regex
                        .captures(&text)
                        .and_then(|groups| Some(groups.get(1)?.as_str().to_owned())),
                };
                self.variables.insert(
                    variable.clone(),
                    kept.ok_or_else(|| format!("the expression is not in {text}"))?,
                );
                Ok(None)
            }
        }
    }

    fn eventually(
        &mut self,
        name: &str,
        words: &[Word],
        expected: Option<&Expected>,
    ) -> Result<Outcome, String> {
        // Without an expectation nothing says when the reply is there.
        let times = if expected.is_some() {
            ASK_TIMES
        } else {
            ASK_TIMES / 10
        };
        for _ in 0..times {
            let args = self.arguments(words)?;
            let outcome = self.call(name, &args);
            let proto = self.proto_of(name);
            if expected.is_some_and(|expected| expected.accepts(&outcome, proto)) {
                return Ok(outcome);
            }
            sleep(ASK_EVERY);
        }
        let args = self.arguments(words)?;
        Ok(self.call(name, &args))
    }

    fn proto_of(&self, name: &str) -> Proto {
        self.connections.get(name).map_or(self.proto, Client::proto)
    }

    fn call(&mut self, name: &str, args: &[Vec<u8>]) -> Outcome {
        match self.connection(name).map(|client| client.call(args)) {
            Ok(Ok(value)) => Outcome::Reply(value),
            Ok(Err(link)) => failed(link),
            Err(why) => Outcome::Failed(why),
        }
    }

    /// The connection of this name, opened on first use in the protocol of the run.
    fn connection(&mut self, name: &str) -> Result<&mut Client, String> {
        if !self.connections.contains_key(name) {
            let mut client = Client::connect(self.server.addr())
                .map_err(|error| format!("cannot connect: {error}"))?;
            if self.proto == Proto::Resp3 {
                // A server that wants a password first refuses; the script says HELLO itself then.
                client
                    .call(&["HELLO", "3"])
                    .map_err(|link| format!("HELLO 3: {link}"))?;
            }
            self.connections.insert(name.to_owned(), client);
        }
        Ok(self.connections.get_mut(name).expect("inserted above"))
    }

    fn arguments(&self, words: &[Word]) -> Result<Vec<Vec<u8>>, String> {
        words.iter().map(|word| self.argument(word)).collect()
    }

    fn argument(&self, word: &Word) -> Result<Vec<u8>, String> {
        substitute(word, &|name| self.variable(name))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        match name {
            "now" => Some(now.as_secs().to_string()),
            "now_ms" => Some(now.as_millis().to_string()),
            "port" => Some(self.server.addr().port().to_string()),
            "dir" => Some(self.server.dir().display().to_string()),
            "window" => Some(self.window.as_millis().to_string()),
            "proto" => Some(self.proto.number().to_string()),
            _ => self.variables.get(name).cloned(),
        }
    }

    /// Every connection that is still open answers the next command with nothing in between.
    fn finish(&mut self, run: &mut Run) {
        for (name, client) in &mut self.connections {
            let token = format!("the end of {name}");
            match client.call(&["ECHO", &token]) {
                Ok(value) if value.bytes() == Some(token.as_bytes()) => {}
                Err(Link::Closed) if self.closed.contains(name) => {}
                Ok(value) if value.text().starts_with("NOAUTH") => {}
                other => run.mismatches.push(Mismatch {
                    line: 0,
                    command: format!("{name}: ECHO at the end of the script"),
                    expected: "no reply left over".to_owned(),
                    got: other.map_or_else(failed, Outcome::Reply),
                }),
            }
        }
    }
}

/// Reads the answer to raw bytes: as much as is expected where that is known, else until it is quiet.
fn answer(client: &mut Client, expected: Option<&Expected>) -> Outcome {
    let Some(Expected::Raw {
        bytes: wanted,
        closed: to_be_closed,
    }) = expected
    else {
        let (bytes, closed) = client.read_until_quiet(QUIET);
        return Outcome::Raw { bytes, closed };
    };
    let mut bytes = client.read_bytes(wanted.len(), PATIENCE);
    if bytes != *wanted {
        let (more, closed) = client.read_until_quiet(QUIET);
        bytes.extend(more);
        return Outcome::Raw { bytes, closed };
    }
    let closed = *to_be_closed && client.is_closed(PATIENCE);
    Outcome::Raw { bytes, closed }
}
