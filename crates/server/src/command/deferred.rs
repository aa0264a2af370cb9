//! Deferred commands: they take long, and only their own connection waits for them.
//!
//! A handler whose command will take long returns the rest of it as [`Work`] ([`Context::defer`]). From then
//! on the connection and its later requests wait, and its worker continues that work in every turn: a *slice*
//! of it for as long as [`SLICE_NS`], so that other connections wait no longer than that. Work that waits for
//! a disk is done by a thread of its own ([`do_apart`]) which wakes the worker when it is done.
//!
//! The answer is gathered in [`Pieces`], which never move, and goes to the connection without a copy.
//!
//! In a transaction nothing waits: there commands do all their work at once.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use resp::reply::Protocol;

use crate::command::queue::Transaction;
use crate::command::session::Session;
use crate::command::{Command, Context, Handled, Next};
use crate::limits::{SLICE_NS, STREAM_SLICE_NS};
use crate::pubsub::Listeners;
use crate::request::{Args, Failure, Pieces, ReplyMode};
use crate::server::Server;
use crate::shared::Message;
use crate::store::Store;

/// Rest of a command.
pub(crate) trait Work: Send {
    /// Works until `slice` is over, or less. Returns the progress.
    fn go_on(&mut self, around: &mut Around<'_>, slice: &Slice) -> Progress;

    /// Whether its parts are sent as fast as the client reads them, and not faster.
    fn streams(&self) -> bool {
        false
    }

    /// Whether a thread does it and wakes the worker at the end.
    fn is_apart(&self) -> bool {
        false
    }

    /// Whether memory, or segments of the log, can't be given back while it goes on.
    fn pins(&self) -> bool {
        false
    }

    /// Bytes that it keeps.
    fn memory(&self) -> usize {
        0
    }

    /// The errand that it is, if that has not begun.
    fn errand(&mut self) -> Option<Box<Errand>> {
        None
    }
}

/// Progress of a slice.
pub(crate) enum Progress {
    More,
    /// There is more to come, and this is answered already.
    Part(Pieces),
    Done(Result<Pieces, Failure>),
}

/// Context of work.
pub(crate) struct Around<'a> {
    pub(crate) store: Store<'a>,
    /// Those of the request.
    pub(crate) args: Args<'a>,
    pub(crate) protocol: Protocol,
    pub(crate) server: &'static Server,
    /// The connections of the worker that may be told something.
    pub(crate) listeners: &'a mut Listeners,
    /// The connection that waits.
    pub(crate) session: &'a mut Session,
}

/// Time of work before other connections have a turn.
pub(crate) struct Slice {
    /// Ticks of the clock at its beginning; `None` for one without end.
    began: Option<u64>,
    /// Its longest time.
    most_ns: u64,
}

impl Slice {
    /// One that begins now.
    pub(crate) fn begin() -> Slice {
        Slice {
            began: Some(sys::clock::ticks()),
            most_ns: SLICE_NS,
        }
    }

    /// One that begins now, for work whose reply is sent while it grows, or for other work.
    pub(crate) fn begin_of(work: &dyn Work) -> Slice {
        let most_ns = if work.streams() {
            STREAM_SLICE_NS
        } else {
            SLICE_NS
        };
        Slice {
            most_ns,
            ..Slice::begin()
        }
    }

    /// One that begins now, or one without end where work may not be left for later.
    pub(crate) fn if_any(may_defer: bool) -> Slice {
        if may_defer {
            Slice::begin()
        } else {
            Slice::ENDLESS
        }
    }

    /// One without end.
    pub(crate) const ENDLESS: Slice = Slice {
        began: None,
        most_ns: SLICE_NS,
    };

    /// Whether there is time left.
    pub(crate) fn goes_on(&self) -> bool {
        self.began.is_none_or(|began| {
            let spent = sys::clock::ticks().saturating_sub(began);
            sys::clock::ticks_to_ns(spent) < self.most_ns
        })
    }
}

/// A command that its connection waits for.
pub(crate) struct Deferred {
    pub(crate) work: Box<dyn Work>,
    pub(crate) command: &'static Command,
    /// The request, for the slow log.
    pub(crate) request: Box<Transaction>,
    /// The time it has taken so far.
    pub(crate) ticks: u64,
    /// Parts of its reply that were sent.
    pub(crate) parts: Parts,
    /// When it began to wait for the client to read (Unix, ms).
    pub(crate) unread_since: i64,
}

/// Parts of the reply of deferred work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parts {
    /// None was sent.
    None,
    Sent,
    /// The client has read too few of those that were sent: the work goes on when it has read more.
    Unread,
}

impl Deferred {
    /// Bytes that it keeps.
    pub(crate) fn memory(&self) -> usize {
        self.request.memory() + self.work.memory()
    }
}

impl Context<'_> {
    /// Time of the handler: longer work is to be deferred.
    pub(crate) fn slice(&self) -> Slice {
        Slice::if_any(self.may_defer())
    }

    /// Whether work may be left for later.
    pub(crate) fn may_defer(&self) -> bool {
        !self.in_transaction && self.session.reply_mode == ReplyMode::On
    }

    /// Leaves the command to a thread of its own, with all that it may use here.
    pub(crate) fn defer_errand(&mut self, args: &Args<'_>, task: Chore) -> Next {
        let (sender, answer) = channel();
        let mut request = self.spares.take();
        request.push(self.command, args);
        let own = &self.session;
        let errand = Errand {
            command: self.command,
            request,
            session: Session {
                db: own.db,
                protocol: own.protocol,
                no_touch: own.no_touch,
                listens: own.listens,
                ..Session::new(Arc::clone(&own.client), own.authenticated)
            },
            task,
            answer: sender,
        };
        self.defer(
            args,
            Apart {
                answer,
                errand: Some(Box::new(errand)),
            },
        )
    }

    /// Leaves the rest of the command for later: the reply, too.
    pub(crate) fn defer(&mut self, args: &Args<'_>, work: impl Work + 'static) -> Next {
        assert!(self.may_defer(), "nothing is left of a command here");
        let mut request = self.spares.take();
        request.push(self.command, args);
        self.session.deferred = Some(Box::new(Deferred {
            work: Box::new(work),
            command: self.command,
            request,
            ticks: 0,
            parts: Parts::None,
            unread_since: 0,
        }));
        Next::Defer
    }
}

/// Command that runs on a thread of its own, as it would on its worker's, for as long as it needs. The thread
/// has the worker's way into the log and its Lua; meanwhile the worker stays outside of its turns.
pub(crate) struct Errand {
    pub(super) command: &'static Command,
    pub(super) request: Box<Transaction>,
    /// A copy of the session of its connection.
    pub(super) session: Session,
    pub(super) task: Chore,
    pub(super) answer: Sender<Answer>,
}

/// The part of a command that runs on the thread.
pub(crate) type Chore = Box<dyn FnOnce(&mut Context<'_>, &Args<'_>) -> Handled + Send>;

/// The answer of a command.
pub(crate) type Answer = Result<Pieces, Failure>;

impl Errand {
    /// Bytes of its request.
    pub(crate) fn bytes(&self) -> usize {
        self.request.used()
    }

    /// Answers it without running it.
    pub(crate) fn refuse(self, failure: Failure) {
        let _ = self.answer.send(Err(failure));
    }
}

/// Work of a thread of its own.
struct Apart {
    answer: Receiver<Answer>,
    errand: Option<Box<Errand>>,
}

impl Work for Apart {
    fn go_on(&mut self, _: &mut Around<'_>, _: &Slice) -> Progress {
        match self.answer.try_recv() {
            Ok(answer) => Progress::Done(answer),
            Err(TryRecvError::Empty) => Progress::More,
            Err(TryRecvError::Disconnected) => {
                Progress::Done(Err(Failure::of("ERR the command was not done")))
            }
        }
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn memory(&self) -> usize {
        let errand = self.errand.as_ref();
        errand.map_or(0, |errand| errand.request.memory())
    }

    fn errand(&mut self) -> Option<Box<Errand>> {
        self.errand.take()
    }
}

/// Lets a thread of its own do something that waits, and the connection wait for its answer. Where nothing
/// may wait the worker does it itself, outside of its turn.
pub(crate) fn do_apart(
    context: &mut Context<'_>,
    args: &Args<'_>,
    task: impl FnOnce() -> Result<Pieces, Failure> + Send + 'static,
) -> Handled {
    if !context.may_defer() {
        let pieces = if context.in_transaction {
            task()?
        } else {
            context.store.turn.pause(task)?
        };
        pieces
            .into_iter()
            .for_each(|chunk| context.reply.out.extend_from_slice(chunk.as_slice()));
        return Ok(Next::Done);
    }
    let receiver = on_a_thread(context, move || {
        sys::process::work_in_background();
        task()
    })?;
    Ok(context.defer(
        args,
        Apart {
            answer: receiver,
            errand: None,
        },
    ))
}

/// Runs a task on a thread of its own, which wakes the worker when the result is there.
///
/// # Errors
/// There are no threads left.
pub(crate) fn on_a_thread<R: Send + 'static>(
    context: &Context<'_>,
    task: impl FnOnce() -> R + Send + 'static,
) -> Result<Receiver<R>, Failure> {
    let (sender, receiver) = channel();
    let worker = &context.server.workers[context.worker];
    let started = std::thread::Builder::new()
        .name("apart".into())
        .spawn(move || {
            // The connection may be gone.
            let _ = sender.send(task());
            worker.send(Message::Wake);
        });
    match started {
        Ok(_) => Ok(receiver),
        Err(error) => Err(Failure::new(format!(
            "ERR no thread could be started: {error}"
        ))),
    }
}
