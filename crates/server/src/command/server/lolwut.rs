//! LOLWUT: a plane of ferrite cores, each a ring with wires through it, holding the bits of a message or of
//! the time.
//!
//! ```text
//!      |     |
//!   --(1)---(0)--
//!      |     |
//! ```

use super::{Args, Context, Handled, Next};
use crate::config::{REDIS_VERSION, VERSION};

/// Cores in a row and rows of a plane; a row holds a byte.
const BITS: u32 = 8;
const ROWS: usize = 8;

pub(super) fn lolwut(context: &mut Context<'_>, args: &Args<'_>) -> Handled {
    // Redis draws by version. There is one drawing here, but a version has to be a number there too.
    if args.len() > 2 && args.is(1, "version") {
        args.integer(2)?;
    }
    let word = sys::clock::realtime_us() as u64;
    let text = format!(
        "{}\nThe time in a plane of core memory: it would still be there after the power went.\n\
         Ferrite {VERSION}, Redis ver. {REDIS_VERSION}\n",
        draw(word)
    );
    context.reply.verbatim("txt", text.as_bytes());
    Ok(Next::Done)
}

/// Draws a word in a plane, the highest byte on top; a core that holds a one is filled.
fn draw(word: u64) -> String {
    let wires = format!("{}\n", "     |".repeat(BITS as usize));
    let mut plane = wires.clone();
    for byte in word.to_be_bytes().into_iter().take(ROWS) {
        let core = |bit: u32| {
            if byte >> bit & 1 == 1 {
                "---(@)"
            } else {
                "---( )"
            }
        };
        plane.extend((0..BITS).rev().map(core));
        plane.push_str("---\n");
        plane.push_str(&wires);
    }
    plane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plane_holds_its_word() {
        let word = 0x0123_4567_89ab_cdef;
        let plane = draw(word);
        let bits = plane.split('(').skip(1).map(|core| core.starts_with('@'));
        let held = bits.fold(0u64, |held, bit| held << 1 | u64::from(bit));
        assert_eq!(held, word);
        assert!(plane.lines().all(|line| line.len() <= 80));
    }
}
