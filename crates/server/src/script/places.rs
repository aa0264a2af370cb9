//! Places of keys among the arguments of commands, as commands hand them down.

/// Places of the keys of a command: the index of the first (0: it has none), of the last (negative: from the
/// end), and the step between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyPlaces {
    pub(crate) first: usize,
    pub(crate) last: i32,
    pub(crate) step: usize,
}

/// Finds the places of the keys of a command by its name and its first argument; `None` if they are elsewhere
/// or unknown.
pub(crate) type FindPlaces<'f> = &'f dyn Fn(&[u8], Option<&[u8]>) -> Option<KeyPlaces>;
