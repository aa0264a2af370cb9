//! `--latency-dist`: how the times of many PINGs are distributed, as a line of colors per interval.
//!
//! Every column is a range of time, named by the character in it; the warmer its color, the more of the
//! interval's samples fell there. Needs a terminal of 256 colors.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use sys::clock::monotonic_ns;

use super::countdown::Countdown;
use crate::failure::Result;
use crate::flags::Options;
use crate::limits::{LATENCY_PAUSE, LINES_PER_HEADING};
use crate::session::Session;

/// The most microseconds that count as a column, and its character.
const COLUMNS: [(u64, char); 30] = [
    (10, '.'),
    (125, '-'),
    (250, '*'),
    (500, '#'),
    (1_000, '1'),
    (2_000, '2'),
    (3_000, '3'),
    (4_000, '4'),
    (5_000, '5'),
    (6_000, '6'),
    (7_000, '7'),
    (8_000, '8'),
    (9_000, '9'),
    (10_000, 'A'),
    (20_000, 'B'),
    (30_000, 'C'),
    (40_000, 'D'),
    (50_000, 'E'),
    (100_000, 'F'),
    (200_000, 'G'),
    (300_000, 'H'),
    (400_000, 'I'),
    (500_000, 'J'),
    (1_000_000, 'K'),
    (2_000_000, 'L'),
    (4_000_000, 'M'),
    (8_000_000, 'N'),
    (16_000_000, 'O'),
    (30_000_000, 'P'),
    (u64::MAX, '?'),
];

/// From nothing to everything: numbers of the 256 colors, from black over blue, green and yellow to red.
const COLORS: [u8; 16] = [
    0, 17, 18, 19, 20, 26, 32, 37, 35, 40, 76, 112, 190, 220, 208, 196,
];
/// The same for who wants no colors: grays.
const GRAYS: [u8; 16] = [
    0, 232, 233, 234, 235, 236, 237, 238, 240, 242, 244, 246, 248, 250, 252, 255,
];

pub(super) fn run(session: &mut Session, options: &Options) -> Result {
    let mut out = io::stdout().lock();
    let palette = if options.has_colors { &COLORS } else { &GRAYS };
    let interval = options.interval_or(Duration::from_secs(1));
    let ping = [b"PING".to_vec()];
    let mut countdown = Countdown::new(options);
    for line in 0_u64.. {
        let mut counts = [0_u64; COLUMNS.len()];
        let start_ns = monotonic_ns();
        while Duration::from_nanos(monotonic_ns() - start_ns) < interval {
            let before_ns = monotonic_ns();
            session.ask_patiently(&ping)?;
            counts[column((monotonic_ns() - before_ns) / 1000)] += 1;
            sleep(LATENCY_PAUSE);
        }
        if line % LINES_PER_HEADING == 0 {
            out.write_all(legend(palette).as_bytes())?;
        }
        out.write_all(spectrum(&counts, palette).as_bytes())?;
        out.flush()?;
        if countdown.is_last() {
            break;
        }
    }
    Ok(())
}

/// The column of a time.
fn column(us: u64) -> usize {
    COLUMNS.partition_point(|&(most, _)| most < us)
}

fn legend(palette: &[u8]) -> String {
    let mut text = String::from(
        "---------------------------------------------\n\
         . - * #          .01 .125 .25 .5 milliseconds\n\
         1 2 3 ... 9      1 to 9          milliseconds\n\
         A B C D E        10 20 30 40 50  milliseconds\n\
         F G H I J        .1 .2 .3 .4 .5  seconds\n\
         K L M N O P ?    1 2 4 8 16 30   more seconds\n\
         none to all:     ",
    );
    for color in palette {
        let _ = write!(text, "\x1b[48;5;{color}m ");
    }
    text.push_str("\x1b[0m\n---------------------------------------------\n");
    text
}

fn spectrum(counts: &[u64], palette: &[u8]) -> String {
    let total = counts.iter().sum::<u64>().max(1);
    let mut text = String::from("\x1b[38;5;0m");
    for (count, (_, character)) in counts.iter().zip(COLUMNS) {
        // A single sample is not nothing.
        let shade = (count * (palette.len() as u64 - 1)).div_ceil(total);
        let _ = write!(text, "\x1b[48;5;{}m{character}", palette[shade as usize]);
    }
    text.push_str("\x1b[0m\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_belongs_to_the_first_column_that_holds_it() {
        for (us, character) in [
            (0, '.'),
            (10, '.'),
            (11, '-'),
            (1_000, '1'),
            (1_001, '2'),
            (30_000_000, 'P'),
            (u64::MAX, '?'),
        ] {
            assert_eq!(COLUMNS[column(us)].1, character, "{us}");
        }
    }

    #[test]
    fn shades_tell_the_share() {
        let mut counts = [0; COLUMNS.len()];
        assert!(!spectrum(&counts, &COLORS).contains("48;5;17m"));
        counts[1] = 1;
        counts[2] = 999;
        let text = spectrum(&counts, &COLORS);
        assert!(text.contains("\x1b[48;5;0m."), "{text:?}");
        assert!(text.contains("\x1b[48;5;17m-"), "{text:?}");
        assert!(text.contains("\x1b[48;5;196m*"), "{text:?}");
    }
}
