//! Memory that this process occupies, and how much there is.

/// The memory of the machine, in bytes; 0 if the system does not tell. A container may be allowed
/// less: see [`cgroup_memory_limit`](super::cgroup_memory_limit).
#[must_use]
pub fn total_memory_bytes() -> u64 {
    setting(libc::_SC_PHYS_PAGES) * page_bytes()
}

fn page_bytes() -> u64 {
    setting(libc::_SC_PAGESIZE)
}

/// A value of `sysconf`; 0 if there is none.
fn setting(name: libc::c_int) -> u64 {
    // SAFETY: the call takes an integer and returns one.
    u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or(0)
}

/// The physical memory that this process occupies, in bytes, shared pages included; 0 if the system
/// does not tell.
#[must_use]
#[cfg(target_os = "linux")]
pub fn rss_bytes() -> u64 {
    // Sizes in pages; the second is the resident one.
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok());
    pages.unwrap_or(0) * page_bytes()
}

/// The most that [`rss_bytes`] has been since the start of the program; 0 if the system does not
/// tell.
#[must_use]
#[cfg(target_os = "linux")]
pub fn peak_rss_bytes() -> u64 {
    // Not the peak of getrusage, which begins with that of whoever started this program.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    // The two are not updated together, and a peak below the present would be odd.
    high_water_bytes(&status).unwrap_or(0).max(rss_bytes())
}

/// The line `VmHWM:     1234 kB`.
#[cfg(target_os = "linux")]
fn high_water_bytes(status: &str) -> Option<u64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1_024)
}

/// The physical memory that this process occupies, in bytes; 0 if the system does not tell.
#[must_use]
#[cfg(target_os = "macos")]
pub fn rss_bytes() -> u64 {
    // SAFETY: a proc_taskinfo is integers, for which all bits zero is a value.
    let mut info: libc::proc_taskinfo = unsafe { std::mem::zeroed() };
    let size = size_of_val(&info) as libc::c_int;
    // SAFETY: the size is that of the structure, which the call may write. Should it fail, the size
    // is zero.
    unsafe {
        let pid = libc::getpid();
        libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, (&raw mut info).cast(), size);
    }
    info.pti_resident_size
}

/// The physical memory that this process occupies, in bytes; 0 if the system does not tell.
#[must_use]
#[cfg(target_os = "freebsd")]
pub fn rss_bytes() -> u64 {
    // SAFETY: a kinfo_proc is integers and pointers that nobody follows, for which all bits zero is
    // a value.
    let mut info: libc::kinfo_proc = unsafe { std::mem::zeroed() };
    let mut size = size_of_val(&info);
    // SAFETY: the call takes nothing and returns the number of this process.
    let pid = unsafe { libc::getpid() };
    let name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_PID, pid];
    // SAFETY: the name has four parts; the size is that of the structure, which the call may write;
    // nothing is set. Should it fail, the size is zero.
    unsafe {
        libc::sysctl(
            name.as_ptr(),
            4,
            (&raw mut info).cast(),
            &mut size,
            std::ptr::null(),
            0,
        )
    };
    u64::try_from(info.ki_rssize).unwrap_or(0) * page_bytes()
}

/// The most that [`rss_bytes`] has been since the start of the program; 0 if the system does not
/// tell.
#[must_use]
#[cfg(not(target_os = "linux"))]
pub fn peak_rss_bytes() -> u64 {
    // macOS counts bytes, FreeBSD kilobytes.
    const UNIT: u64 = if cfg!(target_os = "macos") { 1 } else { 1_024 };
    // SAFETY: a rusage is integers, for which all bits zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the call may write the structure. Should it fail, the peak is zero.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    u64::try_from(usage.ru_maxrss).unwrap_or(0) * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn memory_in_use_is_resident_and_stays_in_the_peak() {
        let before = rss_bytes();
        assert!(before > 0);
        let block = vec![1_u8; 64 * MIB as usize];
        let during = rss_bytes();
        // Other tests of this process free a little at the same time.
        assert!(during > before + 48 * MIB, "{before} then {during}");
        assert!(peak_rss_bytes() >= during - 16 * MIB);
        drop(std::hint::black_box(block));
        assert!(peak_rss_bytes() > before + 48 * MIB);
        assert!(total_memory_bytes() > during);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machines_memory_is_what_the_kernel_shows() {
        let text = std::fs::read_to_string("/proc/meminfo").expect("there is a /proc");
        let line = text
            .lines()
            .find(|line| line.starts_with("MemTotal:"))
            .expect("a total");
        let kib: u64 = line
            .split_ascii_whitespace()
            .nth(1)
            .expect("a number")
            .parse()
            .expect("a number");
        assert_eq!(total_memory_bytes(), kib * 1_024);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_is_found_among_other_lines() {
        let status = "Name:\tx\nVmPeak:\t    9999 kB\nVmHWM:\t    1234 kB\nVmRSS:\t 1000 kB\n";
        assert_eq!(high_water_bytes(status), Some(1_234 * 1_024));
        assert_eq!(high_water_bytes("Name:\tkthreadd\n"), None);
        assert_eq!(high_water_bytes("VmHWM:\t x kB\n"), None);
    }
}
