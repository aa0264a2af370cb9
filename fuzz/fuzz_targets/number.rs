//! No text makes a number's parser panic, what it accepts survives formatting, and integers have
//! one spelling.

#![no_main]

use libfuzzer_sys::fuzz_target;
use resp::{Extended, extended, number};

fn integers(text: &[u8]) {
    let standard = std::str::from_utf8(text).ok();
    let signed = standard.and_then(|text| {
        text.parse::<i64>()
            .ok()
            .filter(|value| value.to_string() == text)
    });
    assert_eq!(number::parse_i64(text), signed);
    let unsigned = standard.and_then(|text| {
        text.parse::<u64>()
            .ok()
            .filter(|value| value.to_string() == text)
    });
    assert_eq!(number::parse_u64(text), unsigned);
    if let Some(value) = signed {
        assert_eq!(number::format_i64(value, &mut [0; 20]), text);
        assert_eq!(number::digits_i64(value), text.len());
    }
}

fn double(value: f64) {
    let mut buf = [0; 25];
    let text = number::format_f64(value, &mut buf);
    if !value.is_nan() {
        assert_eq!(
            number::parse_f64(text).map(f64::to_bits),
            Some(value.to_bits())
        );
    }
}

fn doubles(text: &[u8]) {
    let parsed = number::parse_f64(text);
    if let Some(value) = parsed {
        assert!(!value.is_nan());
        double(value);
    }
    let standard = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<f64>().ok());
    match (standard, parsed) {
        // What the standard library reads is refused only where the value is out of range, or a
        // NaN.
        (Some(standard), None) => {
            assert!(standard.is_nan() || standard.is_infinite() || standard == 0.0)
        }
        (Some(standard), Some(parsed)) => assert_eq!(standard.to_bits(), parsed.to_bits()),
        // What it does not read is hexadecimal.
        (None, Some(_)) => assert!(text.contains(&b'x') || text.contains(&b'X')),
        (None, None) => {}
    }
}

fn write(value: Extended) -> Vec<u8> {
    let mut text = vec![];
    value.write_to(&mut text);
    text
}

fn extendeds(one: &[u8], other: &[u8]) {
    let (Some(one), Some(other)) = (extended::parse(one), extended::parse(other)) else {
        return;
    };
    for value in [one, other, one + other] {
        let text = write(value);
        match extended::parse(&text) {
            Some(parsed) => assert_eq!(write(parsed), text),
            None => assert!(value.is_nan()),
        }
    }
    assert_eq!(write(one + other), write(other + one));
}

fuzz_target!(|data: &[u8]| {
    integers(data);
    doubles(data);
    if let Some(bytes) = data.first_chunk() {
        double(f64::from_le_bytes(*bytes));
        let value = i64::from_le_bytes(*bytes);
        integers(value.to_string().as_bytes());
    }
    let mut halves = data.splitn(2, |&byte| byte == b' ');
    let (one, other) = (
        halves.next().unwrap_or_default(),
        halves.next().unwrap_or(b"0"),
    );
    extendeds(one, other);
});
