//! Tests of the 80-bit numbers by their own laws. Sums that a real server computed are in
//! `tests/data/sums.txt`.

use super::*;

fn text(value: Extended) -> String {
    value.to_string()
}

fn number(text: &str) -> Extended {
    parse(text.as_bytes()).unwrap_or_else(|| panic!("{text:?} is a number"))
}

#[test]
fn the_integer_above_is_found_at_any_size() {
    for (text, expected) in [
        ("0", 0),
        ("1", 1),
        ("1.5", 2),
        ("-1.5", -1),
        ("-1", -1),
        ("0.1", 1),
        ("-0.1", 0),
        ("1e-400", 1),
        ("-1e-400", 0),
        ("1e-4950", 1),
        ("9223372036854775807", i64::MAX),
        ("9223372036854775806", i64::MAX - 1),
        ("9223372036854775806.5", i64::MAX),
        ("9223372036854775808", i64::MAX),
        ("18446744073709551616", i64::MAX),
        ("-9223372036854775807", i64::MIN),
        ("-9223372036854775806.5", i64::MIN + 2),
        ("1e400", i64::MAX),
        ("-1e4900", i64::MIN),
        ("inf", i64::MAX),
        ("-inf", i64::MIN),
    ] {
        assert_eq!(number(text).ceil(), expected, "{text}");
    }
}

fn parts(value: Extended) -> (u64, i32) {
    match value.0 {
        Class::Finite {
            significand,
            exponent,
            ..
        } => (significand, exponent),
        other => panic!("{other:?}"),
    }
}

/// A random number: most of them of moderate size, some anywhere.
fn random_number(random: &mut fastrand::Rng) -> Extended {
    let exponent = if random.u8(..4) == 0 {
        random.i64(-16_445..16_320)
    } else {
        random.i64(-130..70)
    };
    Extended::round(
        random.bool(),
        Scaled {
            significand: u128::from(random.u64(..)),
            exponent,
        },
    )
}

#[test]
fn extremes_are_represented() {
    assert_eq!(parts(number("0x1p-16445")), (1, -16_445));
    assert_eq!(parts(number("0x1p-16382")), (1 << 63, -16_445));
    assert_eq!(
        parts(number("0x1.fffffffffffffffep16383")),
        (u64::MAX, 16_320)
    );
    assert_eq!(
        parts(number("1.18973149535723176502126385303097021e4932")),
        (u64::MAX, 16_320)
    );
    assert_eq!(
        parts(number("3.6451995318824746025284059336194e-4951")),
        (1, -16_445)
    );
    assert_eq!(parts(number("0")), (0, -16_445));
    for text in [
        "0x1p16384",
        "0x1.ffffffffffffffffp16383",
        "1.1897314953572317651e4932",
        "1e4933",
        "0x1p-16446",
        "1e-4951",
        "1e-9999",
    ] {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn the_quick_way_and_the_long_way_agree() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..100_000 {
        let digits = (random.u64(..) >> random.u32(..64)).max(1);
        let zeros = random.u32(1..40);
        let Some(quick) = scale_word(digits, -i64::from(zeros)) else {
            assert!(
                zeros > 20,
                "numbers that occur are quick: {digits}e-{zeros}"
            );
            continue;
        };
        let mut divisor = Natural::new(1);
        divisor.multiply_by_power_of_five(zeros);
        let mut long = Natural::new(digits).divided_by(divisor);
        long.exponent -= i64::from(zeros);
        let (quick, long) = (Extended::round(false, quick), Extended::round(false, long));
        assert_eq!(quick, long, "{digits}e-{zeros}");
    }
}

#[test]
fn decimals_and_hexadecimals_of_one_value_are_equal() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..5_000 {
        let significand = random.u64(..) | 1 << 63;
        let exponent = random.i32(-100..200);
        let hexadecimal = number(&format!("0x{significand:x}p{exponent}"));
        assert_eq!(parts(hexadecimal), (significand, exponent));
        // The exact decimal expansion: an integer, or an integer over a power of ten.
        let mut decimal = Natural::new(significand);
        let point = if exponent < 0 {
            decimal.multiply_by_power_of_five(exponent.unsigned_abs());
            exponent
        } else {
            decimal.shift_left(exponent as usize);
            0
        };
        let mut digits = vec![];
        decimal.write_decimal(&mut digits);
        digits.extend_from_slice(format!("e{point}").as_bytes());
        assert_eq!(parse(&digits), Some(hexadecimal));
    }
}

#[test]
fn integers_come_out_as_they_went_in() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let value = random.i64(..) >> random.u32(..64);
        assert_eq!(text(Extended::from(value)), value.to_string());
        assert_eq!(number(&value.to_string()), Extended::from(value));
        let other = random.i64(..) >> random.u32(1..64);
        let sum = i128::from(value) + i128::from(other);
        assert_eq!(
            text(Extended::from(value) + Extended::from(other)),
            sum.to_string()
        );
    }
}

#[test]
fn short_decimals_come_out_as_they_went_in() {
    let mut random = fastrand::Rng::with_seed(4);
    for _ in 0..20_000 {
        // 64 bits hold the 17 decimals that are written only beside a small integer.
        let (integer, decimals) = (random.u32(..100), random.u32(..1_000_000));
        let trimmed = format!("{integer}.{decimals:06}");
        let trimmed = trimmed.trim_end_matches('0').trim_end_matches('.');
        assert_eq!(text(number(&format!("{integer}.{decimals:06}"))), trimmed);
        if (integer, decimals) != (0, 0) {
            assert_eq!(
                text(number(&format!("-{integer}.{decimals:06}"))),
                format!("-{trimmed}")
            );
        }
    }
}

#[test]
fn addition_obeys_its_laws() {
    let mut random = fastrand::Rng::with_seed(5);
    let zero = Extended::from(0);
    for _ in 0..50_000 {
        let (a, b) = (random_number(&mut random), random_number(&mut random));
        assert_eq!(a + b, b + a);
        assert_eq!(a + zero, a);
        let Class::Finite {
            negative,
            significand,
            exponent,
        } = a.0
        else {
            panic!("random numbers are finite")
        };
        let opposite = Extended(Class::Finite {
            negative: !negative,
            significand,
            exponent,
        });
        assert_eq!(a + opposite, zero);
        // Twice a number is the number with the next exponent, or an infinity.
        let double = Extended::round(
            negative,
            Scaled {
                significand: u128::from(significand),
                exponent: i64::from(exponent) + 1,
            },
        );
        assert_eq!(a + a, double);
    }
}

#[test]
fn close_sums_are_exact() {
    // Where the exact sum fits into a machine word of 128 bits, it has to be that sum, rounded.
    let mut random = fastrand::Rng::with_seed(6);
    for _ in 0..50_000 {
        let (a, b, distance) = (random.u64(..), random.u64(..), random.u32(..63));
        let scaled = |significand, exponent| {
            Extended::round(
                false,
                Scaled {
                    significand,
                    exponent,
                },
            )
        };
        let sum = (u128::from(a) << distance) + u128::from(b);
        let exact = scaled(sum, -20);
        assert_eq!(
            scaled(u128::from(a), i64::from(distance) - 20) + scaled(u128::from(b), -20),
            exact
        );
    }
}

#[test]
fn distant_sums_round_as_the_sticky_bit_says() {
    let one = number("0x1p64");
    let cases = [
        ("0x1", "0x1p64"),
        ("0x1.0000000000000002p0", "0x1.0000000000000002p64"),
        ("0x1.8p0", "0x1.0000000000000002p64"),
        ("0x3", "0x1.0000000000000004p64"),
        ("-0x1p-1", "0x1p64"),
        ("-0x1.0000000000000002p-1", "0x1.fffffffffffffffep63"),
        ("-0x1p-16445", "0x1p64"),
        ("0x1p-16445", "0x1p64"),
    ];
    for (small, expected) in cases {
        assert_eq!(one + number(small), number(expected), "{small}");
    }
}

#[test]
fn infinities_and_nan() {
    let (positive, negative) = (number("inf"), number("-Infinity"));
    assert!(positive.is_infinite() && !positive.is_nan());
    assert!((positive + negative).is_nan() && !(positive + negative).is_infinite());
    assert_eq!(positive + positive, positive);
    assert_eq!(number("1e4000") + negative, negative);
    assert!((positive + negative + positive).is_nan());
    let largest = number("0x1.fffffffffffffffep16383");
    assert!((largest + largest).is_infinite());
    assert!((largest + number("0x1p16319")).is_infinite());
    assert_eq!(largest + number("0x1.fffffffffffffffep16318"), largest);
    assert_eq!(
        (text(positive), text(negative)),
        ("inf".to_owned(), "-inf".to_owned())
    );
    assert_eq!(text(positive + negative), "nan");
}

#[test]
fn decimals_are_rounded_to_seventeen() {
    let cases = [
        ("0", "0"),
        ("-0", "0"),
        ("-1e-18", "0"),
        ("5e-18", "0"),
        ("0x1p-58", "0"),
        ("0x3p-58", "0.00000000000000001"),
        ("0x1p-18", "0.00000381469726562"),
        ("0x3p-18", "0.00001144409179688"),
        ("-0.1", "-0.1"),
        ("3.0e3", "3000"),
        ("1e20", "100000000000000000000"),
        ("0.999999999999999999", "1"),
        ("9.999999999999999999", "10"),
        ("1.5", "1.5"),
        ("18446744073709551615", "18446744073709551615"),
        ("0x1p64", "18446744073709551616"),
        ("1e25", "10000000000000000000000000"),
    ];
    for (input, expected) in cases {
        assert_eq!(text(number(input)), expected, "{input}");
    }
    assert_eq!(text(number("1e4932")).len(), 4933);
}

#[test]
fn texts_that_are_no_numbers() {
    for text in [
        "", " 1", "1 ", "nan", "-NaN", "nan(1)", "1e", "0x", "0x.p1", "abc", "1.2.3", "1\0", "+",
        "infi",
    ] {
        assert_eq!(parse(text.as_bytes()), None, "{text:?}");
    }
    assert!(parse("0".repeat(5_119).as_bytes()).is_some());
    assert_eq!(parse("0".repeat(5_120).as_bytes()), None);
}
