//! A memory cgroup of a test's own: what a container is to the memory of the process in it. The kernel kills
//! what does not keep to it.
//!
//! Both generations of the interface are tried. Where a test may not make groups, [`MemoryGroup::new`] says
//! why.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

/// Where groups of a generation are, and which files say what.
struct Tree {
    mounted: &'static str,
    limit: &'static str,
    peak: &'static str,
    events: &'static str,
}

const TREES: [Tree; 2] = [
    Tree {
        mounted: "/sys/fs/cgroup/memory",
        limit: "memory.limit_in_bytes",
        peak: "memory.max_usage_in_bytes",
        events: "memory.oom_control",
    },
    Tree {
        mounted: "/sys/fs/cgroup",
        limit: "memory.max",
        peak: "memory.peak",
        events: "memory.events",
    },
];

/// See the module. Dropped behind the servers in it.
pub(crate) struct MemoryGroup {
    dir: PathBuf,
    tree: &'static Tree,
}

impl MemoryGroup {
    /// A group whose processes may take so many bytes together, page cache included.
    ///
    /// # Errors
    /// This process may make none; the text says what was tried.
    pub(crate) fn new(limit: u64) -> Result<MemoryGroup, String> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "ferrite-test-{}-{}",
            std::process::id(),
            NUMBER.fetch_add(1, Ordering::Relaxed)
        );
        let mut problems = String::new();
        for tree in &TREES {
            let dir = Path::new(tree.mounted).join(&name);
            let file = dir.join(tree.limit);
            if let Err(error) = fs::create_dir(&dir) {
                problems += &format!("{}: {error}; ", dir.display());
                continue;
            }
            let group = MemoryGroup { dir, tree };
            match fs::OpenOptions::new().write(true).open(&file) {
                Ok(_) if fs::write(&file, limit.to_string()).is_ok() => return Ok(group),
                result => problems += &format!("{}: {:?}; ", file.display(), result.err()),
            }
        }
        Err(problems)
    }

    /// The same command, run inside of the group.
    pub(crate) fn enter(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        inside
            .args(["-c", "echo $$ > \"$0\" && exec \"$@\""])
            .arg(self.dir.join("cgroup.procs"))
            .arg(command.get_program())
            .args(command.get_args());
        inside
    }

    /// How often the kernel has killed a process of it.
    pub(crate) fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(self.tree.events)).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.and_then(|count| count.trim().parse().ok())
            .unwrap_or(0)
    }

    /// The most bytes that its processes have taken together, page cache included.
    pub(crate) fn peak(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(self.tree.peak)).unwrap_or_default();
        text.trim().parse().unwrap_or(0)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A process that has just ended may still be in it. A group that stays harms nobody.
        for _ in 0..100 {
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}
