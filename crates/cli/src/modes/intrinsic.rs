//! `--intrinsic-latency`: how long the machine keeps a program from running at most. No server has a part in
//! it: no server can answer sooner than that.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Duration;

use sys::clock::monotonic_ns;
use sys::signal::Interrupts;

use crate::failure::{Failure, Result};

pub(super) fn run(limit: Duration) -> Result {
    let interrupts = Interrupts::catch().map_err(|error| Failure::Other(error.to_string()))?;
    let mut out = io::stdout().lock();
    let start_ns = monotonic_ns();
    let end_ns = start_ns + u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX / 2);
    let (mut most_us, mut runs) = (0, 0_u64);
    let mut before_ns = start_ns;
    loop {
        compute();
        let after_ns = monotonic_ns();
        runs += 1;
        let us = (after_ns - before_ns) / 1000;
        if us > most_us {
            most_us = us;
            writeln!(out, "Max latency so far: {most_us} microseconds.")?;
        }
        if after_ns >= end_ns || interrupts.take() {
            let average_us = (after_ns - start_ns) as f64 / 1000.0 / runs as f64;
            writeln!(
                out,
                "\n{runs} total runs (avg latency: {average_us:.4} microseconds / {:.2} nanoseconds per \
                 run).\n\
                 Worst run took {:.0}x longer than the average latency.",
                average_us * 1000.0,
                most_us as f64 / average_us,
            )?;
            return Ok(());
        }
        // What printing took is nobody's latency.
        before_ns = monotonic_ns();
    }
}

/// A few microseconds of work without any call of the system.
fn compute() {
    let mut state = black_box(0x9e37_79b9_u32);
    for _ in 0..1000 {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    black_box(state);
}
