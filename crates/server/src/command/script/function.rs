//! The subcommands of FUNCTION.

use std::sync::Arc;
use std::time::Duration;

use rdb::{LibrariesProblem, Payload};

use super::manage::kill_running;
use crate::command::{self, Args, Context, Failure, Handled, Next};
use crate::config::Setting;
use crate::limits::{LIBRARIES_TEXT_MOST, LIBRARY_LOAD_MOST, LIBRARY_QUICK};
use crate::names::glob;
use crate::script::{Existing, Library, TIMEOUT, Unlearned};

const LOAD_TEXT: &str = "failed loading the given functions payload";

/// Texts of libraries that are to be there.
#[derive(Clone)]
struct Wish {
    texts: Vec<Arc<[u8]>>,
    existing: Existing,
    /// The reply is the name of the library.
    names_it: bool,
}

/// FUNCTION LOAD [REPLACE] code
pub(super) fn load(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let last = args.len() - 1;
    let mut existing = Existing::Refused;
    for at in 2..last {
        if !args.is(at, "replace") {
            return Err(Failure::about(
                "ERR Unknown option given: ",
                args.get(at),
                "",
            ));
        }
        existing = Existing::Replaced;
    }
    foresee(context, args, args.get(last).len())?;
    let wish = Wish {
        texts: vec![args.get(last).into()],
        existing,
        names_it: true,
    };
    fulfil(context, args, wish)
}

/// FUNCTION RESTORE payload [FLUSH | APPEND | REPLACE]
pub(super) fn restore(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() > 4 {
        return Err(Failure::wrong_subcommand("FUNCTION", args.get(1)));
    }
    let existing = match args.optional(3) {
        None => Existing::Refused,
        Some(_) if args.is(3, "append") => Existing::Refused,
        Some(_) if args.is(3, "replace") => Existing::Replaced,
        Some(_) if args.is(3, "flush") => Existing::Removed,
        Some(_) => {
            return Err(Failure::of(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let payload = Payload::check(args.get(2)).ok_or(Failure::of(
        "ERR DUMP payload version or checksum are wrong",
    ))?;
    let len = payload.libraries_len().min(LIBRARIES_TEXT_MOST as u64);
    foresee(context, args, len as usize)?;
    let texts = payload.libraries(LIBRARIES_TEXT_MOST);
    let texts = texts.map_err(|problem| match problem {
        LibrariesProblem::Other => Failure::of("ERR given type is not a function"),
        LibrariesProblem::Old => Failure::of("ERR Pre-GA function format not supported"),
        LibrariesProblem::Damaged => Failure::new(format!("ERR {LOAD_TEXT}")),
        LibrariesProblem::TooLong => Failure::new(format!(
            "ERR {LOAD_TEXT}: the texts have more than {LIBRARIES_TEXT_MOST} bytes"
        )),
    })?;
    let wish = Wish {
        texts: texts.into_iter().map(Arc::from).collect(),
        existing,
        names_it: false,
    };
    fulfil(context, args, wish)
}

/// Makes room for texts of so many bytes, for their records, which are gathered before they go into the log,
/// and for the request, which is kept while its texts run on a thread of its own.
fn foresee(context: &Context<'_>, args: &Args<'_>, bytes: usize) -> Result<(), Failure> {
    context.foresee_bytes(2 * (bytes + args.size()))
}

/// Runs the texts, here or, if they are slow, on a thread of its own, and keeps the libraries.
fn fulfil(context: &mut Context<'_>, args: &Args<'_>, wish: Wish) -> Handled {
    let most = match context.may_defer() {
        true => LIBRARY_QUICK,
        false => LIBRARY_LOAD_MOST,
    };
    match learned(context, &wish, most) {
        Ok(libraries) => keep(context, &wish, libraries),
        Err(Unlearned::Refused(failure)) => Err(failure),
        Err(Unlearned::Slow) if !context.may_defer() => Err(TIMEOUT),
        Err(Unlearned::Slow) => Ok(context.defer_errand(
            args,
            Box::new(move |context: &mut Context<'_>, _: &Args<'_>| {
                match learned(context, &wish, LIBRARY_LOAD_MOST) {
                    Ok(libraries) => keep(context, &wish, libraries),
                    Err(Unlearned::Refused(failure)) => Err(failure),
                    Err(Unlearned::Slow) => Err(TIMEOUT),
                }
            }),
        )),
    }
}

fn learned(
    context: &Context<'_>,
    wish: &Wish,
    most: Duration,
) -> Result<Vec<Arc<Library>>, Unlearned> {
    let server = context.server;
    let is_ending = || server.is_ending() || server.is_shutting_down();
    let texts = wish.texts.iter();
    texts
        .map(|text| Library::learn(text, server.load_bounds(most), &is_ending))
        .collect()
}

fn keep(context: &mut Context<'_>, wish: &Wish, libraries: Vec<Arc<Library>>) -> Handled {
    let name = libraries.first().map(|library| library.name.clone());
    let bytes = libraries.iter().map(|library| library.text.len()).sum();
    let existing = wish.existing;
    context
        .store
        .change_libraries(bytes, |all, hears| all.add(libraries, existing, hears))?;
    match name.filter(|_| wish.names_it) {
        Some(name) => context.reply.bulk(name.as_bytes()),
        None => context.reply.ok(),
    }
    Ok(Next::Done)
}

pub(super) fn delete(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let name = args.get(2);
    context
        .store
        .change_libraries(0, |all, hears| match all.remove(name, hears) {
            true => Ok(()),
            false => Err(Failure::of("ERR Library not found")),
        })?;
    context.reply.ok();
    Ok(Next::Done)
}

pub(super) fn flush(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    if args.len() > 3 {
        return Err(Failure::wrong_subcommand("FUNCTION", args.get(1)));
    }
    if args.len() == 3 && !args.is(2, "sync") && !args.is(2, "async") {
        return Err(Failure::of(
            "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
        ));
    }
    context.store.change_libraries(0, |all, hears| {
        all.clear(hears);
        Ok(())
    })?;
    context.reply.ok();
    Ok(Next::Done)
}

/// FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]
pub(super) fn list(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    let (mut pattern, mut with_code) = (None, false);
    let mut at = 2;
    while at < args.len() {
        if !with_code && args.is(at, "withcode") {
            with_code = true;
        } else if pattern.is_none() && args.is(at, "libraryname") {
            at += 1;
            pattern = Some(
                args.optional(at)
                    .ok_or(Failure::of("ERR library name argument was not given"))?,
            );
        } else {
            return Err(Failure::about("ERR Unknown argument ", args.get(at), ""));
        }
        at += 1;
    }
    let mut libraries = context.server.persistence.libraries.all();
    if let Some(pattern) = pattern {
        libraries.retain(|library| {
            glob::matches(pattern, library.name.as_bytes(), glob::Case::Insensitive)
        });
    }
    if with_code {
        let bytes = libraries.iter().map(|library| library.text.len()).sum();
        context.check_reply(bytes)?;
    }
    context.reply.array(libraries.len());
    for library in libraries {
        context.reply.map(if with_code { 4 } else { 3 });
        context.reply.bulk(b"library_name");
        context.reply.bulk(library.name.as_bytes());
        context.reply.bulk(b"engine");
        context.reply.bulk(b"LUA");
        context.reply.bulk(b"functions");
        list_functions(context, &library);
        if with_code {
            context.reply.bulk(b"library_code");
            context.reply.bulk(&library.text);
        }
    }
    Ok(Next::Done)
}

fn list_functions(context: &mut Context<'_>, library: &Library) {
    let reply = &mut context.reply;
    reply.array(library.functions.len());
    for function in &library.functions {
        reply.map(3);
        reply.bulk(b"name");
        reply.bulk(function.name.as_bytes());
        reply.bulk(b"description");
        match &function.description {
            Some(description) => reply.bulk(description),
            None => reply.null(),
        }
        reply.bulk(b"flags");
        reply.set(function.flag_names().count());
        for flag in function.flag_names() {
            reply.simple(&String::from_utf8_lossy(flag));
        }
    }
}

pub(super) fn dump(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let libraries = context.server.persistence.libraries.all();
    let bytes = libraries.iter().map(|library| library.text.len()).sum();
    context.check_reply(bytes)?;
    let texts = libraries.iter().map(|library| &*library.text);
    let compresses = context.server.settings.flag(Setting::RdbCompression);
    let payload = rdb::dump_libraries(texts, compresses);
    context.reply.bulk(&payload);
    Ok(Next::Done)
}

pub(super) fn stats(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    let running = &context.server.running;
    let sizes = context.server.persistence.libraries.sizes();
    let (function, ms) = (running.function(), running.ms());
    let reply = &mut context.reply;
    reply.map(2);
    reply.bulk(b"running_script");
    match function {
        None => reply.null(),
        Some(function) => {
            reply.map(3);
            reply.bulk(b"name");
            reply.bulk(function.name.as_bytes());
            reply.bulk(b"command");
            reply.array(function.words.len());
            function.words.iter().for_each(|word| reply.bulk(word));
            reply.bulk(b"duration_ms");
            reply.integer(ms);
        }
    }
    reply.bulk(b"engines");
    reply.map(1);
    reply.bulk(b"LUA");
    reply.map(2);
    reply.bulk(b"libraries_count");
    reply.integer(sizes.libraries as i64);
    reply.bulk(b"functions_count");
    reply.integer(sizes.functions as i64);
    Ok(Next::Done)
}

pub(super) fn kill(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    kill_running(context, true)
}

pub(super) fn help(context: &mut Context<'_>, _: &Args<'_>) -> Handled {
    command::help(
        context,
        "FUNCTION",
        &[
            "DELETE <library>",
            "    Remove a library and its functions.",
            "DUMP",
            "    Return all libraries as one payload, for FUNCTION RESTORE.",
            "FLUSH [ASYNC|SYNC]",
            "    Remove all libraries.",
            "KILL",
            "    End the function that runs.",
            "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
            "    Libraries and their functions; their code, too, with WITHCODE.",
            "LOAD [REPLACE] <code>",
            "    Add a library; with REPLACE in place of one of the same name.",
            "RESTORE <payload> [FLUSH|APPEND|REPLACE]",
            "    Add the libraries of a payload, all or none. FLUSH removes all others, REPLACE",
            "    takes the place of those of the same name, APPEND (the default) refuses them.",
            "STATS",
            "    The function that runs and how long, and numbers of libraries and functions.",
        ],
    );
    Ok(Next::Done)
}
