//! Whether what is there after the end of a server can be, for all connections together.
//!
//! 1. The keys of each connection are what they were after some beginning of its history.
//! 2. What had to survive is in that beginning.
//! 3. If a step is there, so is what was acknowledged before it was sent.
//! 4. A command that changes the keys of all is there for all of them or for none.

use std::collections::BTreeMap;

use crate::history::{History, Kept, describe_deed};
use crate::values::{Keys, Span};

/// What a verdict counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Steps that were acknowledged and, as they may be, are lost.
    pub(crate) lost: u64,
    /// Steps that were on their way, and are there.
    pub(crate) kept_unanswered: u64,
}

/// Judges all histories by what was found.
///
/// # Errors
/// It cannot be.
pub(crate) fn judge(
    histories: &[&History],
    found: &[Keys],
    asked: Span,
    may_lose: bool,
) -> Result<Counts, String> {
    let mut all = Vec::new();
    for (number, (history, found)) in histories.iter().zip(found).enumerate() {
        let kept = history
            .judge(found, asked, may_lose)
            .map_err(|wrong| format!("connection {number}: {wrong}"))?;
        let floor = history.floor(may_lose);
        if kept.most < floor {
            return Err(format!(
                "connection {number}: {} of {floor} steps that had to be kept are there; the first that is not: {}",
                kept.most,
                describe_deed(&history.steps[kept.most].deed)
            ));
        }
        all.push(kept);
    }
    check_order(histories, &all)?;
    check_globals(histories, &all)?;
    let sum = |count: &dyn Fn(&History, &Kept) -> usize| {
        let pairs = histories.iter().zip(&all);
        pairs
            .map(|(history, kept)| count(history, kept) as u64)
            .sum()
    };
    Ok(Counts {
        lost: sum(&|history, kept| history.answered.saturating_sub(kept.most)),
        kept_unanswered: sum(&|history, kept| kept.least.saturating_sub(history.answered)),
    })
}

fn check_order(histories: &[&History], all: &[Kept]) -> Result<(), String> {
    let sent = histories.iter().zip(all);
    let sent = sent.filter_map(|(history, kept)| {
        let index = kept.least.checked_sub(1)?;
        Some(history.steps[index].sent)
    });
    let Some(last_sent) = sent.max() else {
        return Ok(());
    };
    for (number, (history, kept)) in histories.iter().zip(all).enumerate() {
        let lost = history.steps.get(kept.most);
        let Some((step, answer)) = lost.and_then(|step| Some((step, step.answer.as_ref()?))) else {
            continue;
        };
        if answer.stamp < last_sent {
            return Err(format!(
                "connection {number} was told of a step that is lost, before another was sent that is there: {}",
                describe_deed(&step.deed)
            ));
        }
    }
    Ok(())
}

fn check_globals(histories: &[&History], all: &[Kept]) -> Result<(), String> {
    let mut seen: BTreeMap<u64, (bool, bool)> = BTreeMap::new();
    for (history, kept) in histories.iter().zip(all) {
        for (index, step) in history.steps.iter().enumerate() {
            let Some(number) = step.global else { continue };
            let (is_there, is_not) = seen.entry(number).or_default();
            *is_there |= index < kept.least;
            *is_not |= index >= kept.most;
        }
    }
    match seen.values().position(|&both| both == (true, true)) {
        Some(index) => Err(format!(
            "command {index} of those that change all keys is there for some connections and not for others"
        )),
        None => Ok(()),
    }
}
