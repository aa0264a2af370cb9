//! What both servers publish about keys while the stream runs (`notify-keyspace-events`): the same events in
//! the same order.
//!
//! A pair of connections listens to all channels of events. Behind each batch, once its replies are here, a
//! message of our own is published; what comes before it belongs to the batch.

use super::pair::Pair;
use super::request::{Request, request, shown};
use super::run::{Diverged, Run};
use super::support::{Link, Proto, Server, Value};

/// Everything but keys that expire, which each server notices when it does.
const CLASSES: &str = "KEg$lshzetdmn";
const MARK: &str = "the end of a batch";
/// Events that a report shows before the one that differs.
const SHOWN_BEFORE: usize = 5;

/// The connections that listen, and those that mark the end of batches.
pub(super) struct Ears {
    listener: Pair,
    marker: Pair,
}

impl Ears {
    /// Nothing where the subject is no longer there.
    pub(super) fn open(reference: &Server, subject: &Server) -> Option<Self> {
        let mut listener = Pair::open(reference, subject, Proto::Resp2)?;
        let mut marker = Pair::open(reference, subject, Proto::Resp2)?;
        marker.ask(&["CONFIG", "SET", "notify-keyspace-events", CLASSES])?;
        listener.ask(&["PSUBSCRIBE", "__key*__:*"])?;
        listener.ask(&["SUBSCRIBE", MARK])?;
        Some(Self { listener, marker })
    }

    /// The events that both have published since the last call.
    fn hear(&mut self) -> Result<(Vec<Value>, Vec<Value>), Link> {
        let marked = self.marker.ask(&["PUBLISH", MARK, ""]);
        marked.ok_or(Link::Closed)?;
        let (mut reference, mut subject) = (Vec::new(), Vec::new());
        loop {
            match self.listener.read_reference() {
                message if is_mark(&message) => break,
                message => reference.push(message),
            }
        }
        loop {
            match self.listener.read_subject()? {
                message if is_mark(&message) => break,
                message => subject.push(message),
            }
        }
        Ok((reference, subject))
    }
}

fn is_mark(message: &Value) -> bool {
    matches!(message, Value::Array(parts) if parts[1].bytes() == Some(MARK.as_bytes()))
}

/// Channel and message of an event.
fn printed(event: Option<&Value>) -> String {
    match event {
        Some(Value::Array(parts)) => parts[2..]
            .iter()
            .map(|part| shown(part.bytes().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(" "),
        Some(other) => format!("{other:?}"),
        None => "nothing".to_owned(),
    }
}

impl Run<'_> {
    /// Compares what both have published about the requests of a batch.
    pub(super) fn listen(&mut self, batch: &[Request]) -> Result<(), Diverged> {
        let Some(ears) = &mut self.ears else {
            return Ok(());
        };
        let last = batch.last().cloned().unwrap_or_else(|| request("PING"));
        let (reference, subject) = match ears.hear() {
            Ok(heard) => heard,
            Err(link) => return self.mismatch(&last, &Value::Null, &link.to_string()),
        };
        self.report.events += reference.len();
        if reference == subject {
            return Ok(());
        }
        let pairs = reference.iter().zip(&subject);
        let at = pairs.take_while(|(left, right)| left == right).count();
        let before: Vec<_> = reference[at.saturating_sub(SHOWN_BEFORE)..at]
            .iter()
            .map(|event| printed(Some(event)))
            .collect();
        let text = format!(
            "published {}, redis-server {}; before: {before:?}; {} events in all, redis-server {}",
            printed(subject.get(at)),
            printed(reference.get(at)),
            subject.len(),
            reference.len()
        );
        // The first request of the batch that names the key of the event.
        let key = reference
            .get(at)
            .or(subject.get(at))
            .map(event_key)
            .unwrap_or_default();
        let culprit = batch
            .iter()
            .find(|request| request.words[1..].contains(&key))
            .unwrap_or(&last);
        self.mismatch(culprit, &Value::Array(Vec::new()), &text)
    }
}

/// The key that an event is about.
fn event_key(event: &Value) -> Vec<u8> {
    let Value::Array(parts) = event else {
        return Vec::new();
    };
    let text = |at: usize| parts[at].bytes().unwrap_or_default().to_vec();
    let channel = text(2);
    match channel.windows(3).position(|window| window == b"__:") {
        Some(at) if channel.starts_with(b"__keyspace") => channel[at + 3..].to_vec(),
        _ => text(3),
    }
}
