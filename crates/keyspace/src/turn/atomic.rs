//! The atomics that the barrier is made of. Its model under loom (`tests/barrier_model.rs`) has a module of
//! this name with loom's.

pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
