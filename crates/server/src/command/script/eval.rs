//! EVAL, EVALSHA and their read-only forms: from the request to the script, and from its result to the reply.

use std::borrow::Cow;
use std::sync::Arc;

use lua::{Arguments, Call, Ended};

use super::host::{Rules, Run};
use crate::command::{Args, Context, Engine, Failure, Handled, Next};
use crate::limits::{SCRIPT_REPLY_MOST, SCRIPT_RUN_LEAST};
use crate::script::{Script, flags_of};
use crate::shared::memory::Room;

const NO_SCRIPT: Failure = Failure::of("NOSCRIPT No matching script. Please use EVAL.");
const WRITES_IN_RO: Failure =
    Failure::of("ERR Can not execute a script with write flag using *_ro command.");
const OOM_WITHOUT_FLAG: Failure = Failure::of(
    "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
);
const NOT_IN_CLUSTER: Failure =
    Failure::of("ERR Can not run script on cluster, 'no-cluster' flag is set.");
const STOPPED: Failure = Failure::of("ERR Error running script: the server shuts down");

/// Whether a command lets scripts write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Writes,
    Reads,
}

pub(super) fn eval(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_text(context, args, Form::Writes)
}

pub(super) fn eval_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_text(context, args, Form::Reads)
}

pub(super) fn evalsha(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_known(context, args, Form::Writes)
}

pub(super) fn evalsha_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_known(context, args, Form::Reads)
}

fn run_text(context: &mut Context<'_>, args: &Args<'_>, form: Form) -> Handled {
    let keys = count_of_keys(args)?;
    let sha = Script::sha_of(args.get(1));
    let script = match context.server.scripts.get(&sha) {
        Some(script) => script,
        None => {
            let script = compiled(context, args.get(1))?;
            context.server.scripts.keep(Arc::clone(&script));
            script
        }
    };
    run(context, args, keys, &script, form)
}

fn run_known(context: &mut Context<'_>, args: &Args<'_>, form: Form) -> Handled {
    let is_sha = args.get(1).len() == 40;
    if !is_sha {
        return Err(NO_SCRIPT);
    }
    let keys = count_of_keys(args)?;
    let script = kept(context, args.get(1))?;
    run(context, args, keys, &script, form)
}

/// The number of keys that a request says.
fn count_of_keys(args: &Args<'_>) -> Result<usize, Failure> {
    let count = args.integer(2)?;
    match usize::try_from(count) {
        Err(_) => Err(Failure::of("ERR Number of keys can't be negative")),
        Ok(count) if count > args.len() - 3 => Err(Failure::of(
            "ERR Number of keys can't be greater than number of args",
        )),
        Ok(count) => Ok(count),
    }
}

/// The script of a SHA-1 in digits.
pub(super) fn kept(context: &Context<'_>, digits: &[u8]) -> Result<Arc<Script>, Failure> {
    let sha = Script::parse_sha(digits).ok_or(NO_SCRIPT)?;
    context.server.scripts.get(&sha).ok_or(NO_SCRIPT)
}

/// A script of a text that Lua understands.
pub(super) fn compiled(context: &mut Context<'_>, text: &[u8]) -> Result<Arc<Script>, Failure> {
    let flags = flags_of(text)?;
    let script = Script::new(Script::sha_of(text), text, flags);
    let engine = context.extras.engine.get_or_insert_default();
    match engine.function(context.server, &script) {
        Ok(_) => Ok(Arc::new(script)),
        Err(message) => Err(not_compiled(&message)),
    }
}

fn not_compiled(message: &[u8]) -> Failure {
    let mut text = b"ERR Error compiling script (new function): ".to_vec();
    text.extend_from_slice(message);
    Failure(Cow::Owned(text))
}

/// Refuses a script that says of itself that it may not run now. Returns the rules of its commands.
fn rules(context: &Context<'_>, script: &Script, form: Form) -> Result<Rules, Failure> {
    let (flags, server) = (script.flags, context.server);
    let is_short = server.memory.is_near_with(0)
        && match context.in_transaction {
            true => server.memory.is_exceeded(),
            false => context.make_room(0) == Room::No,
        };
    if flags.is_declared {
        if flags.no_cluster && server.cluster.is_some() {
            return Err(NOT_IN_CLUSTER);
        }
        if !flags.no_writes {
            if let Some(failure) = context.refusal_of_writes() {
                return Err(failure);
            }
            if form == Form::Reads {
                return Err(WRITES_IN_RO);
            }
            if is_short && !flags.allow_oom {
                return Err(OOM_WITHOUT_FLAG);
            }
        }
    }
    Ok(Rules {
        may_write: form == Form::Writes && !flags.no_writes,
        refuses_growth: is_short && !flags.allow_oom,
    })
}

/// Runs a script while no other worker is inside a turn.
fn run(
    context: &mut Context<'_>,
    args: &Args<'_>,
    keys: usize,
    script: &Script,
    form: Form,
) -> Handled {
    let rules = rules(context, script, form)?;
    let mut engine = context.extras.engine.take().unwrap_or_default();
    let done = run_in(context, &mut engine, args, keys, script, rules);
    engine.rest();
    context.extras.engine = Some(engine);
    done
}

fn run_in(
    context: &mut Context<'_>,
    engine: &mut Engine,
    args: &Args<'_>,
    keys: usize,
    script: &Script,
    rules: Rules,
) -> Handled {
    let (state, function) = engine
        .function(context.server, script)
        .map_err(|message| not_compiled(&message))?;
    let (outer, db, protocol) = (
        context.command,
        context.session.db,
        context.session.protocol,
    );
    // EXEC has done so already.
    let is_alone = !context.in_transaction;
    if is_alone {
        context.store.release();
        context.store.begin_alone();
        context.store.begin_batch();
        context.in_transaction = true;
        context.extras.foreseen.set(0);
    }
    context.extras.in_script = true;
    let server = context.server;
    let mut reply = Vec::new();
    let mut host = Run::new(context, rules);
    let call = Call {
        name: &script.name,
        keys: Arguments::new(args.input, &args.spans[3..3 + keys]),
        argv: Arguments::new(args.input, &args.spans[3 + keys..]),
        protocol,
        // The reply is copied once, into a buffer that doubles.
        reply_most: SCRIPT_REPLY_MOST.min(server.room_now() / 4),
        memory_most: SCRIPT_RUN_LEAST.max(server.room_now() / 2),
    };
    let ended = state.run(&mut host, function, call, &mut reply);
    let lines = host.finish();
    context.extras.in_script = false;
    context.command = outer;
    // A script's SELECT ends with it.
    context.session.select(db);
    context.refresh();
    if is_alone {
        context.in_transaction = false;
        context.store.end_batch();
        context.store.end_alone();
    }
    let done = answer(context, ended, &reply);
    if is_alone {
        context.tell_held();
    }
    context.show_script(args, lines);
    done
}

/// Writes the reply of a script that has ended.
fn answer(context: &mut Context<'_>, ended: Ended, reply: &[u8]) -> Handled {
    match ended {
        Ended::Stopped => Err(STOPPED),
        Ended::Failed { is_counted: false } => {
            let text = reply.strip_prefix(b"-").unwrap_or(reply);
            let text = text.strip_suffix(b"\r\n").unwrap_or(text);
            Err(Failure(Cow::Owned(text.to_vec())))
        }
        Ended::Failed { is_counted: true } => {
            let stats = context.store.stats.command(context.command.id);
            stats.failed.add(1);
            context.reply.encoded(reply);
            Ok(Next::Done)
        }
        Ended::Done => {
            context.reply.encoded(reply);
            Ok(Next::Done)
        }
    }
}
