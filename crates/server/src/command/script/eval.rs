//! EVAL, EVALSHA and their read-only forms: from the request to the script, and from its result to the reply.

use std::borrow::Cow;
use std::sync::Arc;

use lua::{Arguments, Call, Ended, KNOWN_KEYS};

use super::host::{Cause, Rules, Run, RunPlace, ScriptCall};
use crate::command::route::Home;
use crate::command::row::Control;
use crate::command::{Args, Context, Engine, Failure, Handled, Next, failure, flag, table};
use crate::limits::{FORESEEN_BYTES, SCRIPT_REPLY_MOST};
use crate::script::{KeyPlaces, Pace, Script, flags_of};
use crate::shared::memory::Room;

const NO_SCRIPT: Failure = Failure::of("NOSCRIPT No matching script. Please use EVAL.");
const WRITES_IN_RO: Failure =
    Failure::of("ERR Can not execute a script with write flag using *_ro command.");
const OOM_WITHOUT_FLAG: Failure = Failure::of(
    "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
);
const NOT_IN_CLUSTER: Failure =
    Failure::of("ERR Can not run script on cluster, 'no-cluster' flag is set.");
const TOO_LONG: Failure = Failure::of(
    "ERR Error running script: it took more than a second without a command after it had changed data",
);
const ENDING: Failure = Failure::of("ERR Error running script: the server shuts down");

/// Whether a command lets scripts write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EvalForm {
    Writes,
    Reads,
}

/// A request to run a script.
struct Evaluation {
    script: Arc<Script>,
    /// The number of its keys.
    keys: usize,
    form: EvalForm,
}

pub(super) fn eval(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_text(context, args, EvalForm::Writes)
}

pub(super) fn eval_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_text(context, args, EvalForm::Reads)
}

pub(super) fn evalsha(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_known(context, args, EvalForm::Writes)
}

pub(super) fn evalsha_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_known(context, args, EvalForm::Reads)
}

fn run_text(context: &mut Context<'_>, args: &Args<'_>, form: EvalForm) -> Handled {
    let keys = count_of_keys(args)?;
    let (text, hash) = (args.get(1), args.key(1).hash);
    let engine = context.extras.engine.as_ref();
    let known = engine.and_then(|engine| engine.find_text(context.server, hash, text));
    let script = match known {
        Some(script) => script,
        None => kept_or_new(context, text, hash)?,
    };
    let evaluation = Evaluation { script, keys, form };
    run(context, args, evaluation)
}

/// The script of a text that this worker can't find by its hash.
#[cold]
fn kept_or_new(context: &mut Context<'_>, text: &[u8], hash: u64) -> Result<Arc<Script>, Failure> {
    let (server, sha) = (context.server, Script::sha_of(text));
    let script = match server.scripts.get(&sha) {
        Some(script) => script,
        None => {
            let script = compiled(context, text)?;
            server.scripts.keep(Arc::clone(&script));
            script
        }
    };
    let engine = context.extras.engine.get_or_insert_default();
    engine.note_text(server, hash, &script);
    Ok(script)
}

fn run_known(context: &mut Context<'_>, args: &Args<'_>, form: EvalForm) -> Handled {
    let digits = args.get(1);
    if digits.len() != 40 {
        return Err(NO_SCRIPT);
    }
    let keys = count_of_keys(args)?;
    let sha = Script::parse_sha(digits).ok_or(NO_SCRIPT)?;
    let engine = context.extras.engine.as_ref();
    let known = engine.and_then(|engine| engine.find(context.server, &sha));
    let script = match known {
        Some(script) => script,
        None => context.server.scripts.get(&sha).ok_or(NO_SCRIPT)?,
    };
    let evaluation = Evaluation { script, keys, form };
    run(context, args, evaluation)
}

pub(super) fn fcall(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_function(context, args, EvalForm::Writes)
}

pub(super) fn fcall_ro(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    run_function(context, args, EvalForm::Reads)
}

fn run_function(context: &mut Context<'_>, args: &Args<'_>, form: EvalForm) -> Handled {
    let (name, hash) = (args.get(1), args.key(1).hash);
    let engine = context.extras.engine.as_ref();
    let known = engine.and_then(|engine| engine.find_function(context.server, hash, name));
    let script = match known {
        Some(script) => script,
        None => kept_function(context, name, hash)?,
    };
    let keys = match args.integer(2) {
        Ok(count) => checked_count(args, count)?,
        Err(_) => return Err(Failure::of("ERR Bad number of keys provided")),
    };
    let evaluation = Evaluation { script, keys, form };
    run(context, args, evaluation)
}

/// The function of a name that this worker can't find by its hash.
#[cold]
fn kept_function(
    context: &mut Context<'_>,
    name: &[u8],
    hash: u64,
) -> Result<Arc<Script>, Failure> {
    let server = context.server;
    let function = server.persistence.libraries.function(name);
    let script = function.ok_or(Failure::of("ERR Function not found"))?;
    script.prove(&key_places);
    let engine = context.extras.engine.get_or_insert_default();
    engine.note_function(server, hash, &script);
    Ok(script)
}

/// The number of keys that a request says.
fn count_of_keys(args: &Args<'_>) -> Result<usize, Failure> {
    checked_count(args, args.integer(2)?)
}

fn checked_count(args: &Args<'_>, count: i64) -> Result<usize, Failure> {
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
    let script = Arc::new(Script::new(Script::sha_of(text), text, flags, &key_places));
    let engine = context.extras.engine.get_or_insert_default();
    engine.function(context.server, &script)?;
    Ok(script)
}

/// Places of the keys of a command that a script calls by these words; `None` if other arguments decide about
/// them, or about the database.
fn key_places(name: &[u8], first: Option<&[u8]>) -> Option<KeyPlaces> {
    let command = table().find_with(name, first)?;
    let spec = command.spec;
    let is_plain = command.control == Control::None
        && command.subcommands.is_empty()
        && !spec.has(flag::NOSCRIPT)
        && !matches!(spec.name, "copy" | "move");
    if !is_plain || !command.has_plain_keys() || (spec.keys.is_empty() && !spec.has(flag::NO_DATA))
    {
        return None;
    }
    Some(KeyPlaces {
        first: usize::try_from(command.first_key).ok()?,
        last: command.last_key,
        step: usize::try_from(command.key_step.max(1)).ok()?,
    })
}

/// Bytes that large arguments take while a script passes them to a command, in a buffer that grows.
fn bytes_in_lua(args: &Args<'_>) -> usize {
    match args.size() {
        ..FORESEEN_BYTES => 0,
        bytes => 3 * bytes,
    }
}

/// Refuses a script that says of itself that it may not run now. Returns the rules of its commands.
fn rules(
    context: &Context<'_>,
    args: &Args<'_>,
    evaluation: &Evaluation,
    place: RunPlace,
) -> Result<Rules, Failure> {
    let Evaluation { script, form, .. } = evaluation;
    let form = *form;
    let (flags, server) = (script.flags, context.server);
    let need = bytes_in_lua(args);
    let is_short = server.memory.is_near_with(need)
        && match context.in_transaction {
            true => server.memory.is_exceeded(),
            false => context.make_room(need) == Room::No,
        };
    if flags.is_declared {
        if flags.no_cluster && server.cluster.is_some() {
            return Err(NOT_IN_CLUSTER);
        }
        if !flags.no_writes {
            if let Some(failure) = context.refusal_of_writes() {
                return Err(failure);
            }
            if form == EvalForm::Reads {
                return Err(WRITES_IN_RO);
            }
            if is_short && !flags.allow_oom {
                return Err(OOM_WITHOUT_FLAG);
            }
        }
    }
    Ok(Rules {
        place,
        may_write: form == EvalForm::Writes && !flags.no_writes,
        refuses_growth: is_short && !flags.allow_oom,
    })
}

/// Runs a script, here or, if it may be slow, on a thread of its own. It comes again when values that it
/// needs are in memory.
fn run(context: &mut Context<'_>, args: &Args<'_>, evaluation: Evaluation) -> Handled {
    if context.in_transaction {
        return run_once(context, args, evaluation);
    }
    if let Some(failure) = context.fetch.take_failure() {
        return Err(failure);
    }
    context.offload_keys(args, 3..3 + evaluation.keys);
    let done = run_once(context, args, evaluation);
    if !matches!(done, Ok(Next::Fetch | Next::Retry)) {
        context.fetch.done();
    }
    done
}

fn run_once(context: &mut Context<'_>, args: &Args<'_>, evaluation: Evaluation) -> Handled {
    evaluation.script.note_run(context.store.now);
    let place = match context.may_defer() {
        true if evaluation.script.names_its_keys() => RunPlace::Shards,
        true => RunPlace::Worker,
        false => RunPlace::Transaction,
    };
    if place != RunPlace::Transaction && evaluation.script.pace() == Pace::Slow {
        return Ok(defer(context, args, evaluation));
    }
    match run_at(context, args, &evaluation, place)? {
        Ran::Answered(next) => Ok(next),
        Ran::Slow => Ok(defer(context, args, evaluation)),
        Ran::Cold if context.has_room_for_wanted() => {
            context.store.stats.script_restarts.add(1);
            Ok(Next::Fetch)
        }
        Ran::Cold => {
            context.extras.wanted.clear();
            Ok(Next::Retry)
        }
    }
}

fn defer(context: &mut Context<'_>, args: &Args<'_>, evaluation: Evaluation) -> Next {
    context.defer_errand(
        args,
        Box::new(move |context: &mut Context<'_>, args: &Args<'_>| {
            match run_at(context, args, &evaluation, RunPlace::Apart)? {
                Ran::Answered(next) => Ok(next),
                Ran::Slow | Ran::Cold => unreachable!("a script on a thread of its own goes on"),
            }
        }),
    )
}

/// The outcome of a run.
enum Ran {
    Answered(Next),
    /// It has had no effect, and begins again on a thread of its own.
    Slow,
    /// It has had no effect, and begins again when the values in
    /// [`Extras::wanted`](crate::command::Extras::wanted) are in memory.
    Cold,
}

/// Runs a script while nobody else uses its data.
fn run_at(
    context: &mut Context<'_>,
    args: &Args<'_>,
    evaluation: &Evaluation,
    place: RunPlace,
) -> Result<Ran, Failure> {
    let rules = rules(context, args, evaluation, place)?;
    let mut engine = context.extras.engine.take().unwrap_or_default();
    let mut reply = engine.take_buffer();
    let done = run_in(context, &mut engine, args, evaluation, rules, &mut reply);
    engine.rest(reply);
    context.extras.engine = Some(engine);
    done
}

fn run_in(
    context: &mut Context<'_>,
    engine: &mut Engine,
    args: &Args<'_>,
    evaluation: &Evaluation,
    rules: Rules,
    reply: &mut Vec<u8>,
) -> Result<Ran, Failure> {
    let (script, keys) = (&evaluation.script, evaluation.keys);
    let (state, function) = engine.function(context.server, script)?;
    let (outer, server) = (context.command, context.server);
    let (db, protocol) = (context.session.db, context.session.protocol);
    let room = server.room_now();
    let memory_most = server.lua_run_limit();
    if bytes_in_lua(args) > memory_most {
        return Err(failure::OUT_OF_MEMORY);
    }
    let hashes = first_hashes(args, keys);
    // EXEC has done so already.
    let is_alone = !context.in_transaction;
    if is_alone {
        shut_out_from(context, rules.place, args, keys, &hashes);
    }
    context.extras.in_script = true;
    let holds = rules.place == RunPlace::Shards;
    if !holds {
        server.running.begin(script.library.is_some());
    }
    let first = (keys > 0).then(|| args.get(3));
    let may_leave = !script.flags.is_declared || script.flags.cross_slot;
    let home = Home::of(first, may_leave);
    let mut host = Run::new(context, rules, home, hashes, ScriptCall { script, args });
    if rules.place == RunPlace::Apart {
        host.show();
    }
    let call = Call {
        name: &script.name,
        keys: Arguments::new(args.input, &args.spans[3..3 + keys]),
        argv: Arguments::new(args.input, &args.spans[3 + keys..]),
        protocol,
        // The reply is copied once, into a buffer that doubles.
        reply_most: SCRIPT_REPLY_MOST.min(room / 4),
        memory_most,
    };
    let ended = state.run(&mut host, function, call, reply);
    let finished = host.finish();
    let stopped_at = state.stopped_at();
    if !holds {
        server.running.end();
    }
    context.extras.in_script = false;
    context.command = outer;
    // A script's SELECT ends with it.
    context.session.select(db);
    context.refresh();
    if is_alone {
        let_in(context, rules.place);
    }
    if finished.cause == Some(Cause::Cold) {
        return Ok(Ran::Cold);
    }
    script.note_pace(finished.ns);
    if finished.cause == Some(Cause::Slow) {
        return Ok(Ran::Slow);
    }
    if finished.has_failed && ended == Ended::Done {
        note_failure(context);
    }
    let done = match (ended, finished.cause) {
        (Ended::Stopped, Some(Cause::Killed)) => Err(killed(script, stopped_at)),
        (Ended::Stopped, Some(Cause::TooLong)) => Err(TOO_LONG),
        _ => answer(context, ended, reply),
    };
    if is_alone {
        context.tell_held();
    }
    context.show_script(args, finished.lines);
    done.map(Ran::Answered)
}

/// Hashes of the first keys.
fn first_hashes(args: &Args<'_>, keys: usize) -> [u64; KNOWN_KEYS] {
    let mut hashes = [0; KNOWN_KEYS];
    for (at, hash) in (3..3 + keys).zip(&mut hashes) {
        *hash = args.key(at).hash;
    }
    hashes
}

/// [`shut_out`] for the first keys of a request, of which so many have these hashes.
fn shut_out_from(
    context: &mut Context<'_>,
    place: RunPlace,
    args: &Args<'_>,
    keys: usize,
    hashes: &[u64; KNOWN_KEYS],
) {
    let others = (3 + KNOWN_KEYS..3 + keys).map(|at| args.key(at).hash);
    let known = hashes.iter().copied().take(keys);
    shut_out(context, place, known.chain(others));
}

/// Keeps others from all data, or from that of keys with these hashes, and begins a batch of the log.
fn shut_out(context: &mut Context<'_>, place: RunPlace, keys: impl Iterator<Item = u64>) {
    context.store.release();
    match place {
        // A build that is wrong on purpose (tests/linearizability/run broken).
        RunPlace::Shards | RunPlace::Apart if cfg!(break_scripts) => {}
        RunPlace::Shards => {
            let db = context.store.db;
            keys.for_each(|hash| context.store.want(db, hash));
            context.store.hold();
        }
        RunPlace::Apart => {
            context.store.begin_alone_last();
            // Another script may have lasted meanwhile.
            context.store.now = sys::clock::realtime_ms();
        }
        RunPlace::Worker | RunPlace::Transaction => context.store.begin_alone(),
    }
    context.store.begin_batch();
    context.in_transaction = true;
    context.extras.foreseen.set(0);
}

/// Ends the batch, and lets others in.
fn let_in(context: &mut Context<'_>, place: RunPlace) {
    context.in_transaction = false;
    context.store.end_batch();
    match place {
        RunPlace::Shards => context.store.release(),
        RunPlace::Worker | RunPlace::Transaction | RunPlace::Apart => context.store.end_alone(),
    }
}

fn killed(script: &Script, line: i32) -> Failure {
    let source = match script.library {
        None => "user_script",
        Some(_) => "user_function",
    };
    Failure::new(format!(
        "ERR Script killed by user with SCRIPT KILL... script: {}, on @{source}:{line}.",
        script.name
    ))
}

fn note_failure(context: &Context<'_>) {
    let stats = context.store.stats.command(context.command.id);
    stats.failed.add(1);
}

/// Writes the reply of a script that has ended.
fn answer(context: &mut Context<'_>, ended: Ended, reply: &[u8]) -> Handled {
    match ended {
        Ended::Stopped => Err(ENDING),
        Ended::Failed { is_counted: false } => {
            let text = reply.strip_prefix(b"-").unwrap_or(reply);
            let text = text.strip_suffix(b"\r\n").unwrap_or(text);
            Err(Failure(Cow::Owned(text.to_vec())))
        }
        Ended::Failed { is_counted: true } => {
            note_failure(context);
            context.reply.encoded(reply);
            Ok(Next::Done)
        }
        Ended::Done => {
            context.reply.encoded(reply);
            Ok(Next::Done)
        }
    }
}
