//! What is asked of the kernel, by name: the operation, and whose it is.
//!
//! ```text
//!  63     60    59     58            32 31             0
//! +---------+--------+-----------------+----------------+
//! |   op    | cancel | generation      | index of slot  |
//! +---------+--------+-----------------+----------------+
//! ```

/// The name of a slot: its index, and how often that was given out before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl Key {
    /// Generations are this wide. An answer would have to come this many connections late to be
    /// taken for another's.
    pub(super) const GENERATION_MASK: u32 = (1 << 27) - 1;
}

/// What the kernel does for a slot. The first four stay armed until they end or are cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Op {
    /// Tells each time the connection gets closer to its end; for a waker, each time it rings.
    Watch,
    /// Tells each time there is room to send.
    Room,
    /// Tells once that there is something to receive.
    Ready,
    /// Receives into provided buffers, again and again.
    Receive,
    /// Sends once; says nothing if all went well.
    Send,
    /// Reads a file once. Its key is no slot's.
    Read,
}

impl Op {
    /// The order in which a slot's operations are asked for: how a connection ends is known before
    /// its last bytes are.
    pub(super) const ARMED: [Op; 4] = [Op::Watch, Op::Room, Op::Ready, Op::Receive];
    pub(super) const ALL: [Op; 6] = [
        Op::Watch,
        Op::Room,
        Op::Ready,
        Op::Receive,
        Op::Send,
        Op::Read,
    ];
}

/// The name of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) op: Op,
    /// Not the operation itself but the request to end it.
    pub(super) is_cancel: bool,
    pub(super) key: Key,
}

impl Tag {
    pub(super) fn new(op: Op, key: Key) -> Tag {
        Tag {
            op,
            is_cancel: false,
            key,
        }
    }

    pub(super) fn to_bits(self) -> u64 {
        (self.op as u64) << 60
            | u64::from(self.is_cancel) << 59
            | u64::from(self.key.generation) << 32
            | u64::from(self.key.index)
    }

    /// Only for what [`Tag::to_bits`] has made, which the kernel hands back unchanged.
    pub(super) fn from_bits(bits: u64) -> Tag {
        Tag {
            op: Op::ALL[(bits >> 60) as usize],
            is_cancel: bits >> 59 & 1 != 0,
            key: Key {
                index: bits as u32,
                generation: (bits >> 32) as u32 & Key::GENERATION_MASK,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_survives_the_kernel() {
        for op in Op::ALL {
            for is_cancel in [false, true] {
                for index in [0, 1, u32::MAX] {
                    for generation in [0, 1, Key::GENERATION_MASK] {
                        let key = Key { index, generation };
                        let tag = Tag { op, is_cancel, key };
                        assert_eq!(Tag::from_bits(tag.to_bits()), tag);
                    }
                }
            }
        }
    }
}
