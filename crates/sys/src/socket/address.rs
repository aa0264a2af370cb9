//! Socket addresses in the kernel's form, and how Ferrite writes them for people.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An address as the kernel reads and writes it.
pub(super) struct Address {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl Address {
    /// No address yet, with room for any.
    pub(super) fn empty() -> Address {
        // SAFETY: a sockaddr_storage is integers, for which all bits zero is a value.
        let storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        Address {
            storage,
            length: size_of_val(&storage) as libc::socklen_t,
        }
    }

    pub(super) fn inet(address: SocketAddr) -> Address {
        match address {
            SocketAddr::V4(v4) => Address::v4(v4),
            SocketAddr::V6(v6) => Address::v6(v6),
        }
    }

    fn v4(address: SocketAddrV4) -> Address {
        let mut result = Address::empty();
        let target = (&raw mut result.storage).cast::<libc::sockaddr_in>();
        // SAFETY: a sockaddr_storage is as large and as aligned as any address, and zeroed, so it
        // is one.
        let target = unsafe { &mut *target };
        target.sin_family = libc::AF_INET as libc::sa_family_t;
        target.sin_port = address.port().to_be();
        target.sin_addr.s_addr = u32::from_ne_bytes(address.ip().octets());
        result.finish(size_of::<libc::sockaddr_in>())
    }

    fn v6(address: SocketAddrV6) -> Address {
        let mut result = Address::empty();
        let target = (&raw mut result.storage).cast::<libc::sockaddr_in6>();
        // SAFETY: a sockaddr_storage is as large and as aligned as any address, and zeroed, so it
        // is one.
        let target = unsafe { &mut *target };
        target.sin6_family = libc::AF_INET6 as libc::sa_family_t;
        target.sin6_port = address.port().to_be();
        target.sin6_addr.s6_addr = address.ip().octets();
        target.sin6_flowinfo = address.flowinfo();
        target.sin6_scope_id = address.scope_id();
        result.finish(size_of::<libc::sockaddr_in6>())
    }

    /// # Errors
    /// `InvalidInput` if the kernel has no room for the path (107 bytes on Linux, 103 elsewhere) or
    /// it is empty or has a zero byte.
    pub(super) fn unix(path: &Path) -> io::Result<Address> {
        let bytes = path.as_os_str().as_bytes();
        let mut result = Address::empty();
        let target = (&raw mut result.storage).cast::<libc::sockaddr_un>();
        // SAFETY: a sockaddr_storage is as large and as aligned as any address, and zeroed, so it
        // is one.
        let target = unsafe { &mut *target };
        // The zero byte at the end has to fit as well.
        let longest = target.sun_path.len() - 1;
        if bytes.is_empty() || bytes.contains(&0) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a path for a socket",
            ));
        }
        if bytes.len() > longest {
            let text = format!(
                "the path of a socket has at most {longest} bytes, this has {}",
                bytes.len()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        target.sun_family = libc::AF_UNIX as libc::sa_family_t;
        for (target, &byte) in target.sun_path.iter_mut().zip(bytes) {
            // The type is signed on some systems; the bits are the byte's.
            *target = byte as libc::c_char;
        }
        let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + bytes.len() + 1;
        Ok(result.finish(length))
    }

    /// Notes the length, which the BSDs want to have inside of the structure too.
    fn finish(mut self, length: usize) -> Address {
        self.length = length as libc::socklen_t;
        #[cfg(not(target_os = "linux"))]
        {
            // At most the 128 bytes of a sockaddr_storage.
            self.storage.ss_len = length as u8;
        }
        self
    }

    /// The address as the kernel wants to read it.
    pub(super) fn as_parts(&self) -> (*const libc::sockaddr, libc::socklen_t) {
        ((&raw const self.storage).cast(), self.length)
    }

    /// Room for the kernel to write an address and its length into.
    pub(super) fn as_parts_mut(&mut self) -> (*mut libc::sockaddr, *mut libc::socklen_t) {
        ((&raw mut self.storage).cast(), &raw mut self.length)
    }

    pub(super) fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }

    /// The address, if it is one of IPv4 or IPv6.
    pub(super) fn to_inet(&self) -> Option<SocketAddr> {
        match self.family() {
            libc::AF_INET => {
                // SAFETY: the family says which address this is; the storage is as aligned and as
                // large as any.
                let address = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes());
                Some(SocketAddrV4::new(ip, u16::from_be(address.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: the family says which address this is; the storage is as aligned and as
                // large as any.
                let address = unsafe { &*(&raw const self.storage).cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(address.sin6_addr.s6_addr);
                let port = u16::from_be(address.sin6_port);
                Some(
                    SocketAddrV6::new(ip, port, address.sin6_flowinfo, address.sin6_scope_id)
                        .into(),
                )
            }
            _ => None,
        }
    }
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

    #[test]
    fn addresses_survive_the_kernels_form() {
        for given in [
            "127.0.0.1:6379",
            "255.1.2.3:65535",
            "0.0.0.0:0",
            "[::1]:1",
            "[2001:db8::7:8]:443",
        ] {
            let address: SocketAddr = given.parse().expect("a valid address");
            assert_eq!(Address::inet(address).to_inet(), Some(address));
            assert_eq!(text(&address), given);
        }
    }

    #[test]
    fn a_zone_is_kept_but_not_written() {
        let address = SocketAddr::from(SocketAddrV6::new(
            "fe80::1".parse().expect("valid"),
            7,
            0,
            3,
        ));
        assert_eq!(Address::inet(address).to_inet(), Some(address));
        assert_eq!(text(&address), "[fe80::1]:7");
    }

    #[test]
    fn a_path_has_to_fit() {
        let longest = if cfg!(target_os = "linux") { 107 } else { 103 };
        assert!(Address::unix(Path::new(&"x".repeat(longest))).is_ok());
        for bad in ["x".repeat(longest + 1), String::new(), "a\0b".to_owned()] {
            let error = Address::unix(Path::new(&bad)).err().expect("it is refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_unix_address_is_no_inet_address() {
        let address = Address::unix(Path::new("/tmp/x")).expect("a short path");
        assert_eq!(address.family(), libc::AF_UNIX);
        assert_eq!(address.to_inet(), None);
        assert_eq!(Address::empty().to_inet(), None);
    }
}
