//! The backends that tests run on: all of this system that are allowed here.

/// Makes of each function that takes a backend a test per backend of this system.
macro_rules! on_each_backend {
    ($($(#[$attribute:meta])* $test:ident,)*) => {
        #[cfg(target_os = "linux")]
        mod epoll {
            $($(#[$attribute])* #[test] fn $test() {
                super::$test($crate::poller::Backend::Epoll);
            })*
        }

        #[cfg(target_os = "linux")]
        mod uring {
            $($(#[$attribute])* #[test] fn $test() {
                if $crate::poller::tests::has_uring() {
                    super::$test($crate::poller::Backend::Uring);
                }
            })*
        }

        mod portable {
            $($(#[$attribute])* #[test] fn $test() {
                super::$test($crate::poller::Backend::Portable);
            })*
        }
    };
}

/// The same for what Linux' backends alone promise.
macro_rules! on_backends_of_linux {
    ($($test:ident,)*) => {
        #[cfg(target_os = "linux")]
        mod of_linux {
            $(mod $test {
                #[test]
                fn epoll() {
                    super::super::$test($crate::poller::Backend::Epoll);
                }

                #[test]
                fn uring() {
                    if $crate::poller::tests::has_uring() {
                        super::super::$test($crate::poller::Backend::Uring);
                    }
                }
            })*
        }
    };
}

pub(in crate::poller) use {on_backends_of_linux, on_each_backend};

/// This kernel has all of io_uring and lets this process use it. Most containers don't, and tests have
/// to pass there too.
#[cfg(target_os = "linux")]
pub(in crate::poller) fn has_uring() -> bool {
    const SINGLE_ISSUER_AND_DEFER_TASKRUN: u32 = 1 << 12 | 1 << 13;
    let mut parameters = [0_u32; 30];
    parameters[2] = SINGLE_ISSUER_AND_DEFER_TASKRUN;
    // SAFETY: the kernel reads and writes the parameters, which are 120 bytes.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    if fd >= 0 {
        // SAFETY: the descriptor was just opened, and nobody knows it.
        unsafe { libc::close(fd as libc::c_int) };
        return true;
    }
    let error = std::io::Error::last_os_error();
    eprintln!("not tested, as io_uring is refused here: {error}");
    !matches!(
        error.raw_os_error(),
        Some(libc::ENOSYS | libc::EPERM | libc::EINVAL)
    )
}
