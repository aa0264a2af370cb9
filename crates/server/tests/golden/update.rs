//! Recording: redis-server's replies become the expectations of a script (`UPDATE_GOLDEN=1`).
//!
//! Only replies that redis-server does not meet are written anew. What was written by hand, such as patterns,
//! stays as long as it is met. Ferrite's own replies are never touched. Replies of a block get one column.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use super::expect::Outcome;
use super::notation::{Reader, write_outcome};
use super::run::{Step, run_script};
use super::script::{Action, Command, Script};
use super::{Proto, Server, Target, own_server};

/// Rewrites the files whose expectations the first server that they run beside does not meet.
pub(super) fn update(paths: &[PathBuf]) {
    let mut shared = BTreeMap::new();
    for path in paths {
        let mut script = Script::load(path, true).unwrap_or_else(|why| panic!("{why}"));
        let peer = script.peers[0];
        let shared = shared
            .entry(peer.to_string())
            .or_insert_with(|| Server::start(peer, &[]));
        let record = |proto: Proto| {
            if !script.admits(peer, proto) {
                return BTreeMap::new();
            }
            let own = script
                .needs_own_server()
                .then(|| own_server(peer, &script).unwrap_or_else(|why| panic!("{why}")));
            run_script(&script, own.as_ref().unwrap_or(shared), peer, proto, true).steps
        };
        let (resp2, resp3) = (record(Proto::Resp2), record(Proto::Resp3));
        for (number, block) in script.blocks_mut().enumerate() {
            if let (Some(resp2), Some(resp3)) = (resp2.get(&number), resp3.get(&number)) {
                let replying = block
                    .commands
                    .iter_mut()
                    .filter(|command| command.action.replies());
                for (command, (resp2, resp3)) in replying.zip(resp2.iter().zip(resp3)) {
                    rewrite(command, peer, resp2, resp3);
                }
            }
        }
        let text = script.text();
        if fs::read_to_string(path).is_ok_and(|before| before != text) {
            fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let _ = writeln!(std::io::stderr(), "updated {}", path.display());
        }
    }
}

/// Gives a command the replies that both recordings meet; what was written by hand stays where it is met.
fn rewrite(command: &mut Command, peer: Target, resp2: &Step, resp3: &Step) {
    let written = |proto| command.reply(peer, proto);
    let is_met = |proto, step: &Step| {
        written(proto).is_some_and(|reply| reply.expected.accepts(&step.outcome, step.proto))
    };
    if is_met(Proto::Resp2, resp2) && is_met(Proto::Resp3, resp3) {
        return;
    }
    let raw = matches!(command.action, Action::Raw(_));
    let mut candidates: Vec<String> = Vec::new();
    candidates.extend(
        [Proto::Resp2, Proto::Resp3]
            .into_iter()
            .filter_map(written)
            .map(|reply| reply.text.clone()),
    );
    candidates.extend([write_outcome(&resp3.outcome), write_outcome(&resp2.outcome)]);
    let fitting = |steps: &[&Step]| {
        let fits = |text: &&String| steps.iter().all(|step| reads_as(text, raw, step));
        candidates.iter().find(fits).cloned()
    };
    let common = fitting(&[resp2, resp3]);
    let for_each = |step| {
        common
            .clone()
            .or_else(|| fitting(&[step]))
            .unwrap_or_default()
    };
    let (resp2, resp3) = (for_each(resp2), for_each(resp3));
    command.record(resp2, resp3);
}

/// Whether the written expectation accepts what was recorded. A failure is written down too, to be seen in
/// the diff.
fn reads_as(text: &str, raw: bool, step: &Step) -> bool {
    matches!(step.outcome, Outcome::Failed(_))
        || Reader::new(text)
            .next(raw)
            .is_ok_and(|(expected, _)| expected.accepts(&step.outcome, step.proto))
}
