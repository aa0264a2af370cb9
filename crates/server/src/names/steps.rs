//! Counting the steps of loops, in tests only: their number does not depend on the machine, as their time
//! does.

#[cfg(test)]
thread_local! {
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Notes `count` steps.
#[inline(always)]
pub(crate) fn add(count: usize) {
    #[cfg(test)]
    STEPS.set(STEPS.get() + count);
    let _ = count;
}

/// The steps that `work` takes on this thread.
#[cfg(test)]
pub(crate) fn counted(work: impl FnOnce()) -> usize {
    let before = STEPS.get();
    work();
    STEPS.get() - before
}

/// Fails if `work` on twice as much takes more than a little over twice the steps. `work` gets how much.
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
