//! Running an errand: on its own thread, as it would run on its worker's.

use crate::command::deferred::Errand;
use crate::command::{Caller, park};
use crate::observe::tracking;
use crate::observe::waits::ready;
use crate::request::Pieces;
use crate::values::cold::FetchState;

impl Errand {
    /// Runs it inside a turn of the caller.
    pub(crate) fn run(mut self, caller: &mut Caller) {
        let mut fetch = FetchState::default();
        let mut context = caller.context(&mut self.session, &mut fetch);
        let server = context.server;
        context.command = self.command;
        if context.session.listens {
            tracking::set_current(context.session.client.id);
        }
        let args = self.request.args(0, &server.keyspace);
        let before = context.reply.mark();
        if let Err(failure) = (self.task)(&mut context, &args) {
            context.fail(self.command, &failure, before);
        }
        if ready::any() {
            park::serve(&context.store, server);
        }
        context.tell_own_changes();
        tracking::set_current(0);
        context.unpin();
        context.forget_values();
        server.observers.tracking.broadcast(server);
        let output = std::mem::take(&mut caller.output);
        assert!(output.large.is_empty(), "the reply of an errand is bytes");
        // The connection may be gone.
        let _ = self.answer.send(Ok(Pieces::beginning(output.bytes)));
    }
}
