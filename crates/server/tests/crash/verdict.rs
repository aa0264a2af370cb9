//! Whether what is there after a crash can be.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use crate::crash::change::{Place, State};
use crate::crash::life::{End, Step};
use crate::crash::process::Process;

/// What all rounds together were.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    rounds: u64,
    volatile: u64,
    stopped: u64,
    acked: u64,
    unanswered: u64,
    kept_unanswered: u64,
    lost: u64,
    oldest_lost: Duration,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ends ({} in good order, {} lost what was not synced), {} changes acknowledged, {} of them lost (the oldest {} ms old), \
             {} more were on their way, {} of them are there; 0 torn, 0 out of order",
            self.rounds,
            self.stopped,
            self.volatile,
            self.acked,
            self.lost,
            self.oldest_lost.as_millis(),
            self.unanswered,
            self.kept_unanswered,
        )
    }
}

/// How many of a connection's changes are there: between these two, as far as can be told.
struct Kept {
    least: usize,
    most: usize,
}

impl Totals {
    /// Looks at what was found. Returns it: the next life's beginning.
    ///
    /// # Panics
    /// It cannot be.
    pub(crate) fn judge(
        &mut self,
        end: &End,
        base: &[State],
        found: Vec<State>,
        bound: Duration,
        what: &str,
        process: &Process,
    ) -> Vec<State> {
        self.rounds += 1;
        self.stopped += u64::from(end.is_stopped);
        self.volatile += u64::from(end.is_volatile && !end.is_stopped);
        let nothing = State::new();
        let mut kept = Vec::new();
        for (number, history) in end.histories.iter().enumerate() {
            let base = base.get(number).unwrap_or(&nothing);
            match find(base, history, &found[number]) {
                Ok(its) => kept.push(its),
                Err(wrong) => panic!(
                    "{what}: connection {number} is in a state that never was: {wrong}\n{}\n{}",
                    process.directory().display(),
                    process.output()
                ),
            }
        }
        for (number, (kept, history)) in kept.iter().zip(&end.histories).enumerate() {
            self.count(kept, history, end);
            for (index, step) in history.iter().enumerate().skip(kept.most) {
                let Some((_, when)) = step.acked else { break };
                let age = end.killed.duration_since(when);
                assert!(
                    bound > Duration::ZERO && age <= bound,
                    "{what}: change {index} of connection {number}, of {}, was acknowledged {age:?} before the crash and is lost: {:?}\n{}\n{}",
                    history.len(),
                    step.change,
                    process.directory().display(),
                    process.output()
                );
            }
        }
        check_order(&kept, &end.histories, what);
        found
    }

    fn count(&mut self, kept: &Kept, history: &[Step], end: &End) {
        let acked = history.iter().filter(|step| step.acked.is_some()).count();
        self.acked += acked as u64;
        self.unanswered += (history.len() - acked) as u64;
        self.kept_unanswered += kept.least.saturating_sub(acked) as u64;
        self.lost += acked.saturating_sub(kept.most) as u64;
        if let Some(Step {
            acked: Some((_, when)),
            ..
        }) = history.get(kept.most)
        {
            let age = end.killed.duration_since(*when);
            self.oldest_lost = self.oldest_lost.max(age);
        }
    }
}

/// After how many changes the state is what was found.
fn find(base: &State, history: &[Step], found: &State) -> Result<Kept, String> {
    let mut state = base.clone();
    let is_wrong = |state: &State, place: Place| state.get(&place) != found.get(&place);
    let places = base.keys().chain(found.keys()).copied();
    let mut wrong: HashSet<Place> = places.filter(|&place| is_wrong(&state, place)).collect();
    let mut kept: Option<Kept> = None;
    let mut nearest = (wrong.len(), 0);
    for (index, step) in (0..).zip(history.iter().map(Some).chain([None])) {
        if wrong.is_empty() {
            let least = kept.as_ref().map_or(index, |kept| kept.least);
            kept = Some(Kept { least, most: index });
        }
        nearest = nearest.min((wrong.len(), index));
        let Some(step) = step else { break };
        let mut touched = Vec::new();
        step.change
            .apply(&mut state, &mut |place| touched.push(place));
        for place in touched {
            if is_wrong(&state, place) {
                wrong.insert(place);
            } else {
                wrong.remove(&place);
            }
        }
    }
    kept.ok_or_else(|| {
        let acked = history.iter().filter(|step| step.acked.is_some()).count();
        let (keys, index) = nearest;
        let around = history.iter().enumerate();
        let around: Vec<String> = around
            .skip(index.saturating_sub(3))
            .take(6)
            .map(|(index, step)| format!("  {index}: {:?}", step.change))
            .collect();
        format!(
            "{acked} of {} changes were acknowledged; after {index} of them {keys} keys differ:\n{}",
            history.len(),
            around.join("\n")
        )
    })
}

/// If a change is there, so is what was acknowledged before it was sent.
fn check_order(kept: &[Kept], histories: &[Vec<Step>], what: &str) {
    let last_sent = kept
        .iter()
        .zip(histories)
        .filter_map(|(kept, history)| Some(history[kept.least.checked_sub(1)?].sent));
    let Some(last_sent) = last_sent.max() else {
        return;
    };
    for (number, (kept, history)) in kept.iter().zip(histories).enumerate() {
        let lost = history.get(kept.most);
        if let Some(Step {
            acked: Some((acked, _)),
            change,
            ..
        }) = lost
        {
            assert!(
                *acked > last_sent,
                "{what}: connection {number} was told of {change:?}, which is lost, before a change was sent that is there"
            );
        }
    }
}

/// The judge is judged: what must not be is found.
mod tests {
    use std::time::Instant;

    use super::{Kept, check_order, find};
    use crate::crash::change::{Change, State, Text};
    use crate::crash::life::Step;

    fn text(seed: u32) -> Text {
        Text { seed, len: 8 }
    }

    /// Changes that were all acknowledged, one after the other, from `first` on.
    fn history(first: u64, changes: Vec<Change>) -> Vec<Step> {
        (0..)
            .zip(changes)
            .map(|(number, change)| Step {
                change,
                sent: first + 2 * number,
                acked: Some((first + 2 * number + 1, Instant::now())),
            })
            .collect()
    }

    fn state(changes: &[Change]) -> State {
        let mut state = State::new();
        for change in changes {
            change.apply(&mut state, &mut |_| {});
        }
        state
    }

    #[test]
    fn a_beginning_of_the_history_is_found_and_nothing_else() {
        let pair = Change::SetMany(0, vec![(10, text(1)), (11, text(2))]);
        let both = Change::Transaction(vec![
            Change::Set((0, 12), text(3)),
            Change::Delete(0, vec![10]),
        ]);
        let last = Change::Set((1, 10), text(4));
        let changes = vec![pair, both, last];
        let history = history(0, changes.clone());
        for count in 0..=changes.len() {
            let found = state(&changes[..count]);
            let kept = find(&State::new(), &history, &found).expect("it was so once");
            assert_eq!((kept.least, kept.most), (count, count));
        }
        let whole = state(&changes);
        for place in whole.keys() {
            let mut torn = whole.clone();
            torn.remove(place);
            // Without its last change it is what it was before.
            let was_once = *place == (1, 10);
            assert_eq!(find(&State::new(), &history, &torn).is_ok(), was_once);
        }
        let mut strange = whole.clone();
        strange.entry((0, 12)).or_default().expires = true;
        assert!(find(&State::new(), &history, &strange).is_err());
    }

    #[test]
    fn changes_that_change_nothing_leave_it_open_how_many_there_are() {
        let nothing = Change::Delete(0, vec![20]);
        let history = history(0, vec![nothing.clone(), nothing]);
        let kept = find(&State::new(), &history, &State::new()).expect("it was so once");
        assert_eq!((kept.least, kept.most), (0, 2));
    }

    fn orders(lost: usize) -> std::thread::Result<()> {
        let set = |key| Change::Set((0, key), text(1));
        // The second connection sent its change when the first had been told of both of its own.
        let histories = [
            history(0, vec![set(10), set(11)]),
            history(4, vec![set(12)]),
        ];
        let kept = [2 - lost, 1].map(|count| Kept {
            least: count,
            most: count,
        });
        std::panic::catch_unwind(|| check_order(&kept, &histories, "a test"))
    }

    #[test]
    fn a_change_without_what_came_before_it_is_out_of_order() {
        assert!(orders(0).is_ok());
        assert!(orders(1).is_err());
        assert!(orders(2).is_err());
    }
}
