//! A command goes to the server, unless it is one of this program's own, which have no meaning there.
//!
//! Those that only make sense at a prompt (`connect`, `clear`, `:set`, `exit`) are not here but in `interactive`.

use crate::failure::Result;
use crate::modes::peek::peek;
use crate::request::is;
use crate::session::{Repeat, Session, Show};

/// Runs a command, wherever it belongs.
pub(crate) fn dispatch(
    session: &mut Session,
    words: &[Vec<u8>],
    repeat: Repeat,
    show: &mut Show<'_>,
) -> Result {
    let Some(name) = words.first() else {
        return Ok(());
    };
    if is(name, "peek") {
        let mut text = Vec::new();
        peek(session, words, show.style, &mut text)?;
        return Ok(show.out.write_all(&text)?);
    }
    session.run(words, repeat, show)
}
