//! Randomness from the kernel: seeds and identifiers, asked for rarely. Cheap pseudo-random numbers
//! for sampling are seeded from here but live with whoever samples.

use crate::syscall::{check_size, retry};
use std::io;

/// Fills `buffer` with bytes fit for secrets: hash seeds, run identifiers, generated passwords.
///
/// Waits, early in the life of a machine, until the kernel's generator is seeded.
///
/// # Errors
/// The kernel refuses the call (a seccomp filter, or a Linux older than 3.17).
pub fn fill(buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        filled += retry(|| fill_some(&mut buffer[filled..]))?;
    }
    Ok(())
}

/// One call of the kernel. Linux and FreeBSD may stop early, on a signal or at their own limit.
#[cfg(not(target_os = "macos"))]
fn fill_some(buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length describe one slice that is writable for the duration of
    // the call.
    check_size(unsafe { libc::getrandom(buffer.as_mut_ptr().cast(), buffer.len(), 0) })
}

/// One call of the kernel, which gives at most 256 bytes at a time and never fewer than asked for.
#[cfg(target_os = "macos")]
fn fill_some(buffer: &mut [u8]) -> io::Result<usize> {
    let length = buffer.len().min(256);
    // SAFETY: the pointer and the length lie within one slice that is writable for the duration of
    // the call.
    check_size(unsafe { libc::getentropy(buffer.as_mut_ptr().cast(), length) } as isize)?;
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_the_buffer_is_written() {
        // Each byte is zero in one of 256 fills; that one of them stays zero in 64 fills has odds
        // of 256^-64.
        const FILLS: usize = 64;
        let mut seen = [0_u8; 1000];
        for _ in 0..FILLS {
            let mut bytes = [0_u8; 1000];
            fill(&mut bytes).expect("the kernel has randomness");
            for (all, byte) in seen.iter_mut().zip(bytes) {
                *all |= byte;
            }
        }
        assert!(seen.iter().all(|&byte| byte != 0));
    }

    #[test]
    fn two_fills_differ_and_none_is_fine() {
        let (mut first, mut second) = ([0_u8; 16], [0_u8; 16]);
        fill(&mut first).expect("the kernel has randomness");
        fill(&mut second).expect("the kernel has randomness");
        assert_ne!(first, second);
        fill(&mut []).expect("nothing to do");
    }
}
