//! What is on a host, as `probe.sh` says it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use map::Map;

use crate::cluster::ssh::Failed;

/// Which service manager starts the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manager {
    /// None: the node runs on its own.
    None,
    System,
    User,
}

impl Manager {
    /// Its word in the scripts.
    pub(super) fn word(self) -> &'static str {
        match self {
            Manager::None => "",
            Manager::System => "system",
            Manager::User => "user",
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Found {
    /// The directory of the node, absolute.
    pub(super) dir: String,
    /// The architecture, in the word of Rust.
    pub(super) machine: String,
    pub(super) system: String,
    /// The address at which the host was reached, as it knows it itself.
    pub(super) address: Option<IpAddr>,
    /// Why the directory cannot be written.
    pub(super) unwritable: Option<String>,
    /// The line of `df`.
    pub(super) space: String,
    /// What `cksum` says of the server there.
    pub(super) binary: Option<String>,
    /// What it says of the sources that the server was built from.
    pub(super) source: Option<String>,
    pub(super) config: Option<String>,
    pub(super) map: Option<Map>,
    pub(super) is_running: bool,
    pub(super) serves: bool,
    /// Addresses at which some process listens at the node's port.
    pub(super) listens: Vec<IpAddr>,
    pub(super) has_cargo: bool,
    pub(super) manager: Manager,
}

impl Found {
    /// What a host answered. A login may print other lines too.
    ///
    /// # Errors
    /// The answer is not whole, or a file there is broken.
    pub(super) fn read(answer: &str) -> Result<Found, Failed> {
        let said = answer
            .lines()
            .filter_map(|line| line.strip_prefix("ferrite:")?.split_once('='));
        let mut listens = Vec::new();
        let mut facts: HashMap<&str, &str> = HashMap::new();
        for (name, value) in said {
            if name == "listens" {
                listens.extend(address_of_table(value));
            }
            facts.insert(name, value.trim());
        }
        let text = |name: &str| facts.get(name).map(|value| (*value).to_owned());
        let needed = |name: &str| {
            text(name).ok_or_else(|| Failed::because("cannot understand its answer", answer.trim()))
        };
        needed("end")?;
        let file = |name: &str| facts.get(name).and_then(|digits| from_digits(digits));
        let map = file("map").map(|text| Map::parse(&text)).transpose();
        let map = map.map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failed::because("its map.toml is broken", lines.join("\n"))
        })?;
        Ok(Found {
            dir: needed("dir")?,
            machine: architecture(&needed("machine")?).to_owned(),
            system: needed("system")?.to_lowercase(),
            address: facts.get("connection").and_then(|words| own_address(words)),
            unwritable: text("unwritable"),
            space: text("space").unwrap_or_default(),
            binary: text("binary"),
            source: file("source")
                .map(|text| text.trim().to_owned())
                .filter(|sum| !sum.is_empty()),
            config: file("config"),
            map,
            is_running: facts.contains_key("pid"),
            serves: facts.contains_key("serves"),
            listens,
            has_cargo: facts.contains_key("cargo"),
            manager: match facts.get("manager").copied() {
                Some("system") => Manager::System,
                Some("user") => Manager::User,
                _ => Manager::None,
            },
        })
    }

    /// Kibibytes that are free, if `df` says so.
    pub(super) fn free_kib(&self) -> Option<u64> {
        // Name, size, used, available, share, place. The name may have spaces, and so may the place.
        let mut words = self.space.split_whitespace().peekable();
        let mut last = None;
        while let Some(word) = words.next() {
            if words.peek().is_some_and(|next| next.ends_with('%')) {
                last = word.parse().ok();
                break;
            }
        }
        last
    }
}

/// The word of Rust for an architecture that `uname -m` names.
fn architecture(machine: &str) -> &str {
    match machine {
        "arm64" => "aarch64",
        "amd64" => "x86_64",
        other => other,
    }
}

/// The third word of `SSH_CONNECTION`.
fn own_address(words: &str) -> Option<IpAddr> {
    words.split_whitespace().nth(2)?.parse().ok()
}

/// A text that was sent as hexadecimal digits.
fn from_digits(digits: &str) -> Option<String> {
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The address of `0100007F:18EC`: words of four bytes, each in the order of the processor.
fn address_of_table(entry: &str) -> Option<IpAddr> {
    let (address, _) = entry.split_once(':')?;
    let word = |at: usize| {
        Some(
            u32::from_str_radix(address.get(8 * at..8 * at + 8)?, 16)
                .ok()?
                .swap_bytes(),
        )
    };
    match address.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(at)?.to_be_bytes());
            }
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_taken_apart() {
        let answer = "Welcome!\nferrite:dir=/home/ann/ferrite-cluster/6380\n\
                       ferrite:machine=arm64\nferrite:system=Linux\n\
                      ferrite:connection=10.0.0.9 5000 10.0.0.1 22\n\
                      ferrite:space=/dev/my disk 1000 400 600 40% /home/a b\nferrite:binary=123 456\n\
                      ferrite:config=706f72740a\nferrite:pid=7\nferrite:listens=0100007F:18EC\n\
                      ferrite:listens=00000000000000000000000001000000:18EC\n\
                       ferrite:manager=user\nferrite:end=yes\n";
        let found = Found::read(answer).expect("it is whole");
        assert_eq!(found.dir, "/home/ann/ferrite-cluster/6380");
        assert_eq!(
            (found.machine.as_str(), found.system.as_str()),
            ("aarch64", "linux")
        );
        assert_eq!(found.address, Some([10, 0, 0, 1].into()));
        assert_eq!(found.free_kib(), Some(600));
        assert_eq!(found.binary.as_deref(), Some("123 456"));
        assert_eq!(found.config.as_deref(), Some("port\n"));
        assert_eq!(
            (found.is_running, found.serves, found.has_cargo),
            (true, false, false)
        );
        assert_eq!(
            found.listens,
            [IpAddr::from([127, 0, 0, 1]), Ipv6Addr::LOCALHOST.into()]
        );
        assert_eq!(found.manager, Manager::User);

        let half = answer.replace("ferrite:end=yes\n", "");
        let failed = Found::read(&half).expect_err("it is cut off");
        assert_eq!(failed.what, "cannot understand its answer");
        let broken = answer.replace("ferrite:pid=7", "ferrite:map=7b");
        let failed = Found::read(&broken).expect_err("its map is broken");
        assert_eq!(failed.what, "its map.toml is broken");
    }
}
