//! Commands that look at many fields of a large hash: at one moment of it, a slice at a time.
//!
//! A handler begins under the lock of the shard. If its slice ends before the look does, it takes the moment
//! that the hash is at, and the rest is deferred work on that moment, without a lock.

use keyspace::HashRef;
use keyspace::collection::any::Moment;
use resp::reply::Writer;

use super::super::deferred::{Around, Progress, Slice, Work};
use super::super::{Args, Context, Next};
use crate::request::Pieces;
use crate::server::Server;

/// A look at the fields of a hash.
pub(super) trait Look: Send + 'static {
    /// Whether the reply is sent while it grows: its head is written before the first step. Otherwise
    /// [`Look::head`] writes it after the last.
    const STREAMS: bool;

    /// Looks at the next fields, and answers with them. Returns whether there are more.
    fn step(&mut self, fields: HashRef<'_>, writer: &mut Writer<'_>) -> bool;

    /// Writes the head of a reply that is complete.
    fn head(&self, _: &mut Writer<'_>) {}
}

/// Looks at fields until the slice is over. Returns whether there are more.
pub(super) fn look_on(
    look: &mut impl Look,
    fields: HashRef<'_>,
    writer: &mut Writer<'_>,
    slice: &Slice,
) -> bool {
    while look.step(fields, writer) {
        if !slice.goes_on() {
            return true;
        }
    }
    false
}

/// Leaves the rest of a look to deferred work. `start`: where the reply begins.
pub(super) fn leave(
    context: &mut Context<'_>,
    args: &Args<'_>,
    start: usize,
    moment: Moment,
    look: impl Look,
) -> Next {
    let answer = Pieces::beginning(context.reply.split_off(start));
    let rest = Rest {
        server: context.server,
        moment: Some(moment),
        look,
        answer,
    };
    context.defer(args, rest)
}

/// The rest of a look.
struct Rest<L> {
    server: &'static Server,
    /// The moment of the hash; `None` once it was discarded.
    moment: Option<Moment>,
    look: L,
    answer: Pieces,
}

impl<L: Look> Work for Rest<L> {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let Rest {
            moment,
            look,
            answer,
            ..
        } = self;
        let fields = moment.as_ref().expect("it is kept to the end").hash();
        let mut has_more = true;
        while has_more && slice.goes_on() {
            answer.write(around.protocol, |writer| {
                has_more = look.step(fields, writer);
            });
        }
        match has_more {
            true if L::STREAMS => Progress::Part(std::mem::take(answer)),
            true => Progress::More,
            false => {
                let mut head = Vec::new();
                look.head(&mut Writer::new(&mut head, around.protocol));
                answer.put_before(head);
                Progress::Done(Ok(std::mem::take(answer)))
            }
        }
    }

    fn streams(&self) -> bool {
        L::STREAMS
    }

    fn memory(&self) -> usize {
        self.answer.len()
    }
}

impl<L> Drop for Rest<L> {
    fn drop(&mut self) {
        if let Some(moment) = self.moment.take() {
            self.server.keyspace.discard(moment);
        }
    }
}
