//! Files that a poller reads: on a backend that does not, the buffer comes back.

use super::*;
use std::fs;
use std::path::PathBuf;

/// A file of its own, gone at the end.
struct Temporary(PathBuf, fs::File);

impl Temporary {
    fn new(name: &str, bytes: &[u8]) -> Temporary {
        let path = std::env::temp_dir().join(format!("ferrite-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("a file");
        let file = fs::File::open(&path).expect("it is there");
        Temporary(path, file)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn contents() -> Vec<u8> {
    (0..100_000_u32).map(|at| (at / 7) as u8).collect()
}

/// Waits until so many reads are over.
fn finished(poller: &mut Poller, count: usize) -> Vec<FinishedRead> {
    let start = Instant::now();
    let mut finished = Vec::new();
    while finished.len() < count {
        assert!(start.elapsed() < Duration::from_secs(60), "{finished:?}");
        wait(poller, Some(Duration::from_secs(1)));
        finished.extend(std::iter::from_fn(|| poller.finished_read()));
    }
    finished
}

pub(super) fn files_are_read_while_the_poller_waits(backend: Backend) {
    let mut poller = poller(backend);
    let name = format!("read-{backend:?}");
    let file = Temporary::new(&name, &contents());
    let (socket, mut other) = pair();
    poller
        .add(socket.as_fd(), 7, Interest::READ)
        .expect("it is new");
    other.write_all(b"hello").expect("it is open");
    assert_eq!(wait_one(&mut poller).token, 7);
    if !poller.reads_files() {
        let refused = poller.read_file(file.1.as_fd(), 0, vec![9; 3], 1);
        assert_eq!(refused.expect_err("it does not"), [9; 3]);
        assert!(poller.finished_read().is_none());
        return;
    }
    // More than may be under way: what is refused is for somebody else.
    let mut asked = 0;
    for token in 0..1_000_u64 {
        let buffer = vec![0; 100];
        if poller
            .read_file(file.1.as_fd(), token * 10, buffer, token)
            .is_ok()
        {
            asked += 1;
        }
    }
    assert!((100..1_000).contains(&asked), "{asked}");
    for read in finished(&mut poller, asked) {
        assert_eq!(read.result.expect("it is open"), 100);
        let from = read.token as usize * 10;
        assert_eq!(read.buffer, contents()[from..from + 100]);
    }
    // The end of the file, beyond it, and what is no file to read.
    let write_only = fs::OpenOptions::new().append(true).open(&file.0);
    let write_only = write_only.expect("it is there");
    let mut ask = |fd: BorrowedFd<'_>, offset, token| {
        let asked = poller.read_file(fd, offset, vec![0; 10], token);
        asked.expect("there is room");
    };
    ask(file.1.as_fd(), 99_996, 1);
    ask(file.1.as_fd(), 1 << 40, 2);
    ask(write_only.as_fd(), 0, 3);
    let mut reads = finished(&mut poller, 3);
    reads.sort_by_key(|read| read.token);
    let counts: Vec<_> = reads.iter().map(|read| read.result.as_ref().ok()).collect();
    assert_eq!(counts, [Some(&4), Some(&0), None]);
    assert_eq!(reads[0].buffer[..4], contents()[99_996..]);
    // One that nobody waits for any more, and connections go on beside.
    let asked = poller.read_file(file.1.as_fd(), 0, vec![0; 50_000], 4);
    asked.expect("there is room");
    let mut bytes = [0; 10];
    assert_eq!(
        poller
            .recv(socket.as_fd(), &mut bytes)
            .expect("it is there"),
        5
    );
    other.write_all(b"again").expect("it is open");
    let start = Instant::now();
    while wait(&mut poller, LONG).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60));
    }
    let asked = poller.read_file(file.1.as_fd(), 0, vec![0; 50_000], 5);
    asked.expect("there is room");
    drop(poller);
}
