//! What one connection has asked for since its keys were last read, and which of it can be there.
//!
//! A history is a base, what was acknowledged, and what is on its way. After the end of a server its keys are
//! what they were after some beginning of the history: [`History::judge`] finds out which.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::support::Value;
use crate::torture::lives::Rule;
use crate::torture::model::{Expect, Global, Model, command_name};
use crate::torture::script::Request;
use crate::torture::slots::Maps;
use crate::torture::streams::Id;
use crate::torture::values::{Data, Key, Keys, SLACK_MS, Span, describe, may_be};
use crate::torture::wire::Reply;

/// Commands that wait for a key.
const WAITING: &[&str] = &[
    "blpop",
    "brpop",
    "blmpop",
    "blmove",
    "brpoplpush",
    "bzpopmin",
    "bzpopmax",
    "bzmpop",
    "xread",
];

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Request(Request),
    /// Another connection has changed the keys of all, with the request of this number.
    Global(Vec<Global>),
    /// Another connection has sent it, while nothing of this one was on its way.
    Beside(Request),
    /// The connection was closed, and is another one from here on.
    Reconnect,
}

/// How a step was answered.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// When, in the order of all connections, and in Unix ms.
    pub(crate) stamp: u64,
    pub(crate) at_ms: u64,
    /// It must be there even if the power has failed.
    pub(crate) is_durable: bool,
    /// It was refused, and changed nothing.
    was_refused: bool,
    /// What the reply of EXEC told of watched keys, if that was open.
    was_dirty: Option<bool>,
    /// The IDs of entries that the server chose.
    told: VecDeque<Option<Id>>,
    /// The server has replied. Without a reply the IDs follow from the keys that were found.
    is_reply: bool,
    /// Requests in EXEC that were refused, by their place: they changed nothing, and others ran.
    refused: Vec<usize>,
}

/// A request that was sent.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) deed: Deed,
    /// The number of a request that changes the keys of all.
    pub(crate) global: Option<u64>,
    pub(crate) sent: u64,
    pub(crate) sent_ms: u64,
    pub(crate) answer: Option<Answer>,
    pub(crate) maps: Maps,
    /// The limit of memory of the server, in bytes.
    pub(crate) limit: Option<u64>,
}

impl Step {
    /// When it ran, if it did before `end_ms`.
    fn span(&self, end_ms: u64) -> Span {
        Span {
            least: self.sent_ms.saturating_sub(SLACK_MS),
            most: self.answer.as_ref().map_or(end_ms, |answer| answer.at_ms),
        }
    }

    fn play(&self, model: &mut Model, end_ms: u64, touched: &mut Vec<Key>) -> Option<Expect> {
        model.chosen.tells_duplicates = self.answer.as_ref().is_some_and(|answer| answer.is_reply);
        model.chosen.told = self.answer.as_ref().map(|answer| answer.told.clone());
        let request = match &self.deed {
            Deed::Request(request) => request,
            Deed::Global(globals) => {
                for global in globals {
                    model.apply_global(global, touched);
                }
                return None;
            }
            Deed::Beside(request) => {
                if let Maps::Only(slots) = self.maps
                    && let Some(error) = slots.refusal(std::iter::once(request))
                {
                    return Some(Expect::Error(error));
                }
                model.limit = self.limit;
                return Some(model.apply_beside(request, self.span(end_ms), touched));
            }
            Deed::Reconnect => {
                let chosen = std::mem::take(&mut model.chosen);
                *model = Model::new(std::mem::take(&mut model.keys));
                model.chosen = chosen;
                return None;
            }
        };
        if let Some(answer) = &self.answer {
            if answer.was_refused {
                model.refuse(request);
                return None;
            }
            if let Some(was_dirty) = answer.was_dirty {
                model.learn_dirty(was_dirty);
            }
            model.learn_refused(&answer.refused);
        }
        model.limit = self.limit;
        if let Maps::Only(slots) = self.maps
            && let Some(error) = model.refusal_of_node(request, slots)
        {
            model.refuse(request);
            return Some(Expect::Error(error));
        }
        Some(model.apply(request, self.span(end_ms), touched))
    }
}

/// How many steps are there: between these two, as far as can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) least: usize,
    pub(crate) most: usize,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct History {
    base: Model,
    /// After what was acknowledged.
    pub(crate) model: Model,
    pub(crate) steps: Vec<Step>,
    /// How many steps were answered: the first ones.
    pub(crate) answered: usize,
}

impl History {
    /// Nothing was done yet to these keys.
    pub(crate) fn new(keys: Keys) -> History {
        let base = Model::new(keys);
        History {
            model: base.clone(),
            base,
            steps: Vec::new(),
            answered: 0,
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.steps.len() - self.answered
    }

    /// Whether a command is on its way that may wait for a key.
    pub(crate) fn may_wait(&self) -> bool {
        self.steps[self.answered..].iter().any(|step| {
            let Deed::Request(request) = &step.deed else {
                return false;
            };
            WAITING.contains(&&command_name(request)[..])
        })
    }

    /// Takes the answer of the oldest step that has none. `may_refuse` says which errors mean that nothing
    /// was done.
    ///
    /// # Errors
    /// It is wrong.
    pub(crate) fn answer(
        &mut self,
        reply: &Reply,
        is_durable: bool,
        may_refuse: &[&str],
    ) -> Result<(), String> {
        let Some(step) = self.steps.get_mut(self.answered) else {
            return Err(format!("a reply to nothing: {:.200?}", reply.value));
        };
        let is_refusal = |reply: &Value| match reply {
            Value::Error(text) => {
                let text = String::from_utf8_lossy(text);
                may_refuse.iter().any(|start| text.starts_with(start))
            }
            _ => false,
        };
        let was_refused = is_refusal(&reply.value);
        let is_exec = matches!(&step.deed, Deed::Request(request) if crate::torture::model::command_name(request) == "exec");
        let is_unsure = is_exec && self.model.is_unsure_of_exec();
        let refused = match &reply.value {
            Value::Array(replies) if is_exec => {
                let places = replies.iter().enumerate();
                let refused = places.filter(|(_, reply)| is_refusal(reply));
                refused.map(|(place, _)| place).collect()
            }
            _ => Vec::new(),
        };
        let told = match &step.deed {
            Deed::Request(request) => self.model.ids_of(request, &reply.value),
            Deed::Beside(_) => Id::of(&reply.value).into_iter().map(Some).collect(),
            Deed::Global(_) | Deed::Reconnect => VecDeque::new(),
        };
        step.maps = step.maps.told_by(&reply.value);
        step.answer = Some(Answer {
            stamp: reply.stamp,
            at_ms: reply.at_ms,
            is_durable,
            was_refused,
            was_dirty: is_unsure.then_some(match &reply.value {
                Value::Array(_) => false,
                // Of a transaction that has failed already nothing more is queued that a node could refuse.
                Value::Error(text) => text.starts_with(b"EXECABORT "),
                _ => true,
            }),
            told,
            is_reply: true,
            refused,
        });
        self.answered += 1;
        match step.play(&mut self.model, reply.at_ms, &mut Vec::new()) {
            Some(expect) if !expect.admits(&reply.value) => {
                let deed = describe_deed(&step.deed);
                Err(format!(
                    "{deed}\nis answered {}\nin place of {}",
                    shorten(format!("{:?}", reply.value)),
                    shorten(format!("{expect:?}"))
                ))
            }
            Some(Expect::Page(page)) => {
                if let Deed::Request(request) = &step.deed {
                    self.model.learn_page(request, &page, &reply.value);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A command of another connection that changes all keys was answered; whether it was run.
    pub(crate) fn answer_global(&mut self, like: &Answer, was_run: bool) {
        let step = &mut self.steps[self.answered];
        step.answer = Some(like.clone());
        if like.was_refused || !was_run {
            self.steps.truncate(self.answered);
        } else {
            step.play(&mut self.model, like.at_ms, &mut Vec::new());
            self.answered += 1;
        }
    }

    /// How many steps must be there: those that were answered, or those of them that the rule keeps.
    pub(crate) fn floor(&self, rule: Rule) -> usize {
        let Rule::KeepsDurable(before_ms) = rule else {
            return self.answered;
        };
        let is_kept = |answer: &Answer| answer.is_durable || answer.at_ms < before_ms;
        self.steps
            .iter()
            .rposition(|step| step.answer.as_ref().is_some_and(is_kept))
            .map_or(0, |index| index + 1)
    }

    /// These keys are there, after so many steps: what follows begins with them, on a new connection.
    pub(crate) fn rebase(&mut self, mut keys: Keys, asked: Span, kept: Kept) {
        let mut streams = keys.values_mut().filter_map(|entry| match &mut entry.data {
            Data::Stream(stream) => Some(stream),
            _ => None,
        });
        // Servers tell how many idempotent IDs there are, and none of them.
        if streams.any(|stream| stream.idempotence_facts().is_some()) {
            let mut model = self.base.clone();
            for step in &self.steps[..kept.most] {
                step.play(&mut model, asked.least, &mut Vec::new());
            }
            for (key, entry) in &mut keys {
                let known = model.keys.get(key).map(|entry| &entry.data);
                if let (Data::Stream(stream), Some(Data::Stream(known))) = (&mut entry.data, known)
                {
                    Arc::make_mut(stream).learn_idempotence(known);
                }
            }
        }
        *self = History::new(keys);
    }

    /// The IDs that were found, in place of those that stand for them after steps without an answer.
    fn bound(&self, found: &Keys, asked: Span) -> BTreeMap<Id, Id> {
        let mut model = self.model.clone();
        for step in &self.steps[self.answered..] {
            step.play(&mut model, asked.least, &mut Vec::new());
        }
        let streams = model.keys.iter().filter_map(|(key, entry)| {
            match (&entry.data, &found.get(key)?.data) {
                (Data::Stream(stream), Data::Stream(found)) => stream.bind(found),
                _ => None,
            }
        });
        streams.flatten().collect()
    }

    /// The connection was closed, and so many steps were there at this moment, which counts as their answer:
    /// these keys were found.
    pub(crate) fn reconnect(
        &mut self,
        kept: Kept,
        stamp: u64,
        found: &Keys,
        asked: Span,
        is_durable: bool,
    ) {
        let at_ms = asked.most;
        self.steps.truncate(kept.most);
        let bound = self.bound(found, asked);
        self.steps.push(Step {
            deed: Deed::Reconnect,
            global: None,
            sent: stamp,
            sent_ms: at_ms,
            answer: None,
            maps: Maps::None,
            limit: None,
        });
        for step in &mut self.steps[self.answered..] {
            // A model that takes it for unanswered says how many IDs it chose.
            let (mut probe, before) = (self.model.clone(), self.model.chosen.unknown);
            step.play(&mut probe, asked.least, &mut Vec::new());
            let chosen = before + 1..=probe.chosen.unknown;
            self.model.chosen.unknown = probe.chosen.unknown;
            let from_ms = step.span(asked.least).least;
            let told = chosen.map(|number| bound.get(&Id::unknown(number, from_ms)).copied());
            step.answer = Some(Answer {
                told: told.collect(),
                is_reply: false,
                stamp,
                at_ms,
                is_durable,
                was_refused: false,
                was_dirty: None,
                refused: Vec::new(),
            });
            step.play(&mut self.model, at_ms, &mut Vec::new());
        }
        self.answered = self.steps.len();
    }

    /// After how many steps the keys are what was found.
    ///
    /// # Errors
    /// They never were; the text says what is nearest.
    pub(crate) fn judge(&self, found: &Keys, asked: Span, rule: Rule) -> Result<Kept, String> {
        let search = Search { found, asked };
        // Where steps may be lost, what is least has to be looked for from the beginning on.
        let from_base = self.floor(rule) < self.answered;
        let (kept, nearest) = if from_base {
            search.run(&self.base, &self.steps)
        } else {
            search.run(&self.model, &self.steps[self.answered..])
        };
        let skipped = if from_base { 0 } else { self.answered };
        if let Some(kept) = kept {
            return Ok(Kept {
                least: skipped + kept.least,
                most: skipped + kept.most,
            });
        }
        let nearest = Nearest {
            after: skipped + nearest.after,
            ..nearest
        };
        Err(self.explain(&nearest, found, asked))
    }

    fn explain(&self, nearest: &Nearest, found: &Keys, asked: Span) -> String {
        let mut model = self.base.clone();
        for step in &self.steps[..nearest.after] {
            step.play(&mut model, asked.least, &mut Vec::new());
        }
        let keys = nearest.wrong.iter().take(4).map(|key| {
            format!(
                "\n  {} in database {}: {} is there, {} should be",
                key.1.escape_ascii(),
                key.0,
                describe(found.get(key)),
                describe(model.keys.get(key))
            )
        });
        let from = nearest.after.saturating_sub(4);
        let steps = self.steps.iter().enumerate().skip(from).take(7);
        let steps = steps
            .map(|(index, step)| format!("\n  step {}: {}", index + 1, describe_deed(&step.deed)));
        format!(
            "no state that ever was ({} of {} steps were answered); after {} of them {} keys differ:{}{}",
            self.answered,
            self.steps.len(),
            nearest.after,
            nearest.wrong.len(),
            keys.collect::<String>(),
            steps.collect::<String>()
        )
    }
}

/// The state that differs in the fewest keys.
struct Nearest {
    after: usize,
    wrong: Vec<Key>,
}

/// A search for the state that was found.
struct Search<'a> {
    found: &'a Keys,
    asked: Span,
}

impl Search<'_> {
    fn is_wrong(&self, model: &Model, key: &Key) -> bool {
        !may_be(model.keys.get(key), self.found.get(key), self.asked)
    }

    fn run(&self, base: &Model, steps: &[Step]) -> (Option<Kept>, Nearest) {
        let mut model = base.clone();
        let keys = base.keys.keys().chain(self.found.keys());
        let mut wrong: HashSet<Key> = keys
            .filter(|key| self.is_wrong(&model, key))
            .cloned()
            .collect();
        let mut kept: Option<Kept> = None;
        let mut nearest: Option<Nearest> = None;
        for (index, step) in (0..).zip(steps.iter().map(Some).chain([None])) {
            if wrong.is_empty() {
                let least = kept.map_or(index, |kept| kept.least);
                kept = Some(Kept { least, most: index });
            }
            if nearest
                .as_ref()
                .is_none_or(|nearest| wrong.len() <= nearest.wrong.len())
            {
                nearest = Some(Nearest {
                    after: index,
                    wrong: wrong.iter().cloned().collect(),
                });
            }
            let Some(step) = step else { break };
            let mut touched = Vec::new();
            step.play(&mut model, self.asked.least, &mut touched);
            for key in touched {
                if self.is_wrong(&model, &key) {
                    wrong.insert(key);
                } else {
                    wrong.remove(&key);
                }
            }
        }
        (
            kept,
            nearest.expect("there is a state before the first step"),
        )
    }
}

pub(crate) fn describe_deed(deed: &Deed) -> String {
    match deed {
        Deed::Request(request) => {
            let words: Vec<String> = request.iter().map(ToString::to_string).collect();
            words.join(" ")
        }
        Deed::Beside(request) => {
            let words: Vec<String> = request.iter().map(ToString::to_string).collect();
            format!("{} by another connection", words.join(" "))
        }
        Deed::Global(globals) => format!("{globals:?} by another connection"),
        Deed::Reconnect => "a new connection".to_owned(),
    }
}

fn shorten(text: String) -> String {
    if text.len() <= 300 {
        return text;
    }
    let start: String = text.chars().take(300).collect();
    format!("{start}... ({} characters)", text.len())
}
