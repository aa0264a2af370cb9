//! Addresses of sockets: the paths that the kernel has room for, and how Ferrite writes addresses for people.

use rustix::net::{AddressFamily, SocketAddrUnix};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Bytes of the longest path: the zero byte at its end has to fit as well.
const LONGEST_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// What an address belongs to.
pub(super) fn family(address: &SocketAddr) -> AddressFamily {
    match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    }
}

/// The address of a socket file.
///
/// # Errors
/// `InvalidInput` if the kernel has no room for the path, or it is empty or has a zero byte.
pub(super) fn unix(path: &Path) -> io::Result<SocketAddrUnix> {
    let bytes = path.as_os_str().as_bytes();
    let invalid = |text| io::Error::new(io::ErrorKind::InvalidInput, text);
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(invalid("not a path for a socket".to_owned()));
    }
    if bytes.len() > LONGEST_PATH {
        let len = bytes.len();
        return Err(invalid(format!(
            "the path of a socket has at most {LONGEST_PATH} bytes, this has {len}"
        )));
    }
    Ok(SocketAddrUnix::new(path)?)
}

/// An address and port as clients and operators see it: `127.0.0.1:6379`, `[::1]:6379`. Without the
/// zone of a link-local address, which the field's tools do not expect.
pub(super) fn text(address: &SocketAddr) -> String {
    match address.ip() {
        IpAddr::V4(ip) => format!("{ip}:{}", address.port()),
        IpAddr::V6(ip) => format!("[{ip}]:{}", address.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddrV6;

    #[test]
    fn an_address_is_written_with_its_port() {
        for given in [
            "127.0.0.1:6379",
            "255.1.2.3:65535",
            "0.0.0.0:0",
            "[::1]:1",
            "[2001:db8::7:8]:443",
        ] {
            assert_eq!(text(&given.parse().expect("a valid address")), given);
        }
    }

    #[test]
    fn a_zone_is_not_written() {
        let ip = "fe80::1".parse().expect("valid");
        assert_eq!(text(&SocketAddrV6::new(ip, 7, 0, 3).into()), "[fe80::1]:7");
    }

    #[test]
    fn a_path_has_to_fit() {
        assert!(unix(Path::new(&"x".repeat(LONGEST_PATH))).is_ok());
        for bad in [
            "x".repeat(LONGEST_PATH + 1),
            String::new(),
            "a\0b".to_owned(),
        ] {
            let error = unix(Path::new(&bad)).expect_err("it is refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }
}
