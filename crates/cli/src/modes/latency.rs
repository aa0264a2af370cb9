//! `--latency` and `--latency-history`: how long a PING takes from here, in milliseconds.
//!
//! At a terminal the line is written over and over. Elsewhere there is one line for the interval, and the
//! program ends; the history has a line for every interval.

use std::io::{self, Write};
use std::thread::sleep;
use std::time::Duration;

use sys::clock::monotonic_ns;

use super::countdown::Countdown;
use crate::failure::Result;
use crate::flags::Options;
use crate::format::Format;
use crate::limits::LATENCY_PAUSE;
use crate::session::Session;

/// What was measured since the last line.
#[derive(Default)]
struct Samples {
    least_us: u64,
    most_us: u64,
    sum_us: u64,
    count: u64,
}

impl Samples {
    fn add(&mut self, us: u64) {
        self.least_us = if self.count == 0 {
            us
        } else {
            self.least_us.min(us)
        };
        self.most_us = self.most_us.max(us);
        self.sum_us += us;
        self.count += 1;
    }

    fn text(&self, format: Format) -> String {
        let (least, most) = (self.least_us / 1000, self.most_us / 1000);
        let average = self.sum_us as f64 / 1000.0 / self.count.max(1) as f64;
        let count = self.count;
        match format {
            Format::Standard => {
                format!("min: {least}, max: {most}, avg: {average:.2} ({count} samples)")
            }
            Format::Raw => format!("{least} {most} {average:.2} {count}\n"),
            Format::Csv => format!("{least},{most},{average:.2},{count}\n"),
            Format::Json | Format::QuotedJson => format!(
                "{{\"min\": {least}, \"max\": {most}, \"avg\": {average:.2}, \"count\": {count}}}\n"
            ),
        }
    }
}

pub(super) fn run(session: &mut Session, options: &Options, is_history: bool) -> Result {
    let mut out = io::stdout().lock();
    let format = options.style(io::IsTerminal::is_terminal(&out)).format;
    let usual = if is_history { 15 } else { 1 };
    let interval = options.interval_or(Duration::from_secs(usual));
    let ping = [b"PING".to_vec()];
    let mut countdown = Countdown::new(options);
    let mut samples = Samples::default();
    let mut start_ns = monotonic_ns();
    loop {
        let before_ns = monotonic_ns();
        session.ask_patiently(&ping)?;
        samples.add((monotonic_ns() - before_ns) / 1000);
        let passed = Duration::from_nanos(monotonic_ns() - start_ns);
        if format == Format::Standard {
            write!(out, "\x1b[0G\x1b[2K{}", samples.text(format))?;
            out.flush()?;
        }
        if passed > interval {
            match (is_history, format) {
                (true, Format::Standard) => {
                    writeln!(out, " -- {:.2} seconds range", passed.as_secs_f64())?;
                }
                (false, Format::Standard) => {}
                (true, _) => out.write_all(samples.text(format).as_bytes())?,
                (false, _) => return Ok(out.write_all(samples.text(format).as_bytes())?),
            }
            out.flush()?;
            if countdown.is_last() {
                if !is_history {
                    writeln!(out)?;
                }
                return Ok(());
            }
            start_ns = monotonic_ns();
            if is_history {
                samples = Samples::default();
            }
        }
        sleep(LATENCY_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_extremes_and_the_average() {
        let mut samples = Samples::default();
        for us in [2500, 900, 1100] {
            samples.add(us);
        }
        let text = |format| samples.text(format);
        assert_eq!(
            text(Format::Standard),
            "min: 0, max: 2, avg: 1.50 (3 samples)"
        );
        assert_eq!(text(Format::Raw), "0 2 1.50 3\n");
        assert_eq!(text(Format::Csv), "0,2,1.50,3\n");
        assert_eq!(
            text(Format::Json),
            "{\"min\": 0, \"max\": 2, \"avg\": 1.50, \"count\": 3}\n"
        );
    }
}
