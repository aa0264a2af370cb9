//! Step counter of loops, in tests only. Unlike time, the number of steps does not depend on the machine.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts `count` steps.
#[inline(always)]
pub(crate) fn add(count: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + count);
    let _ = count;
}

/// Steps of `work` on this thread.
#[cfg(test)]
pub(crate) fn counted(work: impl FnOnce()) -> usize {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}

/// Asserts that `work` of twice the size takes at most a little more than twice the steps.
#[cfg(test)]
pub(crate) fn assert_linear(n: usize, mut work: impl FnMut(usize)) {
    let once = counted(|| work(n));
    let twice = counted(|| work(2 * n));
    assert!(once > 0, "nothing was counted");
    assert!(
        twice <= 2 * once + once / 4,
        "{once} steps for {n}, {twice} for twice as much"
    );
}
