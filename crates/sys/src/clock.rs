//! Time: the calendar's, the machine's, and the processor's own counter for measuring what is too
//! short for either.
//!
//! Which one to use: *realtime* for what a client sees or a disk keeps (expiry, LASTSAVE), because
//! it survives a restart, though it can jump; *monotonic* for deadlines and intervals; *ticks*
//! around a single command, because reading them costs a few nanoseconds and no call. Nothing here
//! sleeps, except the calibration of the ticks.

use std::sync::OnceLock;
use std::time::Duration;

/// Milliseconds since 1970-01-01 00:00 UTC. Can jump, in both directions, when the machine's time
/// is set.
#[must_use]
#[inline]
pub fn realtime_ms() -> i64 {
    let now = read(libc::CLOCK_REALTIME);
    now.tv_sec * 1_000 + now.tv_nsec / 1_000_000
}

/// Microseconds since 1970-01-01 00:00 UTC. Can jump, in both directions, when the machine's time
/// is set.
#[must_use]
pub fn realtime_us() -> i64 {
    let now = read(libc::CLOCK_REALTIME);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// Nanoseconds since some moment in the past, usually the boot. Never goes back, on any thread.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = read(libc::CLOCK_MONOTONIC);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Reads a clock. The clocks named above exist on every supported kernel, so a failure is not an
/// error to handle.
#[inline]
fn read(clock: libc::clockid_t) -> libc::timespec {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a timespec that the call may write.
    let result = unsafe { libc::clock_gettime(clock, &mut now) };
    assert_eq!(result, 0, "the kernel has no clock {clock}");
    now
}

/// The processor's time counter: cheap to read, in a unit of its own ([`ticks_per_us`],
/// [`ticks_to_ns`]).
///
/// Only differences mean anything. Two cores of one machine may be a few ticks apart, so a
/// difference taken across threads can come out slightly negative: use `saturating_sub`.
#[must_use]
#[inline]
pub fn ticks() -> u64 {
    if counter::is_usable() {
        counter::read()
    } else {
        monotonic_ns()
    }
}

/// How many [`ticks`] pass in a microsecond.
///
/// The first use of this or of [`ticks_to_ns`] measures it and takes about 3 ms, so a server asks
/// once at its start.
#[must_use]
pub fn ticks_per_us() -> f64 {
    scale().ticks_per_us
}

/// Converts a difference of two [`ticks`] to nanoseconds; saturates at `u64::MAX`.
#[must_use]
#[inline]
pub fn ticks_to_ns(ticks: u64) -> u64 {
    scale().to_ns(ticks)
}

/// The ratio of ticks to nanoseconds, in the two forms that are asked for.
#[derive(Clone, Copy, Debug)]
struct Scale {
    ticks_per_us: f64,
    /// Nanoseconds per tick as a fixed-point number with 32 bits after the point: one
    /// multiplication per conversion.
    ns_per_tick: u64,
}

impl Scale {
    fn new(ticks_per_us: f64) -> Scale {
        let ns_per_tick = (1_000.0 / ticks_per_us * (1_u64 << 32) as f64).round() as u64;
        Scale {
            ticks_per_us,
            ns_per_tick,
        }
    }

    #[inline]
    fn to_ns(self, ticks: u64) -> u64 {
        let ns = (u128::from(ticks) * u128::from(self.ns_per_tick)) >> 32;
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

fn scale() -> Scale {
    static SCALE: OnceLock<Scale> = OnceLock::new();
    *SCALE.get_or_init(|| {
        if !counter::is_usable() {
            // The ticks are the monotonic clock's nanoseconds.
            return Scale::new(1_000.0);
        }
        Scale::new(counter::frequency_hz().map_or_else(measure, |hz| hz as f64 / 1e6))
    })
}

/// Measures the counter against the monotonic clock, in ticks per microsecond. Both clocks see
/// whatever delays this thread between the samples, so the length of the pause is of no importance,
/// only that it is long against the uncertainty of a sample (tens of nanoseconds).
fn measure() -> f64 {
    const PAUSE: Duration = Duration::from_millis(2);
    let (first_ticks, first_ns) = sample();
    std::thread::sleep(PAUSE);
    let (last_ticks, last_ns) = sample();
    let ticks = last_ticks.saturating_sub(first_ticks).max(1);
    let ns = last_ns.saturating_sub(first_ns).max(1);
    ticks as f64 * 1_000.0 / ns as f64
}

/// Both clocks at the same moment: of a few tries the one in which the least time passed between
/// the two readings of the counter that enclose the reading of the clock.
fn sample() -> (u64, u64) {
    const TRIES: usize = 16;
    let mut best = (u64::MAX, 0, 0);
    for _ in 0..TRIES {
        let before = counter::read();
        let ns = monotonic_ns();
        let width = counter::read().saturating_sub(before);
        if width < best.0 {
            best = (width, before + width / 2, ns);
        }
    }
    (best.1, best.2)
}

/// The time stamp counter. It counts time, rather than cycles, only if the processor says that it
/// is invariant; a hypervisor hides that bit when it cannot promise it.
#[cfg(target_arch = "x86_64")]
mod counter {
    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const USABLE: u8 = 1;
    const UNUSABLE: u8 = 2;
    static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

    #[inline]
    pub(super) fn is_usable() -> bool {
        // Relaxed is enough: every thread that finds it unknown computes the same answer.
        match STATE.load(Ordering::Relaxed) {
            UNKNOWN => detect(),
            state => state == USABLE,
        }
    }

    #[cold]
    fn detect() -> bool {
        let invariant = is_invariant();
        STATE.store(if invariant { USABLE } else { UNUSABLE }, Ordering::Relaxed);
        invariant
    }

    #[allow(
        unused_unsafe,
        reason = "newer compilers know that CPUID is safe, 1.90 does not"
    )]
    fn is_invariant() -> bool {
        use std::arch::x86_64::__cpuid;
        const HIGHEST_EXTENDED: u32 = 0x8000_0000;
        const POWER_MANAGEMENT: u32 = 0x8000_0007;
        const INVARIANT_TSC: u32 = 1 << 8;
        // SAFETY: every x86-64 processor has the CPUID instruction, and the leaf is read only if it
        // exists.
        unsafe {
            __cpuid(HIGHEST_EXTENDED).eax >= POWER_MANAGEMENT
                && __cpuid(POWER_MANAGEMENT).edx & INVARIANT_TSC != 0
        }
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: RDTSC exists on every x86-64 processor and touches no memory.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    /// Not every processor tells, so it is always measured.
    pub(super) fn frequency_hz() -> Option<u64> {
        None
    }
}

/// The generic timer's virtual counter, which the architecture defines as constant and readable
/// from programs.
#[cfg(target_arch = "aarch64")]
mod counter {
    pub(super) fn is_usable() -> bool {
        true
    }

    #[inline]
    pub(super) fn read() -> u64 {
        let value: u64;
        // SAFETY: the register is readable at EL0 on Linux, macOS and FreeBSD, and reading it has
        // no effect.
        unsafe {
            std::arch::asm!(
                "mrs {}, cntvct_el0",
                out(reg) value,
                options(nomem, nostack, preserves_flags),
            );
        }
        value
    }

    /// The frequency that the firmware set; some firmware forgets to.
    pub(super) fn frequency_hz() -> Option<u64> {
        let value: u64;
        // SAFETY: the register is readable at EL0 on Linux, macOS and FreeBSD, and reading it has
        // no effect.
        unsafe {
            std::arch::asm!(
                "mrs {}, cntfrq_el0",
                out(reg) value,
                options(nomem, nostack, preserves_flags),
            );
        }
        (value != 0).then_some(value)
    }
}

/// Other processors: the monotonic clock does it.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod counter {
    pub(super) fn is_usable() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        super::monotonic_ns()
    }

    pub(super) fn frequency_hz() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    fn system_us() -> i64 {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("it is after 1970");
        i64::try_from(since_epoch.as_micros()).expect("it is before the year 294247")
    }

    #[test]
    fn the_calendar_is_that_of_the_system() {
        let before = system_us();
        let us = realtime_us();
        let ms = realtime_ms();
        let after = system_us();
        assert!(before <= us && us <= after, "{before} {us} {after}");
        assert!(
            before / 1_000 <= ms && ms <= after / 1_000,
            "{before} {ms} {after}"
        );
    }

    #[test]
    fn monotonic_time_and_ticks_never_go_back_on_a_thread() {
        let (mut last_ns, mut last_ticks) = (monotonic_ns(), ticks());
        for _ in 0..100_000 {
            let (ns, now) = (monotonic_ns(), ticks());
            assert!(ns >= last_ns && now >= last_ticks);
            (last_ns, last_ticks) = (ns, now);
        }
    }

    #[test]
    fn ticks_agree_with_the_monotonic_clock() {
        // Whatever delays this thread, the ticks were read inside of the outer and outside of the
        // inner interval.
        let (outer_start, start, inner_start) = (monotonic_ns(), ticks(), monotonic_ns());
        while monotonic_ns() - inner_start < 20_000_000 {
            std::hint::spin_loop();
        }
        let (inner_end, end, outer_end) = (monotonic_ns(), ticks(), monotonic_ns());
        let measured = ticks_to_ns(end - start) as f64;
        let shortest = (inner_end - inner_start) as f64;
        let longest = (outer_end - outer_start) as f64;
        assert!(
            measured > shortest * 0.99 && measured < longest * 1.01,
            "{measured} ns by ticks, {shortest} to {longest} ns by the clock"
        );
    }

    #[test]
    fn the_two_forms_of_the_scale_agree() {
        let per_us = ticks_per_us();
        assert!(per_us > 0.0 && per_us.is_finite());
        assert_eq!(ticks_to_ns(0), 0);
        let second = (per_us * 1e6) as u64;
        assert!(ticks_to_ns(second).abs_diff(1_000_000_000) < 1_000);
    }

    #[test]
    fn conversion_is_exact_where_it_can_be_and_saturates() {
        let nanoseconds = Scale::new(1_000.0);
        assert_eq!(nanoseconds.to_ns(123_456_789), 123_456_789);
        assert_eq!(nanoseconds.to_ns(u64::MAX), u64::MAX);
        let apple = Scale::new(24.0);
        assert_eq!(apple.to_ns(24_000_000), 1_000_000_000);
        assert_eq!(apple.to_ns(u64::MAX), u64::MAX);
    }

    #[test]
    fn the_counter_can_be_measured_even_where_its_frequency_is_known() {
        if counter::is_usable() {
            let ratio = measure() / ticks_per_us();
            assert!(ratio > 0.99 && ratio < 1.01, "{ratio}");
        }
    }
}
