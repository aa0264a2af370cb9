//! A server's address in one word.
//!
//! ```text
//!   redis://[[USER:]PASSWORD@][HOST[:PORT]][/DB]
//!   unix://[[USER:]PASSWORD@]PATH[?db=DB]
//! ```
//!
//! `valkey://` and `ferrite://` mean the same as `redis://`. User and password have `%XX` for what cannot
//! stand in a URI.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use crate::access::Access;
use crate::connection::Place;

/// Sets what an URI says, and leaves alone what it does not.
///
/// # Errors
/// In words for the person who typed it.
pub(crate) fn parse(uri: &[u8], access: &mut Access) -> Result<(), String> {
    let text = std::str::from_utf8(uri).map_err(|_| "Invalid URI: no UTF-8".to_owned())?;
    let (scheme, rest) = text.split_once("://").ok_or("Invalid URI scheme")?;
    // A password may have an @ that nobody encoded; a host never has.
    let rest = match rest.rsplit_once('@') {
        Some((person, rest)) => {
            set_person(person, access)?;
            rest
        }
        None => rest,
    };
    match scheme.to_ascii_lowercase().as_str() {
        "redis" | "valkey" | "ferrite" => set_place(rest, access),
        "unix" => set_socket(rest, access),
        "rediss" | "valkeys" => Err(format!(
            "{scheme}:// needs TLS, which this program does not speak yet"
        )),
        _ => Err("Invalid URI scheme".to_owned()),
    }
}

fn set_person(person: &str, access: &mut Access) -> Result<(), String> {
    let password = match person.split_once(':') {
        Some((user, password)) => {
            // `:password@` is how many write that there is no user.
            access.user = Some(decode(user)?).filter(|user| !user.is_empty());
            password
        }
        None => person,
    };
    access.password = Some(decode(password)?);
    Ok(())
}

fn set_place(rest: &str, access: &mut Access) -> Result<(), String> {
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let Place::Port(mut host, mut port) = access.place.clone() else {
        return Err("a URI and a socket exclude each other".to_owned());
    };
    let (name, number) = match authority.rsplit_once(':') {
        // The colons of an address in brackets are its own.
        Some((name, number)) if !number.contains(']') => (name, Some(number)),
        _ => (authority, None),
    };
    if !name.is_empty() {
        name.trim_start_matches('[')
            .trim_end_matches(']')
            .clone_into(&mut host);
    }
    if let Some(number) = number.filter(|number| !number.is_empty()) {
        port = number
            .parse()
            .map_err(|_| format!("Invalid URI: '{number}' is no port"))?;
    }
    access.place = Place::Port(host, port);
    set_database(database, access)
}

fn set_socket(rest: &str, access: &mut Access) -> Result<(), String> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = decode(path)?;
    access.place = Place::Socket(OsStr::from_bytes(&path).into());
    set_database(query.strip_prefix("db=").unwrap_or(query), access)
}

fn set_database(text: &str, access: &mut Access) -> Result<(), String> {
    if !text.is_empty() {
        access.database = text
            .parse()
            .map_err(|_| format!("Invalid URI: '{text}' is no database number"))?;
        access.is_database_chosen = true;
    }
    Ok(())
}

/// Replaces `%XX` by the byte.
fn decode(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let [high, low, after @ ..] = after else {
            return Err("Incomplete URI encoding".to_owned());
        };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        match (digit(high), digit(low)) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err("Illegal character in URI encoding".to_owned()),
        }
        rest = after;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Options;

    fn access(uri: &str) -> Result<Access, String> {
        let mut access = Options::new().access;
        parse(uri.as_bytes(), &mut access).map(|()| access)
    }

    /// A URI, and the place, user, password and database that it names.
    type Case = (
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
        u64,
    );

    #[test]
    fn every_part_may_be_missing() {
        let cases: &[Case] = &[
            ("redis://", "127.0.0.1:6379", None, None, 0),
            ("redis://h", "h:6379", None, None, 0),
            ("REDIS://h:7", "h:7", None, None, 0),
            ("redis://:7", "127.0.0.1:7", None, None, 0),
            ("redis:///5", "127.0.0.1:6379", None, None, 5),
            ("redis://h:7/5", "h:7", None, None, 5),
            ("redis://h/", "h:6379", None, None, 0),
            ("redis://p@h", "h:6379", None, Some("p"), 0),
            ("redis://:p@h", "h:6379", None, Some("p"), 0),
            ("redis://u:p@h", "h:6379", Some("u"), Some("p"), 0),
            ("redis://u:p@", "127.0.0.1:6379", Some("u"), Some("p"), 0),
            (
                "redis://u%3a:p%40%2F@h",
                "h:6379",
                Some("u:"),
                Some("p@/"),
                0,
            ),
            ("redis://u:p@ss@h", "h:6379", Some("u"), Some("p@ss"), 0),
            ("redis://[::1]", "[::1]:6379", None, None, 0),
            ("valkey://p@[::1]:7/2", "[::1]:7", None, Some("p"), 2),
            ("unix:///run/x.sock", "/run/x.sock", None, None, 0),
            ("unix://u:p@/x%20y?db=3", "/x y", Some("u"), Some("p"), 3),
        ];
        for (uri, place, user, password, database) in cases {
            let access = access(uri).unwrap_or_else(|error| panic!("{uri}: {error}"));
            assert_eq!(access.place.to_string(), *place, "{uri}");
            assert_eq!(access.user.as_deref(), user.map(str::as_bytes), "{uri}");
            assert_eq!(
                access.password.as_deref(),
                password.map(str::as_bytes),
                "{uri}"
            );
            assert_eq!(access.database, *database, "{uri}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (uri, wrong) in [
            ("http://h", "scheme"),
            ("h:6379", "scheme"),
            ("rediss://h", "TLS"),
            ("redis://%4@h", "Incomplete"),
            ("redis://%zz@h", "Illegal"),
            ("redis://h:port", "'port' is no port"),
            ("redis://h:70000", "'70000' is no port"),
            ("redis://h/x", "'x' is no database"),
        ] {
            let error = access(uri).expect_err(uri);
            assert!(error.contains(wrong), "{uri}: {error}");
        }
    }
}
