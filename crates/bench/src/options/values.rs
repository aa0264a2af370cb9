//! What is written behind an option, read: counts, sizes, times, distributions.
//!
//! Counts and rates take `k`, `m` and `g` of a thousand; sizes take those too, and `kb`, `mb` and `gb` of
//! 1024; times are seconds unless they end in `us`, `ms`, `s`, `m` or `h`.

use crate::load::sizes::Sizes;
use std::str::FromStr;
use std::time::Duration;

/// A whole number within bounds.
pub(super) fn number<T>(text: &str, low: T, high: T) -> Result<T, String>
where
    T: FromStr + PartialOrd + std::fmt::Display,
{
    match text.parse() {
        Ok(number) if number >= low && number <= high => Ok(number),
        _ => Err(format!("'{text}' is no number from {low} to {high}")),
    }
}

/// A number with a fraction, from `low` on.
pub(super) fn fraction(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= low && number <= high => Ok(number),
        _ => Err(format!("'{text}' is no number from {low} to {high}")),
    }
}

/// Splits a number from the letters behind it.
fn split_unit(text: &str) -> (&str, String) {
    let at = text
        .find(|letter: char| letter.is_ascii_alphabetic())
        .unwrap_or(text.len());
    (&text[..at], text[at..].to_ascii_lowercase())
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (digits, unit) = split_unit(text.trim());
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = digits.parse().ok()?;
    let value = number * factor;
    (value >= 0.0 && value.is_finite()).then_some(value)
}

const THOUSANDS: [(&str, f64); 4] = [("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9)];

/// How many: `1000000`, `1m`, `2.5k`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match scaled(text, &THOUSANDS) {
        // Below 2^53, where each number is exact.
        Some(value) if value < 9e15 && value.fract() == 0.0 => Ok(value as u64),
        _ => Err(format!("'{text}' is no count such as 1000, 100k or 1m")),
    }
}

/// The same, at least one.
pub(super) fn some(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("it has to be at least 1".into()),
        count => Ok(count),
    }
}

/// Percentiles, separated by commas, in ascending order.
pub(super) fn percentiles(text: &str) -> Result<Vec<f64>, String> {
    let parts = text
        .split(',')
        .map(|part| fraction(part.trim(), 0.0, 100.0));
    let mut list = parts.collect::<Result<Vec<f64>, String>>()?;
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}

/// How many a second.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    scaled(text, &THOUSANDS)
        .filter(|&rate| (1e-3..1e12).contains(&rate))
        .ok_or_else(|| format!("'{text}' is no rate such as 50000 or 50k"))
}

/// How many bytes: `16`, `64kb`, `1gb`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, f64); 8] = [
        ("", 1.0),
        ("b", 1.0),
        ("k", 1e3),
        ("m", 1e6),
        ("g", 1e9),
        ("kb", 1024.0),
        ("mb", 1_048_576.0),
        ("gb", 1_073_741_824.0),
    ];
    match scaled(text, &UNITS) {
        Some(value) if value < 9e15 && value.fract() == 0.0 => Ok(value as u64),
        _ => Err(format!("'{text}' is no size such as 16, 64kb or 1gb")),
    }
}

/// A length of time.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 6] = [
        ("", 1.0),
        ("us", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3_600.0),
    ];
    match scaled(text, &UNITS) {
        Some(seconds) if seconds < 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err(format!("'{text}' is no time such as 10, 1.5s, 200ms or 5m")),
    }
}

/// The same, more than none.
pub(super) fn length(text: &str) -> Result<Duration, String> {
    match time(text)? {
        Duration::ZERO => Err("it has to be more than 0".into()),
        time => Ok(time),
    }
}

/// The same as `time`, in milliseconds unless it says otherwise.
pub(super) fn milliseconds(text: &str) -> Result<Duration, String> {
    let is_plain = text.parse::<f64>().is_ok();
    time(&if is_plain {
        format!("{text}ms")
    } else {
        text.to_owned()
    })
}

/// A range with both ends, `LOW-HIGH`.
pub(super) fn range(
    text: &str,
    read: impl Fn(&str) -> Result<u64, String>,
) -> Result<(u64, u64), String> {
    let parts = text
        .split_once('-')
        .map(|(low, high)| (read(low), read(high)));
    match parts {
        Some((Ok(low), Ok(high))) if low <= high => Ok((low, high)),
        _ => Err(format!("'{text}' is no range such as 1-1024")),
    }
}

/// Sizes with weights, `SIZE:WEIGHT,...`; without a weight, one.
pub(super) fn size_list(text: &str) -> Result<Sizes, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (bytes, weight) = part.split_once(':').unwrap_or((part, "1"));
        list.push((size(bytes)?, count(weight)?));
    }
    if list.iter().all(|(_, weight)| *weight == 0) {
        return Err(format!("'{text}' gives no size a weight"));
    }
    Ok(Sizes::List(list))
}

/// Two weights, `SET:GET`.
pub(super) fn ratio(text: &str) -> Result<(u64, u64), String> {
    let parts = text
        .split_once(':')
        .map(|(one, other)| (count(one), count(other)));
    match parts {
        Some((Ok(one), Ok(other))) if one + other > 0 => Ok((one, other)),
        _ => Err(format!("'{text}' is no ratio such as 1:10")),
    }
}

/// Numbers of processors: `0,2-3`.
pub(crate) fn cpus(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("'{text}' is no list of processors such as 1 or 0,2-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let low: usize = low.parse().map_err(|_| wrong())?;
        let high: usize = high.parse().map_err(|_| wrong())?;
        if low > high || high > 1 << 16 {
            return Err(wrong());
        }
        cpus.extend(low..=high);
    }
    Ok(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_both_kinds() {
        for (text, bytes) in [
            ("0", 0),
            ("16", 16),
            ("16b", 16),
            ("1k", 1_000),
            ("1kb", 1_024),
            ("1.5KB", 1_536),
            ("64Kb", 65_536),
            ("2m", 2_000_000),
            ("2mb", 2 << 20),
            ("4gb", 4 << 30),
            ("1g", 1_000_000_000),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "", "k", "-1", "1x", "1.5", "0.1k5", "1e300gb", "nan", "inf", "1 kb x",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_seconds_unless_they_say_otherwise() {
        for (text, ms) in [
            ("10", 10_000.0),
            ("1.5s", 1_500.0),
            ("200ms", 200.0),
            ("5m", 300_000.0),
        ] {
            assert_eq!(
                time(text).map(|time| time.as_secs_f64() * 1e3),
                Ok(ms),
                "{text}"
            );
        }
        assert_eq!(time("50us"), Ok(Duration::from_micros(50)));
        assert_eq!(milliseconds("1.5"), Ok(Duration::from_micros(1_500)));
        assert_eq!(milliseconds("2s"), Ok(Duration::from_secs(2)));
        assert!(milliseconds("x").is_err());
        assert_eq!(time("2h"), Ok(Duration::from_secs(7_200)));
        for text in ["", "s", "-1s", "1d", "1e30"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_rates_and_ranges() {
        assert_eq!(count("100k"), Ok(100_000));
        assert_eq!(count("1.5m"), Ok(1_500_000));
        assert!(count("1.5").is_err() && count("1kb").is_err());
        assert_eq!((some("1k"), some("0").is_err()), (Ok(1_000), true));
        assert!(length("0s").is_err() && length("1ms").is_ok());
        assert_eq!(percentiles("99.9, 50,50"), Ok(vec![50.0, 99.9]));
        assert!(percentiles("").is_err() && percentiles("101").is_err());
        assert_eq!(rate("2.5"), Ok(2.5));
        assert!(rate("0").is_err() && rate("x").is_err());
        assert_eq!(range("1-1kb", size), Ok((1, 1_024)));
        assert_eq!(range("7-7", size), Ok((7, 7)));
        assert!(range("2-1", size).is_err() && range("2", size).is_err());
        assert_eq!(number("5", 1, 9), Ok(5));
        assert!(number("0", 1, 9).is_err() && number::<u8>("300", 0, 255).is_err());
        assert!(fraction("1.1", 0.0, 1.0).is_err());
    }

    #[test]
    fn lists_of_sizes_and_ratios() {
        let list = Sizes::List(vec![(32, 9), (1 << 20, 1)]);
        assert_eq!(size_list("32:9,1mb:1"), Ok(list));
        assert_eq!(size_list("32"), Ok(Sizes::List(vec![(32, 1)])));
        assert!(size_list("32:0").is_err() && size_list("").is_err());
        assert_eq!(ratio("1:10"), Ok((1, 10)));
        assert!(ratio("0:0").is_err() && ratio("1").is_err());
    }

    #[test]
    fn lists_of_processors() {
        assert_eq!(cpus("1"), Ok(vec![1]));
        assert_eq!(cpus("0,2-4"), Ok(vec![0, 2, 3, 4]));
        for text in ["", "a", "3-1", "1-", "0-99999999"] {
            assert!(cpus(text).is_err(), "{text}");
        }
    }
}
