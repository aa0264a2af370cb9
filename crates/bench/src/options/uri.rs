//! `redis://user:password@host:port/database` and `unix:///path?db=N`, as clients know them.

use crate::wire::target::Address;

/// What a URI says; what it leaves out is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uri {
    pub(crate) address: Address,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: Option<u32>,
}

/// Reads a URI.
///
/// # Errors
/// It is none, or one of TLS.
pub(crate) fn parse(text: &str) -> Result<Uri, String> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Err(format!("'{text}' is no URI such as redis://127.0.0.1:6379"));
    };
    match scheme {
        "redis" | "valkey" => tcp(rest),
        "unix" | "redis+unix" => unix(rest),
        "rediss" | "valkeys" => Err("TLS is not supported".into()),
        _ => Err(format!(
            "'{scheme}' is no scheme of a server's URI: use redis or unix"
        )),
    }
}

fn tcp(rest: &str) -> Result<Uri, String> {
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, place) = match place.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, place),
    };
    let (user, password) = credentials(login)?;
    let path = path.split('?').next().unwrap_or("");
    let database = match path {
        "" => None,
        path => Some(database(path)?),
    };
    Ok(Uri {
        address: host_and_port(place)?,
        user,
        password,
        database,
    })
}

fn unix(rest: &str) -> Result<Uri, String> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (login, path) = match path.split_once('@') {
        Some((login, path)) if !login.starts_with('/') => (Some(login), path),
        _ => (None, path),
    };
    let (user, password) = credentials(login)?;
    if path.is_empty() {
        return Err("the URI names no socket file".into());
    }
    let number = query.split('&').find_map(|part| part.strip_prefix("db="));
    Ok(Uri {
        address: Address::Unix(decoded(path)?.into()),
        user,
        password,
        database: number.map(database).transpose()?,
    })
}

fn credentials(login: Option<&str>) -> Result<(Option<String>, Option<String>), String> {
    let Some(login) = login else {
        return Ok((None, None));
    };
    // A single word is a password, as redis-cli takes it.
    let (user, password) = login.split_once(':').unwrap_or(("", login));
    let user = (!user.is_empty()).then(|| decoded(user)).transpose()?;
    Ok((user, Some(decoded(password)?)))
}

fn database(text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is no number of a database"))
}

/// `host:port`, `[::1]:port` or one of both alone.
pub(crate) fn host_and_port(text: &str) -> Result<Address, String> {
    let wrong = || format!("'{text}' is no host and port");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let host = if host.is_empty() { "127.0.0.1" } else { host };
    let port = match port {
        Some(port) if !port.is_empty() => port.parse().map_err(|_| wrong())?,
        _ => 6379,
    };
    Ok(Address::Tcp(host.to_owned(), port))
}

/// Undoes `%41`.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let code = tail
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = code.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| format!("'{text}' has a % without two digits"))?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("'{text}' is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp_uri(host: &str, port: u16) -> Uri {
        Uri {
            address: Address::Tcp(host.into(), port),
            user: None,
            password: None,
            database: None,
        }
    }

    #[test]
    fn parts_may_be_left_out() {
        assert_eq!(parse("redis://"), Ok(tcp_uri("127.0.0.1", 6379)));
        assert_eq!(parse("redis://h"), Ok(tcp_uri("h", 6379)));
        assert_eq!(parse("redis://:7/"), Ok(tcp_uri("127.0.0.1", 7)));
        assert_eq!(parse("redis://[::1]:8"), Ok(tcp_uri("::1", 8)));
        let all = Uri {
            user: Some("me".into()),
            password: Some("p@ss:w".into()),
            database: Some(3),
            ..tcp_uri("h", 1)
        };
        assert_eq!(parse("redis://me:p%40ss%3aw@h:1/3?x=1"), Ok(all.clone()));
        assert_eq!(parse("valkey://me:p@ss:w@h:1/3"), Ok(all));
        let password = Uri {
            password: Some("p".into()),
            ..tcp_uri("h", 6379)
        };
        assert_eq!(parse("redis://p@h"), Ok(password.clone()));
        assert_eq!(parse("redis://:p@h"), Ok(password));
    }

    #[test]
    fn socket_files_have_uris_too() {
        let uri = parse("unix:///run/f%20e.sock?db=2").expect("it is one");
        assert_eq!(uri.address, Address::Unix("/run/f e.sock".into()));
        assert_eq!(uri.database, Some(2));
        let uri = parse("unix://u:p@/tmp/s").expect("it is one");
        assert_eq!(
            (uri.user.as_deref(), uri.password.as_deref()),
            (Some("u"), Some("p"))
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, reason) in [
            ("h:1", "no URI"),
            ("rediss://h", "TLS"),
            ("http://h", "scheme"),
            ("redis://h:x", "no host and port"),
            ("redis://h:99999", "no host and port"),
            ("redis://[::1", "no host and port"),
            ("redis://h/x", "database"),
            ("redis://%zz@h", "digits"),
            ("redis://%4@h", "digits"),
            ("unix://", "socket file"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
