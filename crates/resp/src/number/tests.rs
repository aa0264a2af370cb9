//! Tests of the numbers' texts: edges, round trips, and agreement with the standard library.

use super::*;

fn text(value: i64) -> String {
    String::from_utf8(format_i64(value, &mut [0; INTEGER_TEXT_LEN]).to_vec())
        .expect("digits are text")
}

fn double_text(value: f64) -> String {
    String::from_utf8(format_f64(value, &mut [0; DOUBLE_TEXT_LEN]).to_vec())
        .expect("digits are text")
}

/// Integers around all powers of two and ten.
fn edges() -> impl Iterator<Item = i64> {
    let powers = (0..63)
        .map(|bits| 1i64 << bits)
        .chain((0..19).map(|zeros| 10i64.pow(zeros)));
    let around =
        powers.flat_map(|power| [power - 1, power, power + 1, -power + 1, -power, -power - 1]);
    around.chain([0, i64::MIN, i64::MIN + 1, i64::MAX, i64::MAX - 1])
}

#[test]
fn integers_survive_both_ways() {
    let mut random = fastrand::Rng::with_seed(1);
    let randoms = (0..100_000).map(|_| random.i64(..) >> random.u32(..64));
    for value in edges().chain(-1100..1100).chain(randoms) {
        let text = text(value);
        assert_eq!(text, value.to_string());
        assert_eq!(parse_i64(text.as_bytes()), Some(value));
        assert_eq!(digits_i64(value), text.len());
        let unsigned = value as u64;
        let text = unsigned.to_string();
        assert_eq!(
            format_u64(unsigned, &mut [0; INTEGER_TEXT_LEN]),
            text.as_bytes()
        );
        assert_eq!(parse_u64(text.as_bytes()), Some(unsigned));
    }
}

#[test]
fn only_one_spelling_of_an_integer_is_read() {
    let cases = [
        "",
        "-",
        "+",
        "+1",
        "-0",
        "00",
        "01",
        "-01",
        "001",
        " 1",
        "1 ",
        "1\0",
        "1a",
        "a",
        "0x1",
        "1.0",
        "1e3",
        "--1",
        "-+1",
        "1-",
        "/",
        ":",
        "1/",
        "1:",
        "99999999999999999999",
        "9223372036854775808",
        "-9223372036854775809",
        "10000000000000000000",
        "18446744073709551616",
        "100000000000000000000",
        "-99999999999999999999",
        "-18446744073709551615",
    ];
    for text in cases {
        assert_eq!(parse_i64(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(parse_i64(b"9223372036854775807"), Some(i64::MAX));
    assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
    assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
    for text in [
        "",
        "-1",
        "-0",
        "18446744073709551616",
        "18446744073709551620",
        "99999999999999999999",
        "01",
        "1844674407370955161:",
    ] {
        assert_eq!(parse_u64(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn every_short_text_is_read_as_the_standard_library_does() {
    // The standard library is laxer in two ways only: it allows a plus and leading zeros.
    let alphabet = b"-+019/:";
    for len in 0..=4u32 {
        for number in 0..alphabet.len().pow(len) {
            let text: Vec<u8> = (0..len)
                .map(|place| alphabet[number / alphabet.len().pow(place) % alphabet.len()])
                .collect();
            let text = std::str::from_utf8(&text).expect("the alphabet is text");
            let expected = text
                .parse::<i64>()
                .ok()
                .filter(|value| value.to_string() == text);
            assert_eq!(parse_i64(text.as_bytes()), expected, "{text:?}");
        }
    }
}

#[test]
fn doubles_are_laid_out_as_by_g() {
    let cases = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1, "0.10000000000000001"),
        (3.24, "3.2400000000000002"),
        (100.0, "100"),
        (1e15, "1000000000000000"),
        (9007199254740991.0, "9007199254740991"),
        (9007199254740992.0, "9007199254740992"),
        (12345678901234568.0, "12345678901234568"),
        (1e16, "10000000000000000"),
        (99999999999999984.0, "99999999999999984"),
        (1e17, "1e+17"),
        (1.5e17, "1.5e+17"),
        (123456789012345680.0, "1.2345678901234568e+17"),
        (1e100, "1e+100"),
        (f64::MAX, "1.7976931348623157e+308"),
        (0.5, "0.5"),
        (0.0001, "0.0001"),
        (0.000123456789, "0.000123456789"),
        (0.00001, "1.0000000000000001e-05"),
        (1.5e-5, "1.5e-05"),
        (-2.2250738585072014e-308, "-2.2250738585072014e-308"),
        (5e-324, "4.9406564584124654e-324"),
        (1234567.891, "1234567.8910000001"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
        (-f64::NAN, "nan"),
    ];
    for (value, expected) in cases {
        assert_eq!(double_text(value), expected);
    }
}

#[test]
fn ties_of_the_seventeenth_digit_go_to_even() {
    // A quarter and an eighth are the last bits of these, and have one digit more than 17.
    assert_eq!(
        double_text((1u64 << 50) as f64 + 0.25),
        "1125899906842624.2"
    );
    assert_eq!(
        double_text((1u64 << 50) as f64 + 0.75),
        "1125899906842624.8"
    );
    assert_eq!(
        double_text((1u64 << 49) as f64 + 0.125),
        "562949953421312.12"
    );
    assert_eq!(
        double_text((1u64 << 49) as f64 + 0.375),
        "562949953421312.38"
    );
}

#[test]
fn doubles_survive_both_ways() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..100_000 {
        let value = match random.u8(..3) {
            0 => f64::from_bits(random.u64(..)),
            1 => random.i64(..) as f64 / f64::from(random.u32(1..1000)),
            _ => (random.i64(..) >> random.u32(..64)) as f64,
        };
        if value.is_nan() {
            continue;
        }
        let text = double_text(value);
        assert_eq!(
            parse_f64(text.as_bytes()).map(f64::to_bits),
            Some(value.to_bits()),
            "{text}"
        );
    }
}

#[test]
fn hexadecimal_doubles_are_exact_or_rounded_to_even() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..10_000 {
        let value = f64::from_bits(random.u64(..) >> 1);
        if !value.is_finite() {
            continue;
        }
        let (bits, exponent) = (value.to_bits() & ((1 << 52) - 1), value.to_bits() >> 52);
        let lead = u64::from(exponent != 0);
        let text = format!("0x{lead}.{bits:013x}p{}", exponent.max(1) as i64 - 1023);
        assert_eq!(parse_f64(text.as_bytes()), Some(value), "{text}");
    }
    assert_eq!(parse_f64(b"0x1.00000000000008p0"), Some(1.0));
    assert_eq!(
        parse_f64(b"0x1.000000000000080000000000000000000000001p0"),
        Some(1.0 + f64::EPSILON)
    );
    assert_eq!(
        parse_f64(b"0x1.00000000000018p0"),
        Some(1.0 + 2.0 * f64::EPSILON)
    );
    assert_eq!(parse_f64(b"0x1.fffffffffffff8p0"), Some(2.0));
    assert_eq!(
        parse_f64(b"0x.00000000000000000000000000000000000008p152"),
        Some(1.0 * 8.0)
    );
    // A thousand ones behind the point are a fifteenth.
    let long = format!("0x.{}", "1".repeat(1000));
    assert_eq!(parse_f64(long.as_bytes()), Some(1.0 / 15.0));
}

#[test]
fn texts_that_are_no_doubles() {
    let cases = [
        "",
        " 1",
        "1 ",
        "-",
        "+",
        ".",
        "-.",
        "e1",
        ".e1",
        "1e",
        "1e+",
        "1ee1",
        "1.2.3",
        "1,2",
        "nan",
        "-nan",
        "NaN",
        "nan(1)",
        "infin",
        "in",
        "i",
        "infinityx",
        "--1",
        "+-1",
        "1_000",
        "0x",
        "0x.",
        "0xp1",
        "0x1p",
        "0x1p-",
        "0x1pf",
        "0xg",
        "1e400",
        "-1e400",
        "1e-400",
        "0x1p1024",
        "0x1p-1075",
        "1f",
        "0b1",
        "1\0",
        "\u{661}",
    ];
    for text in cases {
        assert_eq!(parse_f64(text.as_bytes()), None, "{text:?}");
    }
    assert_eq!(parse_f64(&[0xff]), None);
}

fn shortest_text(value: f64) -> String {
    String::from_utf8(format_shortest(value, &mut [0; DOUBLE_TEXT_LEN]).to_vec())
        .expect("digits are text")
}

#[test]
fn scores_are_as_redis_writes_them() {
    for (value, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (-17.0, "-17"),
        (0.1, "0.1"),
        (3.15, "3.15"),
        (4503599627370495.0, "4503599627370495"),
        (4503599627370496.0, "4503599627370496"),
        (1e16, "10000000000000000"),
        (4611686018427387904.0, "4611686018427387904"),
        (4611686018427388928.0, "4611686018427389000"),
        (1e19, "1e+19"),
        (1e21, "1e+21"),
        (123e18, "1.23e+20"),
        (1.2345678901234567e23, "123456789012345670000000"),
        (-1.2345678901234567e23, "-123456789012345670000000"),
        (1.2345678901234567e24, "1.2345678901234568e+24"),
        (0.00001, "0.00001"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-6, "1.5e-6"),
        (1.2345e-5, "1.2345e-5"),
        (0.0012345678901, "0.0012345678901"),
        (0.00012345678901, "1.2345678901e-4"),
        (1e300, "1e+300"),
        (f64::MAX, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(shortest_text(value), text);
    }
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..200_000 {
        let value = f64::from_bits(random.u64(..));
        if !value.is_nan() {
            let text = shortest_text(value);
            assert_eq!(parse_f64(text.as_bytes()), Some(value), "{text}");
        }
    }
}
