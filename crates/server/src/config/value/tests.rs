//! Tests of values: valid texts of each kind of setting, and their written form.

use super::super::table::{Setting, TABLE};
use super::*;

fn parse_as(kind: Kind, text: &str) -> Result<Value, String> {
    let row = Row {
        also: None,
        setting: Setting::Port,
        name: "x",
        short: None,
        kind,
        default: "",
        mutable: true,
        section: super::super::table::Section::Network,
        summary: "",
    };
    parse(&row, text)
}

#[test]
fn sizes_have_units_of_a_thousand_and_of_1024() {
    for (text, bytes) in [
        ("0", 0),
        ("1", 1),
        ("7b", 7),
        ("1k", 1000),
        ("1kb", 1024),
        ("1K", 1000),
        ("1Kb", 1024),
        ("3m", 3_000_000),
        ("3mb", 3 << 20),
        ("2g", 2_000_000_000),
        ("2GB", 2 << 30),
        ("007", 7),
        ("18446744073709551615", u64::MAX),
        ("17179869183gb", 17_179_869_183 << 30),
    ] {
        assert_eq!(parse_memory(text), Some(bytes), "{text}");
    }
    for text in [
        "",
        "b",
        "mb",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1 mb",
        "1.5gb",
        "1t",
        "1kib",
        "10%",
        "0x10",
        "18446744073709551616",
        "17179869184gb",
    ] {
        assert_eq!(parse_memory(text), None, "{text}");
    }
}

#[test]
fn sizes_are_written_in_the_largest_unit_and_read_back() {
    for (bytes, text) in [
        (0, "0"),
        (1, "1"),
        (1000, "1000"),
        (1023, "1023"),
        (1024, "1kb"),
        (1025, "1025"),
        (1536, "1536"),
        (100 << 20, "100mb"),
        (1 << 30, "1gb"),
        (1 << 40, "1024gb"),
        ((1 << 30) + (1 << 20), "1025mb"),
    ] {
        assert_eq!(size_text(bytes), text);
        assert_eq!(parse_memory(text), Some(bytes));
    }
}

#[test]
fn a_size_out_of_range_is_told_the_range_in_bytes() {
    let kind = Kind::Memory {
        min: 1 << 20,
        max: 1 << 30,
    };
    let range = Err("argument must be between 1048576 and 1073741824 inclusive".to_owned());
    assert_eq!(parse_as(kind, "1mb"), Ok(Value::Number(1 << 20)));
    assert_eq!(parse_as(kind, "1gb"), Ok(Value::Number(1 << 30)));
    assert_eq!(parse_as(kind, "1m"), range);
    assert_eq!(parse_as(kind, "1073741825"), range);
    // More than the signed number that holds it.
    assert_eq!(parse_as(kind, "18446744073709551615"), range);
    let all = Kind::Memory {
        min: 0,
        max: i64::MAX,
    };
    assert_eq!(
        parse_as(all, "9223372036854775807"),
        Ok(Value::Number(i64::MAX))
    );
    assert!(parse_as(all, "9223372036854775808").is_err());
    let wrong = Err("argument must be a memory value".to_owned());
    assert_eq!(parse_as(kind, "many"), wrong);
}

#[test]
fn numbers_have_one_spelling() {
    let kind = Kind::Integer { min: -1, max: 10 };
    for (text, number) in [("-1", -1), ("0", 0), ("10", 10)] {
        assert_eq!(parse_as(kind, text), Ok(Value::Number(number)));
    }
    for text in ["-2", "11", "9223372036854775807"] {
        let range = "argument must be between -1 and 10 inclusive";
        assert_eq!(parse_as(kind, text), Err(range.to_owned()));
    }
    for text in [
        "",
        " 1",
        "1 ",
        "+1",
        "01",
        "-0",
        "0x1",
        "1k",
        "9223372036854775808",
    ] {
        let wrong = "argument couldn't be parsed into an integer";
        assert_eq!(parse_as(kind, text), Err(wrong.to_owned()), "{text}");
    }
}

#[test]
fn flags_and_choices_are_words_in_any_case() {
    for (text, number) in [("yes", 1), ("No", 0), ("YES", 1)] {
        assert_eq!(parse_as(Kind::Flag, text), Ok(Value::Number(number)));
    }
    for text in ["", "1", "true", "yes "] {
        let wrong = "argument must be 'yes' or 'no'";
        assert_eq!(parse_as(Kind::Flag, text), Err(wrong.to_owned()));
    }
    let kind = Kind::Choice(&["auto", "epoll"]);
    assert_eq!(parse_as(kind, "EPOLL"), Ok(Value::Number(1)));
    assert_eq!(number_text(kind, 1), "epoll");
    for text in ["", "epol", "auto, epoll"] {
        let wrong = "argument(s) must be one of the following: auto, epoll";
        assert_eq!(parse_as(kind, text), Err(wrong.to_owned()));
    }
}

#[test]
fn permissions_are_octal() {
    let kind = Kind::Octal { max: 0o777 };
    for (text, number) in [("0", 0), ("700", 0o700), ("0755", 0o755), ("777", 0o777)] {
        assert_eq!(parse_as(kind, text), Ok(Value::Number(number)));
    }
    assert_eq!(number_text(kind, 0o755), "755");
    for text in ["1000", "-1"] {
        let range = "argument must be between 0 and 777 inclusive";
        assert_eq!(parse_as(kind, text), Err(range.to_owned()));
    }
    for text in ["", "8", "999", "rwx", "0o7"] {
        let wrong = "argument couldn't be parsed as an octal number";
        assert_eq!(parse_as(kind, text), Err(wrong.to_owned()));
    }
}

#[test]
fn shards_are_powers_of_two() {
    let kind = Kind::PowerOfTwo { max: 64 };
    for (text, number) in [("0", 0), ("1", 1), ("2", 2), ("64", 64)] {
        assert_eq!(parse_as(kind, text), Ok(Value::Number(number)));
    }
    for text in ["-1", "3", "63", "65", "128", "-9223372036854775808"] {
        let wrong = "argument must be 0 or a power of two not above 64";
        assert_eq!(parse_as(kind, text), Err(wrong.to_owned()), "{text}");
    }
    assert!(parse_as(kind, "x").is_err());
}

#[test]
fn addresses_are_words() {
    let kind = Kind::Addresses { most: 3 };
    for (text, joined) in [
        ("", ""),
        ("127.0.0.1", "127.0.0.1"),
        ("  127.0.0.1   -::1 ", "127.0.0.1 -::1"),
        ("* -::* x", "* -::* x"),
    ] {
        assert_eq!(parse_as(kind, text), Ok(Value::Text(joined.into())));
    }
    let many = "Too many bind addresses specified.";
    assert_eq!(parse_as(kind, "a b c d"), Err(many.to_owned()));
    assert!(parse_as(kind, "a - b").is_err());
}

#[test]
fn hosts_are_names_alone() {
    let kind = Kind::Hosts { most: 2 };
    for (text, joined) in [("", ""), (" db1  Db.example ", "db1 Db.example")] {
        assert_eq!(parse_as(kind, text), Ok(Value::Text(joined.into())));
    }
    for text in ["a b c", "*", "*.example", "db1:9121", "http://db1", "db1/"] {
        assert!(parse_as(kind, text).is_err(), "{text}");
    }
}

#[test]
fn limits_name_some_classes() {
    let limit = |hard, soft, soft_seconds| OutputLimit {
        hard,
        soft,
        soft_seconds,
    };
    let parse = |text| parse_as(Kind::OutputLimits, text);
    assert_eq!(parse(""), Ok(Value::Limits([None; 3])));
    assert_eq!(
        parse("Replica 1mb 1k 60 normal 0 0 0"),
        Ok(Value::Limits([
            Some(limit(0, 0, 0)),
            Some(limit(1 << 20, 1000, 60)),
            None
        ]))
    );
    // The last one counts, and a replica may be called a slave.
    assert_eq!(
        parse("pubsub 1 2 3 slave 4 5 6 pubsub 7 8 9"),
        Ok(Value::Limits([
            None,
            Some(limit(4, 5, 6)),
            Some(limit(7, 8, 9))
        ]))
    );
    for text in [
        "normal",
        "normal 1 2",
        "normal 1 2 3 pubsub",
        "normal 1 2 3 4",
    ] {
        let wrong = "Wrong number of arguments in buffer limit configuration.";
        assert_eq!(parse(text), Err(wrong.to_owned()));
    }
    for text in ["master 1 2 3", "normals 1 2 3", "normal 1 2 3 x 4 5 6"] {
        let wrong = "Invalid client class specified in buffer limit configuration.";
        assert_eq!(parse(text), Err(wrong.to_owned()));
    }
    for text in [
        "normal x 2 3",
        "normal 1 -2 3",
        "normal 1 2 -3",
        "normal 1 2 3k",
        "normal 1 2 99999999999999999999",
    ] {
        let wrong = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        assert_eq!(parse(text), Err(wrong.to_owned()));
    }
}

#[test]
fn save_points_are_kept_as_words() {
    for (text, kept) in [("", ""), (" ", ""), (" 900  1 300 10 ", "900 1 300 10")] {
        let value = Ok(Value::Text(kept.into()));
        assert_eq!(parse_as(Kind::SavePoints, text), value);
    }
    for text in ["900", "0 1", "1 -1", "x 1", "1 1 1"] {
        let wrong = Err("Invalid save parameters".to_owned());
        assert_eq!(parse_as(Kind::SavePoints, text), wrong, "{text}");
    }
}

#[test]
fn names_of_files_are_no_paths() {
    assert_eq!(
        parse_as(Kind::FileName, "a b"),
        Ok(Value::Text("a b".into()))
    );
    assert!(parse_as(Kind::FileName, "a/b").is_err());
}

#[test]
fn a_directory_exists_and_is_known_in_full() {
    let here = std::env::current_dir().and_then(fs::canonicalize);
    let here = here.expect("the tests run somewhere");
    let here = here.to_str().expect("in a path of UTF-8");
    for text in [".", "./", here] {
        assert_eq!(
            parse_as(Kind::Directory, text),
            Ok(Value::Text(here.into()))
        );
    }
    assert!(parse_as(Kind::Directory, "").is_err());
    let missing = parse_as(Kind::Directory, "/no/such/directory");
    assert!(missing.is_err_and(|text| text.starts_with("No such file or directory")));
    let file = parse_as(Kind::Directory, "/dev/null");
    assert_eq!(file, Err("Not a directory".to_owned()));
}

#[test]
fn every_default_is_right_for_its_setting() {
    for row in TABLE {
        let parsed = parse(row, row.default);
        assert!(parsed.is_ok(), "{}: {parsed:?}", row.name);
    }
}
