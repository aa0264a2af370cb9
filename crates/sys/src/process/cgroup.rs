//! The memory limit that a container sets, which the kernel enforces by killing.
//!
//! Groups nest, and the tightest limit on the way to the root counts. Version 2 has one tree of
//! groups, version 1 one per controller; a machine can have both. Where a group's files are comes
//! from two places: `/proc/self/cgroup` says which group this process is in, `/proc/self/mountinfo`
//! where the tree is mounted and which part of it.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most memory that this process may use by its cgroup or any group around it, in bytes; `None`
/// without a limit.
#[must_use]
pub fn cgroup_memory_limit() -> Option<u64> {
    let groups = fs::read("/proc/self/cgroup").ok()?;
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    tightest_limit(
        &String::from_utf8_lossy(&groups),
        &String::from_utf8_lossy(&mounts),
        &|path| fs::read_to_string(path).ok(),
    )
}

/// The two generations of the interface, with the file that holds a group's limit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn file(self) -> &'static str {
        match self {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        }
    }
}

/// A mounted tree of groups that limit memory.
struct Mount {
    version: Version,
    /// The group that appears at `point`: not the root, if a container sees only its part of the
    /// tree.
    root: PathBuf,
    point: PathBuf,
}

fn tightest_limit(
    groups: &str,
    mounts: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<u64> {
    let mounts: Vec<Mount> = mounts.lines().filter_map(parse_mount).collect();
    let groups = groups.lines().filter_map(parse_group);
    let trees = groups.flat_map(|(version, group)| {
        let of_version = mounts.iter().filter(move |mount| mount.version == version);
        of_version.flat_map(move |mount| directories(mount, group))
    });
    let file = |(version, directory): (Version, PathBuf)| read(&directory.join(version.file()));
    trees
        .filter_map(file)
        .filter_map(|text| parse_limit(&text))
        .min()
}

/// The directory of the group and those of the groups around it, as far as they are mounted.
fn directories(mount: &Mount, group: &Path) -> Vec<(Version, PathBuf)> {
    // A group that is not below the mounted one is seen from inside of a namespace that does not
    // hold it: all that can be seen is the mounted one.
    let below = group.strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let below = if below
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
    {
        below
    } else {
        Path::new("")
    };
    below
        .ancestors()
        .map(|below| (mount.version, mount.point.join(below)))
        .collect()
}

/// A line of `/proc/self/cgroup`: `0::/path` in version 2, `4:cpu,memory:/path` in version 1. Only
/// the groups that limit memory.
fn parse_group(line: &str) -> Option<(Version, &Path)> {
    let mut fields = line.splitn(3, ':');
    let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    if id == "0" && controllers.is_empty() {
        Some((Version::Two, Path::new(path)))
    } else if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        Some((Version::One, Path::new(path)))
    } else {
        None
    }
}

/// A line of `/proc/self/mountinfo`: `31 23 0:28 /root /point options [more ...] - type source
/// super-options`.
fn parse_mount(line: &str) -> Option<Mount> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, point) = (unescape(place.next()?), unescape(place.next()?));
    let mut kind = kind.split(' ');
    let version = match (kind.next()?, kind.nth(1)) {
        ("cgroup2", _) => Version::Two,
        ("cgroup", Some(options)) if options.split(',').any(|option| option == "memory") => {
            Version::One
        }
        _ => return None,
    };
    Some(Mount {
        version,
        root: root.into(),
        point: point.into(),
    })
}

/// Undoes the octal escapes of blanks and backslashes in mountinfo, `\040` for a space.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            Some(byte) => {
                result.push(char::from(byte));
                result.push_str(&part[3..]);
            }
            None => {
                result.push('\\');
                result.push_str(part);
            }
        }
    }
    result
}

/// A limit in bytes. Version 2 writes `max` for none, version 1 the largest multiple of a page.
fn parse_limit(text: &str) -> Option<u64> {
    const NO_LIMIT: u64 = 1 << 62;
    text.trim().parse().ok().filter(|&bytes| bytes < NO_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const V2: &str =
        "30 23 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";

    fn limit(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
        let files: HashMap<PathBuf, &str> = files
            .iter()
            .map(|(path, text)| (path.into(), *text))
            .collect();
        tightest_limit(groups, mounts, &|path| {
            files.get(path).map(|text| (*text).to_owned())
        })
    }

    #[test]
    fn the_tightest_group_of_version_2_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/c/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "2000\n"),
            ("/sys/fs/cgroup/a/memory.max", "3000\n"),
            ("/sys/fs/cgroup/other/memory.max", "1\n"),
        ];
        assert_eq!(limit("0::/a/b/c\n", V2, &files), Some(2_000));
        assert_eq!(limit("0::/a\n", V2, &files), Some(3_000));
        assert_eq!(limit("0::/\n", V2, &files), None);
    }

    #[test]
    fn version_1_is_found_among_its_controllers() {
        let groups = "9:name=systemd:/\n5:cpuset,memory,cpu:/docker/x\n1:cpu:/y\n";
        let files = [
            (
                "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            (
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "4096\n",
            ),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/cpu/y/memory.limit_in_bytes", "1\n"),
        ];
        assert_eq!(limit(groups, V1, &files), Some(4_096));
        assert_eq!(limit(groups, V1, &files[..1]), None);
    }

    #[test]
    fn both_versions_at_once_count_both() {
        let mounts = format!("{V1}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
        let groups = "4:memory:/a\n0::/b\n";
        let files = [
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "500"),
            ("/sys/fs/cgroup/unified/b/memory.max", "400"),
        ];
        assert_eq!(limit(groups, &mounts, &files), Some(400));
        assert_eq!(limit(groups, &mounts, &files[..1]), Some(500));
    }

    #[test]
    fn a_container_that_sees_only_its_part_finds_its_limit() {
        // Version 1 as Docker mounts it without a namespace: the group's path is that on the host.
        let mounts =
            "50 40 0:32 /docker/x /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n";
        let files = [
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "777"),
            ("/sys/fs/cgroup/memory/sub/memory.limit_in_bytes", "666"),
        ];
        assert_eq!(limit("4:memory:/docker/x\n", mounts, &files), Some(777));
        assert_eq!(limit("4:memory:/docker/x/sub\n", mounts, &files), Some(666));
        // In a namespace of its own, or with a group outside of what is mounted.
        assert_eq!(limit("4:memory:/\n", mounts, &files), Some(777));
        assert_eq!(limit("4:memory:/docker/xy\n", mounts, &files), Some(777));
        assert_eq!(
            limit(
                "0::/../b\n",
                V2,
                &[("/sys/fs/cgroup/memory.max", "5"), ("/b/memory.max", "4")]
            ),
            Some(5)
        );
    }

    #[test]
    fn odd_names_are_understood() {
        let mounts = "50 40 0:32 / /mnt/a\\040b\\134c rw - cgroup2 none rw\n";
        assert_eq!(
            limit("0::/x:y\n", mounts, &[("/mnt/a b\\c/x:y/memory.max", "9")]),
            Some(9)
        );
        assert_eq!(unescape("a\\04"), "a\\04");
        assert_eq!(unescape("\\\\777"), "\\\\777");
    }

    #[test]
    fn nonsense_is_no_limit() {
        for text in [
            "",
            "max",
            "-1",
            "x",
            "18446744073709551616",
            "9223372036854771712",
        ] {
            assert_eq!(parse_limit(text), None, "{text}");
        }
        assert_eq!(parse_limit("0\n"), Some(0));
        for line in [
            "",
            "a",
            "0:",
            "0::",
            "1:memory",
            " - ",
            "1 2 3 - cgroup2",
            "1 2 3 / /x - cgroup none",
        ] {
            let _ = parse_group(line);
            assert!(parse_mount(line).is_none(), "{line}");
        }
        assert_eq!(limit("junk\n", "junk\n", &[]), None);
    }

    #[test]
    fn the_real_files_are_understood() {
        // The machine's limit, if there is one, is more than this process has already.
        if let Some(limit) = cgroup_memory_limit() {
            assert!(limit >= super::super::rss_bytes());
        }
    }
}
