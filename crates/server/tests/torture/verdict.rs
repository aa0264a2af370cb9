//! Whether what is there after the end of a server can be, for all connections together.
//!
//! 1. The keys of each connection are what they were after some beginning of its history.
//! 2. What had to survive is in that beginning.
//! 3. If a step is there, so is what was acknowledged before it was sent.
//! 4. A command that changes the keys of all is there for all of them or for none.

use std::collections::BTreeMap;

use crate::torture::history::{History, Kept, describe_deed};
use crate::torture::lives::Rule;
use crate::torture::values::{Keys, Span};

/// What a verdict counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Steps that were acknowledged and, as they may be, are lost.
    pub(crate) lost: u64,
    /// When the first of them was answered, in Unix ms.
    pub(crate) first_lost_ms: Option<u64>,
    /// Steps that were on their way, and are there.
    pub(crate) kept_unanswered: u64,
}

/// Judges all histories by what was found. Returns how many steps of each are there, too.
///
/// # Errors
/// It cannot be.
pub(crate) fn judge(
    histories: &[&History],
    found: &[Keys],
    asked: Span,
    rule: Rule,
) -> Result<(Counts, Vec<Kept>), String> {
    let mut all = Vec::new();
    for (number, (history, found)) in histories.iter().zip(found).enumerate() {
        let kept = history
            .judge(found, asked, rule)
            .map_err(|wrong| format!("connection {number}: {wrong}"))?;
        let floor = history.floor(rule);
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
    let first_lost = histories.iter().zip(&all);
    let first_lost = first_lost.filter_map(|(history, kept)| history.steps.get(kept.most));
    let sum = |count: &dyn Fn(&History, &Kept) -> usize| {
        let pairs = histories.iter().zip(&all);
        pairs
            .map(|(history, kept)| count(history, kept) as u64)
            .sum()
    };
    let counts = Counts {
        first_lost_ms: first_lost
            .filter_map(|step| Some(step.answer.as_ref()?.at_ms))
            .min(),
        lost: sum(&|history, kept| history.answered.saturating_sub(kept.most)),
        kept_unanswered: sum(&|history, kept| kept.least.saturating_sub(history.answered)),
    };
    Ok((counts, all))
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

/// The judge is judged: what must not be is found.
mod tests {
    use std::sync::Arc;

    use super::judge;
    use crate::support::Value;
    use crate::torture::history::{Deed, History, Kept, Step};
    use crate::torture::lives::Rule;
    use crate::torture::model::Global;
    use crate::torture::script::{Line, Request, parse};
    use crate::torture::slots::Maps;
    use crate::torture::streams::{Id, Stream};
    use crate::torture::values::{Data, Entry, Keys, Span};
    use crate::torture::wire::Reply;

    fn request(text: &str) -> Request {
        let lines = parse(&format!("0 {text}")).expect("it is a request");
        let Some(Line::Request(_, request)) = lines.into_iter().next() else {
            panic!("it is a request");
        };
        request
    }

    fn step(deed: Deed, global: Option<u64>, sent: u64) -> Step {
        Step {
            deed,
            global,
            sent,
            sent_ms: 1000,
            answer: None,
            maps: Maps::None,
            limit: None,
        }
    }

    fn ok(stamp: u64) -> Reply {
        Reply {
            value: Value::Simple(b"OK".to_vec()),
            stamp,
            at_ms: 1001,
        }
    }

    /// A history of SETs that are answered, sent from `first` on, and what its keys are after each.
    fn history(first: u64, is_durable: bool, texts: &[&str]) -> (History, Vec<Keys>) {
        let mut history = History::new(Keys::new());
        let mut states = vec![Keys::new()];
        for (index, text) in (0..).zip(texts) {
            let sent = first + 2 * index;
            history
                .steps
                .push(step(Deed::Request(request(text)), None, sent));
            let answered = history.answer(&ok(sent + 1), is_durable, &[]);
            answered.expect("it is the right answer");
            states.push(history.model.keys.clone());
        }
        (history, states)
    }

    const ASKED: Span = Span {
        least: 2000,
        most: 2001,
    };

    #[test]
    fn what_must_be_kept_is_missed_and_what_may_go_is_not() {
        // The answers came at 1001 ms.
        for (is_durable, rule, is_allowed) in [
            (true, Rule::KeepsDurable(0), false),
            (false, Rule::KeepsDurable(0), true),
            (false, Rule::KeepsDurable(1001), true),
            (false, Rule::KeepsDurable(1002), false),
            (false, Rule::KeepsAll, false),
        ] {
            let (history, states) = history(0, is_durable, &["SET 0:a 1", "MSET 0:a 2 0:b 2"]);
            for (count, state) in states.iter().enumerate() {
                let judged = judge(&[&history], std::slice::from_ref(state), ASKED, rule);
                assert_eq!(judged.is_ok(), is_allowed || count == 2, "{judged:?}");
            }
            // Half of a command is never allowed.
            let mut torn = states[2].clone();
            torn.remove(&(0, b"0:b".to_vec()));
            assert!(judge(&[&history], &[torn], ASKED, rule).is_err());
        }
    }

    /// A stream of entries with these times, the fields of which are counted.
    fn stream(times: &[u64]) -> Keys {
        let mut stream = Stream::default();
        for (number, &ms) in (0..).zip(times) {
            stream.last = Id { ms, seq: 0 };
            stream.added += 1;
            let texts = vec![b"f".to_vec(), format!("{number}").into_bytes()];
            stream.entries.insert(stream.last, Arc::new(texts));
        }
        let entry = Entry {
            data: Data::Stream(Arc::new(stream)),
            expiry: None,
        };
        let there = (!times.is_empty()).then_some(((0, b"0:t".to_vec()), entry));
        there.into_iter().collect()
    }

    #[test]
    fn ids_that_a_server_chose_for_requests_without_an_answer_are_those_that_are_found() {
        let mut history = History::new(Keys::new());
        for text in ["XADD 0:t * f 0", "XADD 0:t * f 1"] {
            let step = step(Deed::Request(request(text)), None, 0);
            history.steps.push(step);
        }
        let judged = |times: &[u64]| history.judge(&stream(times), ASKED, Rule::KeepsAll);
        for times in [&[][..], &[1900], &[1900, 1950]] {
            let (least, most) = (times.len(), times.len());
            assert_eq!(judged(times), Ok(Kept { least, most }));
        }
        // Before it was sent, and out of order.
        assert!(judged(&[700]).is_err() && judged(&[1950, 1900]).is_err());
        let (kept, found) = (Kept { least: 2, most: 2 }, stream(&[1900, 1950]));
        history.reconnect(kept, 9, &found, ASKED, true);
        assert_eq!(history.model.keys, found);
        let judged = history.judge(&found, ASKED, Rule::KeepsDurable(0));
        assert_eq!(judged, Ok(Kept { least: 3, most: 3 }));
        assert!(
            history
                .judge(&stream(&[1900, 1951]), ASKED, Rule::KeepsAll)
                .is_err()
        );
    }

    #[test]
    fn an_entry_may_be_gone_before_its_id_is_known() {
        let mut history = History::new(Keys::new());
        for text in ["XADD 0:t * f 7", "XADD 0:t MAXLEN 1 * f 0"] {
            let step = step(Deed::Request(request(text)), None, 0);
            history.steps.push(step);
        }
        let mut found = stream(&[1900]);
        for entry in found.values_mut() {
            if let Data::Stream(stream) = &mut entry.data {
                Arc::make_mut(stream).added = 2;
            }
        }
        let both = Kept { least: 2, most: 2 };
        assert_eq!(history.judge(&found, ASKED, Rule::KeepsAll), Ok(both));
        history.reconnect(both, 9, &found, ASKED, true);
        assert_eq!(history.model.keys, found);
    }

    #[test]
    fn steps_that_change_nothing_leave_it_open_how_many_there_are() {
        let (history, _) = history(0, false, &["SELECT 0", "SELECT 0"]);
        let kept = history.judge(&Keys::new(), ASKED, Rule::KeepsDurable(0));
        assert_eq!(kept, Ok(Kept { least: 0, most: 2 }));
    }

    #[test]
    fn a_step_without_what_came_before_it_is_out_of_order() {
        let (one, first) = history(0, false, &["SET 0:a 1"]);
        let (two, second) = history(2, false, &["SET 1:a 1"]);
        let judged = |first: &Keys, second: &Keys| {
            judge(
                &[&one, &two],
                &[first.clone(), second.clone()],
                ASKED,
                Rule::KeepsDurable(0),
            )
            .is_ok()
        };
        assert!(judged(&first[1], &second[1]) && judged(&first[1], &second[0]));
        assert!(judged(&first[0], &second[0]));
        assert!(!judged(&first[0], &second[1]));
    }

    #[test]
    fn a_command_of_all_keys_is_there_for_all_connections_or_for_none() {
        let (mut one, first) = history(0, true, &["SET 0:a 1"]);
        let (mut two, second) = history(2, true, &["SET 1:a 1"]);
        let flush = Deed::Request(request("FLUSHALL"));
        one.steps.push(step(flush, Some(7), 9));
        two.steps
            .push(step(Deed::Global(vec![Global::FlushAll]), Some(7), 9));
        let judged = |first: &Keys, second: &Keys| {
            let found = [first.clone(), second.clone()];
            judge(&[&one, &two], &found, ASKED, Rule::KeepsAll).is_ok()
        };
        assert!(judged(&first[1], &second[1]) && judged(&first[0], &second[0]));
        assert!(!judged(&first[1], &second[0]));
    }
}
