//! TODO-PLACEHOLDER
use super::Spec;

pub(crate) const COMMANDS: &[Spec] = &[];
