//! Commands that look at many items of a large collection: at one moment of it, a slice at a time.
//!
//! A handler begins under the lock of the shard. If its slice ends before the look does, it takes the moment
//! that the collection is at, and the rest is deferred work on that moment, without a lock.
//!
//! Leaves of the moment may be cold. They are read from the log ahead of the look, by other threads, and stay
//! cold: a collection that is larger than memory is walked with a few leaves of it in memory. The log keeps
//! their records in place until the walk is over.

use std::marker::PhantomData;

use keyspace::collection::Base;
use keyspace::collection::any::Held;
use keyspace::{ItemsRef, Thawed};
use resp::reply::Writer;

use super::super::deferred::{Around, Progress, Slice, Work};
use super::super::{Args, Context, Failure, Next};
use crate::limits::{WALK_AHEAD, WALK_AHEAD_BYTES};
use crate::request::Pieces;
use crate::server::Server;
use crate::store::HeldMoment;
use crate::values::cold::LeavesAhead;

/// A look at the items of a collection.
pub(in crate::command) trait Look<K>: Send + 'static {
    /// Whether the reply is sent while it grows: its head is written before the first step. Otherwise
    /// [`Look::head`] writes it after the last.
    const STREAMS: bool;

    /// Looks at the next items, and answers with them. Returns whether there are more.
    fn step(&mut self, items: ItemsRef<'_, K>, writer: &mut Writer<'_>) -> bool;

    /// The records of the leaves that the next step looks at and that are cold; with `ahead`, those of the
    /// next steps, too, up to about so many leaves.
    fn cold(&mut self, items: ItemsRef<'_, K>, ahead: Option<usize>) -> Vec<Base>;

    /// Writes the head of a reply that is complete.
    fn head(&self, _: &mut Writer<'_>) {}
}

/// Looks at items until the slice is over, or up to a leaf that is cold. Returns whether there are more.
#[inline]
pub(in crate::command) fn look_on<K: Held>(
    look: &mut impl Look<K>,
    items: ItemsRef<'_, K>,
    has_cold: bool,
    writer: &mut Writer<'_>,
    slice: &Slice,
) -> bool {
    loop {
        if has_cold && !look.cold(items, None).is_empty() {
            return true;
        }
        if !look.step(items, writer) {
            return false;
        }
        if !slice.goes_on() {
            return true;
        }
    }
}

/// Leaves the rest of a look to deferred work, at a moment of the collection, which a large one has. `start`:
/// where the reply begins. Where nothing may be done later the command runs again: all leaves that it needs
/// were in memory, until items came or went.
pub(in crate::command) fn leave_or_retry<K: Held + Send>(
    context: &mut Context<'_>,
    args: &Args<'_>,
    start: usize,
    moment: Option<HeldMoment>,
    look: impl Look<K>,
) -> Next {
    let moment = moment.expect("a small collection is shown at once");
    match context.may_defer() {
        true => leave(context, args, start, moment, look),
        false => {
            context.server.keyspace.discard(moment.moment);
            Next::Retry
        }
    }
}

/// Leaves the rest of a look to deferred work. `start`: where the reply begins.
fn leave<K: Held + Send>(
    context: &mut Context<'_>,
    args: &Args<'_>,
    start: usize,
    moment: HeldMoment,
    look: impl Look<K>,
) -> Next {
    let answer = Pieces::beginning(context.reply.split_off(start));
    let rest = Rest {
        server: context.server,
        worker: context.worker,
        moment: Some(moment),
        look,
        kind: PhantomData,
        answer,
        thawed: Thawed::default(),
        reads: None,
    };
    context.defer(args, rest)
}

/// The rest of a look.
struct Rest<L, K> {
    server: &'static Server,
    worker: usize,
    /// The moment of the collection; `None` once it was discarded.
    moment: Option<HeldMoment>,
    look: L,
    kind: PhantomData<K>,
    answer: Pieces,
    /// What was read of leaves that are cold, and what is being read.
    thawed: Thawed,
    reads: Option<LeavesAhead>,
}

impl<L: Look<K>, K: Held + Send> Rest<L, K> {
    /// Whether the leaves are there that the next step looks at. If not, they are being read.
    ///
    /// # Errors
    /// They cannot be read.
    fn has_leaves(&mut self) -> Result<bool, Failure> {
        let held = self
            .moment
            .as_ref()
            .expect("it is discarded when the work is dropped");
        let Some(hold) = &held.hold else {
            return Ok(true);
        };
        let items = held.moment.items::<K>();
        if let Some(reads) = &mut self.reads {
            let Some(leaves) = reads.arrived()? else {
                return Ok(false);
            };
            self.reads = None;
            self.thawed.clear();
            for (base, contents) in leaves {
                self.thawed.add(items.thaw(base, contents)?);
            }
        }
        let now = self.look.cold(items, None);
        if now.iter().all(|&base| self.thawed.has(base)) {
            return Ok(true);
        }
        let mut records = self.look.cold(items, Some(WALK_AHEAD));
        let (mut bytes, mut count) = (0_u32, 0);
        records.retain(|base| {
            let is_taken = count < now.len() || bytes < WALK_AHEAD_BYTES;
            // A record may have a gigabyte.
            (bytes, count) = (bytes.saturating_add(base.share), count + 1);
            is_taken
        });
        let reader = (&**self.server, self.worker);
        self.reads = Some(LeavesAhead::begin(reader, hold, items.instance(), &records));
        Ok(false)
    }
}

impl<L: Look<K>, K: Held + Send> Work for Rest<L, K> {
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress {
        let mut has_more = true;
        while has_more && slice.goes_on() {
            match self.has_leaves() {
                Ok(true) => {}
                Ok(false) => break,
                Err(failure) => return Progress::Done(Err(failure)),
            }
            let Rest {
                moment,
                look,
                answer,
                thawed,
                ..
            } = self;
            let moment = moment
                .as_ref()
                .expect("it is discarded when the work is dropped");
            answer.write(around.protocol, |writer| {
                has_more = look.step(moment.items(thawed), writer);
            });
        }
        let Rest { look, answer, .. } = self;
        match has_more {
            true if L::STREAMS && answer.len() > 0 => Progress::Part(std::mem::take(answer)),
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

    fn is_apart(&self) -> bool {
        self.reads.is_some()
    }

    fn pins(&self) -> bool {
        // Leaves that the moment has do not leave memory, and the records of those that have do not move.
        true
    }

    fn memory(&self) -> usize {
        self.answer.len() + self.thawed.bytes()
    }
}

impl<L, K> Drop for Rest<L, K> {
    fn drop(&mut self) {
        if let Some(held) = self.moment.take() {
            self.server.keyspace.discard(held.moment);
        }
    }
}
