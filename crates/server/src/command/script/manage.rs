//! The subcommands of SCRIPT.

use std::sync::Arc;

use super::eval::{compiled, kept};
use crate::command::{self, Args, Context, Failure, Handled, Next};
use crate::request::failure;
use crate::script::Script;
use crate::shared::Unkilled;

pub(super) fn load(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let script = compiled(context, args.get(2))?;
    context.server.scripts.load(Arc::clone(&script));
    context.reply.bulk(script.name.as_bytes());
    Ok(Next::Done)
}

pub(super) fn exists(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let scripts = &context.server.scripts;
    context.reply.array(args.len() - 2);
    for digits in args.from(2) {
        let script = Script::parse_sha(digits).and_then(|sha| scripts.get(&sha));
        context.reply.integer(script.is_some().into());
    }
    Ok(Next::Done)
}

pub(super) fn flush(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let is_known =
        args.len() == 2 || (args.len() == 3 && (args.is(2, "sync") || args.is(2, "async")));
    if !is_known {
        return Err(Failure::of(
            "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
        ));
    }
    context.server.scripts.flush();
    context.reply.ok();
    Ok(Next::Done)
}

pub(super) fn kill(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    kill_running(context, false)
}

/// Ends the script that runs, or the function.
pub(super) fn kill_running(context: &mut Context<'_>, is_function: bool) -> Handled {
    match context.server.running.kill(is_function) {
        Ok(()) => context.reply.ok(),
        Err(Unkilled::Other) => return Err(failure::busy(!is_function)),
        Err(Unkilled::None) => {
            return Err(Failure::of("NOTBUSY No scripts in execution right now."));
        }
        Err(Unkilled::HasWritten) => {
            return Err(Failure::of(
                "UNKILLABLE Sorry the script already executed write commands against the dataset. You can \
                 either wait the script termination or kill the server in a hard way using the SHUTDOWN \
                 NOSAVE command.",
            ));
        }
    }
    Ok(Next::Done)
}

pub(super) fn show(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let script = kept(context, args.get(2))?;
    context.check_reply(script.text.len())?;
    context.reply.bulk(&script.text);
    Ok(Next::Done)
}

pub(super) fn debug(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.is(2, "no") {
        context.reply.ok();
        return Ok(Next::Done);
    }
    match args.is(2, "yes") || args.is(2, "sync") {
        true => Err(Failure::of("ERR there is no debugger of scripts here")),
        false => Err(Failure::of("ERR Use SCRIPT DEBUG YES/SYNC/NO")),
    }
}

pub(super) fn help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    command::help(
        context,
        "SCRIPT",
        &[
            "DEBUG (YES|SYNC|NO)",
            "    NO is accepted: there is no debugger of scripts.",
            "EXISTS <sha1> [<sha1> ...]",
            "    Which of these scripts the server knows: 1 or 0 for each.",
            "FLUSH [ASYNC|SYNC]",
            "    Forget all scripts.",
            "KILL",
            "    End the script that runs.",
            "LOAD <script>",
            "    Keep a script without running it; returns its SHA-1.",
            "SHOW <sha1>",
            "    The text of a script that the server knows.",
        ],
    );
    Ok(Next::Done)
}
