//! Recording: redis-server's replies become the expectations of a script (`UPDATE_GOLDEN=1`).
//!
//! Only what redis-server does not meet is written anew; patterns and whatever else was written by hand stay
//! as long as they are met, and Ferrite's own sections are never touched.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use super::expect::Outcome;
use super::notation::{Reader, write_outcome};
use super::run::{Step, run_script};
use super::script::{Action, Block, Script};
use super::{Proto, Server, Target, own_server};

/// Rewrites the files whose expectations redis-server does not meet.
pub(super) fn update(paths: &[PathBuf]) {
    let shared = Server::start(Target::Redis, &[]);
    for path in paths {
        let mut script = Script::load(path, true).unwrap_or_else(|why| panic!("{why}"));
        let record = |proto: Proto| {
            if !script.admits(Target::Redis, proto) {
                return BTreeMap::new();
            }
            let own = script
                .needs_own_server()
                .then(|| own_server(Target::Redis, &script).unwrap_or_else(|why| panic!("{why}")));
            run_script(
                &script,
                own.as_ref().unwrap_or(&shared),
                Target::Redis,
                proto,
                true,
            )
            .steps
        };
        let (resp2, resp3) = (record(Proto::Resp2), record(Proto::Resp3));
        for (number, block) in script.blocks_mut().enumerate() {
            if let (Some(resp2), Some(resp3)) = (resp2.get(&number), resp3.get(&number)) {
                rewrite(block, resp2, resp3);
            }
        }
        let text = script.text();
        if fs::read_to_string(path).is_ok_and(|before| before != text) {
            fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let _ = writeln!(std::io::stderr(), "updated {}", path.display());
        }
    }
}

/// Gives a block the expectations that both recordings meet; what was written by hand stays where it is met.
fn rewrite(block: &mut Block, resp2: &[Step], resp3: &[Step]) {
    let met = |proto, steps: &[Step]| {
        let expected = block
            .section(Target::Redis, proto)
            .map(|section| section.expected.as_slice())
            .unwrap_or_default();
        let mut pairs = expected.iter().zip(steps);
        expected.len() == steps.len()
            && pairs.all(|((expected, _), step)| expected.accepts(&step.outcome, step.proto))
    };
    if block.replies() == 0 || (met(Proto::Resp2, resp2) && met(Proto::Resp3, resp3)) {
        return;
    }
    let raw: Vec<bool> = block
        .commands
        .iter()
        .filter(|command| command.action.replies())
        .map(|command| matches!(command.action, Action::Raw(_)))
        .collect();
    let written = |proto, index: usize| {
        let expected = &block.section(Target::Redis, proto)?.expected;
        expected.get(index).map(|(_, text)| text.clone())
    };
    let mut lines = (Vec::new(), Vec::new());
    for (index, (two, three)) in resp2.iter().zip(resp3).enumerate() {
        let fits = |text: &String, step: &Step| reads_as(text, raw[index], step);
        let mut candidates: Vec<String> = Vec::new();
        candidates.extend(written(Proto::Resp2, index));
        candidates.extend(written(Proto::Resp3, index));
        candidates.extend([write_outcome(&three.outcome), write_outcome(&two.outcome)]);
        let pick = |step: &Step| candidates.iter().find(|text| fits(text, step)).cloned();
        let common = candidates
            .iter()
            .find(|text| fits(text, two) && fits(text, three))
            .cloned();
        lines
            .0
            .push(common.clone().or_else(|| pick(two)).unwrap_or_default());
        lines
            .1
            .push(common.or_else(|| pick(three)).unwrap_or_default());
    }
    let split = |texts: Vec<String>| {
        texts
            .iter()
            .flat_map(|text| text.lines().map(str::to_owned))
            .collect()
    };
    block.set_expected(split(lines.0), split(lines.1));
}

/// Whether the written expectation accepts what was recorded. A failure is written down too, to be seen in
/// the diff.
fn reads_as(text: &str, raw: bool, step: &Step) -> bool {
    matches!(step.outcome, Outcome::Failed(_))
        || Reader::new(text)
            .next(raw)
            .is_ok_and(|(expected, _)| expected.accepts(&step.outcome, step.proto))
}
