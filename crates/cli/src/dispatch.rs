//! A command goes to the server, unless it is one of this program's own, which have no meaning there.
//!
//! Those that only make sense at a prompt (`connect`, `clear`, `:set`, `exit`) are not here but in
//! `interactive`.

use crate::commands::{Catalog, help};
use crate::failure::Result;
use crate::modes::check::check;
use crate::modes::peek::peek;
use crate::request::is;
use crate::session::{Repeat, Session, Show};

/// Runs a command, wherever it belongs.
pub(crate) fn dispatch(
    session: &mut Session,
    catalog: &mut Catalog,
    words: &[Vec<u8>],
    repeat: Repeat,
    show: &mut Show<'_>,
) -> Result {
    let [name, rest @ ..] = words else {
        return Ok(());
    };
    if is(name, "help") || name == b"?" {
        // A server may know commands that Ferrite does not.
        if !catalog.is_complete && (session.is_connected() || session.connect_quietly().is_ok()) {
            learn(session, catalog);
        }
        let text = help(catalog, rest, show.has_colors);
        return Ok(show.out.write_all(text.as_bytes())?);
    }
    // `check` is its name of before.
    if is(name, "check-log") || is(name, "check") {
        return check(rest, show.out);
    }
    if is(name, "peek") {
        let mut text = Vec::new();
        peek(session, words, show.style, &mut text)?;
        return Ok(show.out.write_all(&text)?);
    }
    session.run(words, repeat, show)
}

/// Asks the server for its commands and settings. If it does not tell, what is known stays.
pub(crate) fn learn(session: &mut Session, catalog: &mut Catalog) {
    let requests = [
        vec![b"COMMAND".to_vec(), b"DOCS".to_vec()],
        vec![b"COMMAND".to_vec()],
        vec![b"CONFIG".to_vec(), b"GET".to_vec(), b"*".to_vec()],
    ];
    if let Ok(replies) = session.ask_all(&requests)
        && let [docs, info, settings] = &replies[..]
    {
        catalog.learn(docs, info);
        catalog.learn_settings(settings);
    }
}
