//! What a process does to itself as a whole: going to the background, signals while threads run,
//! limits. Each case runs in a process of its own, started by this program with the case's name,
//! because a test harness has threads and shares one process among all tests.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use sys::signal::Interrupts;
use sys::{Backend, Interest, Poller, Signal, Signals, process, signal};

/// A case, and what its parent must find.
struct Case {
    name: &'static str,
    /// What runs in the process of its own. It fails by ending otherwise than by returning.
    run: fn(&mut UnixStream),
    /// All that it prints before it ends.
    stdout: &'static str,
    /// All that it writes into its connection to the parent, or that a process writes which
    /// outlives it. The end comes when the last of them has ended.
    report: &'static str,
}

/// A case that says nothing.
const fn silent(name: &'static str, run: fn(&mut UnixStream)) -> Case {
    Case {
        name,
        run,
        stdout: "",
        report: "",
    }
}

const CASES: &[Case] = &[
    Case {
        name: "a_daemon_leaves_its_parent_and_terminal",
        run: run_daemon,
        stdout: "before",
        report: "another process, session leader, /dev/null /dev/null /dev/null, same directory",
    },
    silent("names_are_those_that_uname_prints", run_names),
    silent(
        "a_child_costs_its_parent_once_it_was_waited_for",
        run_children,
    ),
    silent("a_process_with_threads_does_not_fork", run_threaded),
    silent("signals_reach_the_poller_and_not_the_threads", run_signals),
    silent(
        "an_interrupt_is_heard_here_and_ends_children",
        run_interrupts,
    ),
    silent("a_broken_connection_is_an_error", run_broken_pipe),
    silent("the_open_files_limit_rises", run_open_files),
    silent("the_first_thread_has_its_own_times", run_main_thread),
    #[cfg(target_os = "linux")]
    silent(
        "a_kernel_without_nanosecond_waits_will_do",
        run_without_nanoseconds,
    ),
    #[cfg(target_os = "linux")]
    silent(
        "a_refused_io_uring_is_an_error_with_a_reason",
        run_without_uring,
    ),
];

/// Ends a case that hangs, and the parent that waits for it.
const LIMIT_S: u32 = 60;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, name, socket] = &arguments[..]
        && flag == "--case"
    {
        run_here(name, Path::new(socket));
    } else if has(&arguments, "--list") {
        // The runner asks for those that are left out by themselves: there are none.
        for case in CASES.iter().filter(|_| !has(&arguments, "--ignored")) {
            println!("{}: test", case.name);
        }
    } else {
        run_all(&arguments);
    }
    ExitCode::SUCCESS
}

fn has(arguments: &[String], flag: &str) -> bool {
    arguments.iter().any(|argument| argument == flag)
}

/// The child: this process is the case's own.
fn run_here(name: &str, socket: &Path) {
    let case = CASES
        .iter()
        .find(|case| case.name == name)
        .expect("the parent knows the cases");
    // SAFETY: the call takes an integer; the signal that it sends ends the process, as is meant.
    unsafe { libc::alarm(LIMIT_S) };
    let mut report = UnixStream::connect(socket).expect("the parent listens");
    (case.run)(&mut report);
}

/// The parent: every case that the arguments name a part of, or all; with `--exact`, those that they name.
fn run_all(arguments: &[String]) {
    let is_exact = has(arguments, "--exact");
    let filters: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    for case in CASES {
        let is_named = |filter: &&String| match is_exact {
            true => case.name == **filter,
            false => case.name.contains(filter.as_str()),
        };
        if filters.is_empty() || filters.iter().any(is_named) {
            in_a_process(case);
            println!("test {} ... ok", case.name);
        }
    }
}

fn in_a_process(case: &Case) {
    let name = format!("ferrite-sys-process-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).expect("the temporary directory is writable");
    let socket: PathBuf = directory.join("report.sock");
    let listener = UnixListener::bind(&socket).expect("a free path");
    let mut child = Command::new(std::env::current_exe().expect("there is a /proc"));
    let output = child
        .args(["--case", case.name])
        .arg(&socket)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}: {output:?}", case.name);
    let mut report = String::new();
    let (mut connection, _) = listener.accept().expect("it has connected");
    connection.read_to_string(&mut report).expect("text");
    std::fs::remove_dir_all(&directory).expect("it is ours");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        case.stdout,
        "{}",
        case.name
    );
    assert_eq!(report, case.report, "{}", case.name);
}

fn run_daemon(report: &mut UnixStream) {
    let (pid, directory) = (
        process_number(),
        std::env::current_dir().expect("it exists"),
    );
    // No line break: this stays in the buffer until somebody flushes it.
    print!("before");
    process::daemonize().expect("there is one thread");
    // SAFETY: the call takes an integer. The limit of the parent is not inherited.
    unsafe { libc::alarm(LIMIT_S) };
    println!("after");
    let process = if process_number() == pid {
        "same process"
    } else {
        "another process"
    };
    // SAFETY: the call takes an integer and returns one.
    let is_leader = unsafe { libc::getsid(0) } == process_number();
    let session = if is_leader {
        "session leader"
    } else {
        "same session"
    };
    let standard = [0, 1, 2].map(|fd| {
        let target = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap_or_default();
        target.display().to_string()
    });
    let is_same = std::env::current_dir().is_ok_and(|now| now == directory);
    let place = if is_same {
        "same directory"
    } else {
        "another directory"
    };
    write!(
        report,
        "{process}, {session}, {}, {place}",
        standard.join(" ")
    )
    .expect("it reads");
}

/// Not the standard library's, which might remember.
fn process_number() -> libc::pid_t {
    // SAFETY: the call takes nothing and returns a number.
    unsafe { libc::getpid() }
}

fn run_threaded(_: &mut UnixStream) {
    let (end, wait) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || wait.recv().is_err());
    let pid = process::pid();
    process::daemonize().expect_err("there are two threads");
    assert_eq!(std::process::id(), pid);
    drop(end);
    assert!(thread.join().expect("it ends"));
}

fn run_signals(_: &mut UnixStream) {
    const LONG: Option<Duration> = Some(Duration::from_secs(LIMIT_S as u64));
    let wanted = [
        Signal::Term,
        Signal::Int,
        Signal::Hup,
        Signal::Quit,
        Signal::Usr1,
        Signal::Usr2,
    ];
    let signals = Signals::block(&wanted).expect("a descriptor");
    for _ in 0..4 {
        std::thread::spawn(|| {
            loop {
                std::thread::park();
            }
        });
    }
    let mut poller = Poller::new(Backend::Auto).expect("a poller");
    poller
        .add(signals.as_fd(), 1, Interest::READ)
        .expect("it can be polled");
    let mut events = Vec::new();
    for signal in wanted {
        // SAFETY: the call takes integers; the signal is blocked in every thread.
        assert_eq!(unsafe { libc::kill(libc::getpid(), signal.number()) }, 0);
        poller
            .wait(&mut events, LONG)
            .expect("an open poller waits");
        assert_eq!(events.len(), 1, "{signal:?}");
        assert_eq!(signals.read(), Some(signal));
        assert_eq!(signals.read(), None);
        poller
            .wait(&mut events, Some(Duration::ZERO))
            .expect("an open poller waits");
        assert!(events.is_empty());
    }
}

fn run_interrupts(_: &mut UnixStream) {
    use std::os::unix::process::ExitStatusExt;
    let interrupts = Interrupts::catch().expect("the first of the process");
    assert!(Interrupts::catch().is_err());
    assert!(!interrupts.take());
    for _ in 0..2 {
        // SAFETY: the call takes integers; the signal has a handler.
        assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGINT) }, 0);
    }
    assert!(interrupts.take() && !interrupts.take());
    // SAFETY: the call takes integers; the signal has a handler.
    assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGINT) }, 0);
    assert!(interrupts.sleep(Duration::from_secs(LIMIT_S as u64)));
    assert!(!interrupts.sleep(Duration::from_millis(1)));

    let mut child = Command::new("sleep")
        .arg(LIMIT_S.to_string())
        .spawn()
        .expect("a program of every system");
    let pid = libc::pid_t::try_from(child.id()).expect("a process id");
    // SAFETY: the call takes integers; the process is a child that nobody has waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
    let status = child.wait().expect("it is ours");
    assert_eq!(status.signal(), Some(libc::SIGINT), "{status:?}");
    assert!(!interrupts.take());
}

fn run_broken_pipe(_: &mut UnixStream) {
    let (one, other) = UnixStream::pair().expect("a socket pair");
    drop(other);
    let mut poller = Poller::new(Backend::Auto).expect("a poller");
    // With the signal at its default, a send that raised it would end this process.
    // SAFETY: the default action is no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let error = poller.send(one.as_fd(), b"x").expect_err("nobody is there");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    let error = poller
        .send_vectored(one.as_fd(), &[std::io::IoSlice::new(b"x")])
        .expect_err("nobody is there");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
    // And ignored, a plain write survives too.
    signal::ignore_sigpipe();
    let error = std::fs::File::from(std::os::fd::OwnedFd::from(one))
        .write(b"x")
        .expect_err("nobody is there");
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

fn run_open_files(_: &mut UnixStream) {
    let set = |soft, hard| {
        let limits = libc::rlimit {
            rlim_cur: soft,
            rlim_max: hard,
        };
        // SAFETY: the call reads the structure.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limits) }, 0);
    };
    set(64, 256);
    assert_eq!(
        process::raise_open_files(32).expect("the limit can be read"),
        64
    );
    assert_eq!(
        process::raise_open_files(200).expect("the limit can be read"),
        200
    );
    assert_eq!(
        process::raise_open_files(256).expect("the limit can be read"),
        256
    );
    // Only a privileged process gets beyond the hard limit; others keep what they have.
    let above = process::raise_open_files(300).expect("the limit can be read");
    assert!(above == 256 || above == 300, "{above}");
    // Nobody gets as many as this; what was reached before is not lost.
    assert!(process::raise_open_files(u64::MAX).expect("the limit can be read") >= above);
}

fn run_main_thread(_: &mut UnixStream) {
    let used = |times: process::CpuTimes| times.user + times.system;
    while used(process::thread_cpu_times()) < Duration::from_millis(50) {
        std::hint::spin_loop();
    }
    assert!(used(process::main_thread_cpu_times()) >= Duration::from_millis(50));
    let (seen_by_other, of_other) = std::thread::spawn(move || {
        (
            used(process::main_thread_cpu_times()),
            used(process::thread_cpu_times()),
        )
    })
    .join()
    .expect("it ends");
    // In steps of 10 ms, for each of the two times.
    assert!(
        seen_by_other >= Duration::from_millis(30),
        "{seen_by_other:?}"
    );
    assert!(of_other < seen_by_other);
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .expect("a standard program");
    String::from_utf8(output.stdout)
        .expect("text")
        .trim_end()
        .to_owned()
}

fn run_names(_: &mut UnixStream) {
    assert_eq!(process::os_text(), output("uname", &["-srm"]));
    assert_eq!(process::hostname(), output("uname", &["-n"]));
    assert_eq!(
        process::pid().to_string(),
        output("sh", &["-c", "echo $PPID"])
    );
}

fn run_children(_: &mut UnixStream) {
    assert_eq!(process::children_cpu_times(), process::CpuTimes::default());
    output(
        "sh",
        &["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"],
    );
    let times = process::children_cpu_times();
    assert!(times.user + times.system > Duration::ZERO);
}

/// Containers filter system calls that their makers did not know: as if the kernel did not have the
/// call (ENOSYS), or as if it were forbidden (EPERM).
#[cfg(target_os = "linux")]
fn run_without_nanoseconds(_: &mut UnixStream) {
    for errno in [libc::ENOSYS, libc::EPERM] {
        // The filter is that of the thread that sets it, and cannot be taken off.
        std::thread::spawn(move || {
            refuse_system_call(libc::SYS_epoll_pwait2, errno);
            let mut poller = Poller::new(Backend::Auto).expect("a poller");
            let mut events = Vec::new();
            for _ in 0..2 {
                let (start, timeout) = (std::time::Instant::now(), Duration::from_micros(1_500));
                poller
                    .wait(&mut events, Some(timeout))
                    .expect("there is another way to wait");
                assert!(events.is_empty() && start.elapsed() >= timeout);
            }
        })
        .join()
        .expect("it waits");
    }
}

/// Whichever of its calls is filtered, and however: there is no poller then, and not one that fails
/// when connections depend on it.
#[cfg(target_os = "linux")]
fn run_without_uring(_: &mut UnixStream) {
    use std::io::ErrorKind::{PermissionDenied, Unsupported};
    for number in [
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_register,
        libc::SYS_io_uring_enter,
    ] {
        for errno in [libc::ENOSYS, libc::EPERM] {
            std::thread::spawn(move || {
                refuse_system_call(number, errno);
                let error = Poller::new(Backend::Uring).expect_err("it is refused");
                assert!(
                    matches!(error.kind(), Unsupported | PermissionDenied),
                    "{error:?}"
                );
                assert!(error.to_string().contains("io_uring"), "{error}");
                Poller::new(Backend::Auto).expect("there is epoll");
            })
            .join()
            .expect("it is told why");
        }
    }
}

/// Makes a system call of this thread fail from now on.
#[cfg(target_os = "linux")]
fn refuse_system_call(number: libc::c_long, errno: libc::c_int) {
    // The first word of what a filter sees is the number of the call.
    let filter = |code: u32, if_true, if_false, k| libc::sock_filter {
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k,
    };
    let mut program = [
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        filter(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            number as u32,
        ),
        filter(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | errno as u32,
        ),
        filter(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the calls are those of prctl(2); the program lives until the second has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program),
            0
        );
    }
    // SAFETY: the call is refused before the kernel looks at any argument.
    let result = unsafe { libc::syscall(number, -1, 0, 0, 0, 0, 0) };
    assert_eq!(
        (result, std::io::Error::last_os_error().raw_os_error()),
        (-1, Some(errno))
    );
}
