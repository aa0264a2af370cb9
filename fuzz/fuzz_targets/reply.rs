//! No reply makes the client's parser panic, and the scanner finds the end that the parser finds,
//! in pieces too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use resp::{ReplyError, ReplyScanner, client};

fuzz_target!(|data: &[u8]| {
    let mut scanner = ReplyScanner::default();
    let mut pieces = ReplyScanner::default();
    let bytewise = (0..=data.len()).find_map(|end| pieces.scan(&data[..end]).transpose());
    match (client::parse_value(data), scanner.scan(data)) {
        (Ok(Some((_, len))), scanned) => {
            assert!(len <= data.len());
            assert_eq!(scanned, Ok(Some(len)));
            assert_eq!(bytewise, Some(Ok(len)));
        }
        (Ok(None), scanned) => assert_eq!((scanned, bytewise), (Ok(None), None)),
        // Only the parser minds the depth.
        (Err(ReplyError::TooDeep), _) => {}
        (Err(error), scanned) => assert_eq!((scanned, bytewise), (Err(error), Some(Err(error)))),
    }
});
