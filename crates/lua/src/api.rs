//! Which functions of the server a state has.

/// The table `redis` of a state, with the version of the server in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Api {
    /// That of scripts.
    Scripts([u8; 3]),
    /// That of functions in libraries.
    Libraries([u8; 3]),
}
