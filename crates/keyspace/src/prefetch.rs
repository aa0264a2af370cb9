//! Memory that is asked for before it is needed.

/// Starts loading the cache line at `address`, which may be any number.
#[inline]
pub(crate) fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint and does not fault, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; PRFM changes no register and no memory.
    unsafe {
        std::arch::asm!(
            "prfm pldl1keep, [{0}]",
            in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

/// Starts loading the cache lines of some bytes.
#[inline]
pub(crate) fn prefetch_bytes(bytes: &[u8]) {
    bytes
        .iter()
        .step_by(LINE)
        .chain(bytes.last())
        .for_each(|byte| prefetch(byte));
}

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
