//! Commands that look at many items of a large collection: at one moment of it, a slice at a time.
//!
//! A handler begins under the lock of the shard. If its slice ends before the look does, it takes the moment
//! that the collection is at, and the rest is deferred work on that moment, without a lock.

use std::marker::PhantomData;

use keyspace::ItemsRef;
use keyspace::collection::any::{Held, Moment};
use resp::reply::Writer;

use super::super::deferred::{Around, Progress, Slice, Work};
use super::super::{Args, Context, Next};
use crate::request::Pieces;
use crate::server::Server;

/// A look at the items of a collection.
pub(in crate::command) trait Look<K>: Send + 'static {
    /// Whether the reply is sent while it grows: its head is written before the first step. Otherwise
    /// [`Look::head`] writes it after the last.
    const STREAMS: bool;

    /// Looks at the next items, and answers with them. Returns whether there are more.
    fn step(&mut self, items: ItemsRef<'_, K>, writer: &mut Writer<'_>) -> bool;

    /// Writes the head of a reply that is complete.
    fn head(&self, _: &mut Writer<'_>) {}
}

/// Looks at items until the slice is over. Returns whether there are more.
pub(in crate::command) fn look_on<K>(
    look: &mut impl Look<K>,
    items: ItemsRef<'_, K>,
    writer: &mut Writer<'_>,
    slice: &Slice,
) -> bool {
    while look.step(items, writer) {
        if !slice.goes_on() {
            return true;
        }
    }
    false
}

/// Leaves the rest of a look to deferred work. `start`: where the reply begins.
pub(in crate::command) fn leave<K: Held + Send>(
    context: &mut Context<'_>,
    args: &Args<'_>,
    start: usize,
    moment: Moment,
    look: impl Look<K>,
) -> Next {
    let answer = Pieces::beginning(context.reply.split_off(start));
    let rest = Rest {
        server: context.server,
        moment: Some(moment),
        look,
        kind: PhantomData,
        answer,
    };
    context.defer(args, rest)
}

/// The rest of a look.
struct Rest<L, K> {
    server: &'static Server,
    /// The moment of the collection; `None` once it was discarded.
    moment: Option<Moment>,
    look: L,
    kind: PhantomData<K>,
    answer: Pieces,
}

impl<L: Look<K>, K: Held + Send> Work for Rest<L, K> {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let Rest {
            moment,
            look,
            answer,
            ..
        } = self;
        let items = moment.as_ref().expect("it is kept to the end").items();
        let mut has_more = true;
        while has_more && slice.goes_on() {
            answer.write(around.protocol, |writer| {
                has_more = look.step(items, writer);
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

impl<L, K> Drop for Rest<L, K> {
    fn drop(&mut self) {
        if let Some(moment) = self.moment.take() {
            self.server.keyspace.discard(moment);
        }
    }
}
