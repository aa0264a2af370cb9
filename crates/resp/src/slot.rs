//! The slot of a key in a cluster: 16384 of them, by a checksum that servers and clients agree on.
//!
//! Here lives that function alone. The checksum is CRC-16/XMODEM: polynomial 0x1021, begun
//! with zero, bits not reflected.

/// How many slots there are.
pub const SLOTS: u16 = 16384;

/// The checksum of every byte, so that a key costs one look-up a byte.
const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            let carry = crc & 0x8000 != 0;
            crc <<= 1;
            if carry {
                crc ^= 0x1021;
            }
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// CRC-16/XMODEM.
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let [high, _] = crc.to_be_bytes();
        (crc << 8) ^ TABLE[usize::from(high ^ byte)]
    })
}

/// The part of a key that decides its slot: what stands between the first `{` and the first `}` behind it,
/// if that is anything;
/// otherwise all of the key.
#[must_use]
pub fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else {
        return key;
    };
    let rest = &key[open + 1..];
    match rest.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &rest[..close],
    }
}

/// The slot of a key, below [`SLOTS`].
///
/// ```
/// assert_eq!(resp::slot::slot(b"foo"), 12182);
/// assert_eq!(resp::slot::slot(b"{foo}:1"), resp::slot::slot(b"{foo}:2"));
/// ```
#[must_use]
pub fn slot(key: &[u8]) -> u16 {
    crc16(tag(key)) & (SLOTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_standard_one() {
        // The check value of the catalogue of CRCs.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn the_first_pair_of_braces_with_something_between_is_the_tag() {
        for (key, expected) in [
            (&b"plain"[..], &b"plain"[..]),
            (b"", b""),
            (b"{user}:1", b"user"),
            (b"a{user}b{c}", b"user"),
            (b"{}:1", b"{}:1"),
            (b"{}{user}", b"{}{user}"),
            (b"{{user}}", b"{user"),
            (b"}{user}", b"user"),
            (b"{open", b"{open"),
            (b"close}", b"close}"),
            (b"{", b"{"),
        ] {
            assert_eq!(tag(key), expected, "{}", key.escape_ascii());
        }
    }
}
