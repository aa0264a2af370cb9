//! What the server tells a service manager: here one socket plays its part.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::eventually;

/// How long anything may take on a machine that does other things as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process and its directory, which end with the test.
struct Process {
    child: Child,
    directory: PathBuf,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        crate::support::remove_data(&self.directory);
    }
}

/// The next message that is no sign of life.
fn next(manager: &UnixDatagram) -> String {
    loop {
        let mut message = [0; 1024];
        let count = manager.recv(&mut message);
        let count = count.expect("the server tells something");
        let text = String::from_utf8_lossy(&message[..count]).into_owned();
        if text.trim_end() != "WATCHDOG=1" {
            return text;
        }
    }
}

/// A snapshot that takes a while to load where each key is waited for.
fn snapshot(keys: usize) -> Vec<u8> {
    let options = rdb::Options::default();
    let mut writer = rdb::Writer::new(Vec::new(), options).expect("there is room");
    for number in 0..keys {
        let key = number.to_string();
        let put = writer.key(key.as_bytes(), b"v", rdb::Attributes::default());
        put.expect("there is room");
    }
    writer.finish().expect("there is room")
}

#[test]
fn the_manager_hears_when_data_is_loaded_that_the_server_lives_and_that_it_ends() {
    let name = format!("ferrite-service-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
    fs::write(directory.join("dump.rdb"), snapshot(500)).expect("the directory is ours");
    let manager = UnixDatagram::bind(directory.join("notify")).expect("the directory is ours");
    manager
        .set_read_timeout(Some(PATIENCE))
        .expect("it has a limit");
    let child = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .args([
            "--port",
            "0",
            "--unixsocket",
            "socket",
            "--appendonly",
            "no",
        ])
        .args(["--key-load-delay", "1000", "--save", "", "--dir"])
        .arg(&directory)
        .env("NOTIFY_SOCKET", directory.join("notify"))
        .env("WATCHDOG_USEC", "100000")
        .stdout(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut server = Process { child, directory };

    let ready = next(&manager);
    assert!(ready.contains("READY=1"), "{ready}");
    let mut client = UnixStream::connect(server.directory.join("socket")).expect("it listens");
    client.write_all(b"DBSIZE\r\n").expect("it reads");
    let mut reply = [0; 64];
    let count = client.read(&mut reply).expect("it answers");
    assert_eq!(
        &reply[..count],
        b":500\r\n",
        "everything is loaded when it is ready"
    );

    client.write_all(b"INFO server\r\n").expect("it reads");
    let mut info = Vec::new();
    while !String::from_utf8_lossy(&info).contains("process_supervised:systemd\r\n") {
        let count = client.read(&mut reply).expect("it says who looks after it");
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&info));
        info.extend_from_slice(&reply[..count]);
    }

    // Signs of life go on while nothing happens.
    for _ in 0..5 {
        let mut message = [0; 64];
        let count = manager.recv(&mut message).expect("the server lives");
        assert_eq!(message[..count].trim_ascii_end(), b"WATCHDOG=1");
    }

    let pid = Pid::from_child(&server.child);
    kill_process(pid, Signal::TERM).expect("it is ours");
    let stopping = next(&manager);
    assert!(stopping.contains("STOPPING=1"), "{stopping}");
    let status = server.child.wait().expect("it is ours");
    assert!(status.success(), "{status}");
}

#[test]
fn a_manager_that_is_not_there_is_no_reason_to_end() {
    let name = format!("ferrite-service-none-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
    let child = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .args([
            "--port",
            "0",
            "--unixsocket",
            "socket",
            "--appendonly",
            "no",
        ])
        .args(["--save", "", "--dir"])
        .arg(&directory)
        .env("NOTIFY_SOCKET", directory.join("nobody"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut server = Process { child, directory };
    let mut output = server.child.stdout.take().expect("it is piped");
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("the service manager cannot be told") {
        let mut chunk = [0; 4096];
        let count = output.read(&mut chunk).expect("a pipe can be read");
        assert_ne!(count, 0, "{}", String::from_utf8_lossy(&said));
        said.extend_from_slice(&chunk[..count]);
    }
    let mut client = UnixStream::connect(server.directory.join("socket")).expect("it listens");
    client.write_all(b"PING\r\n").expect("it reads");
    let mut reply = [0; 7];
    client.read_exact(&mut reply).expect("it answers");
    assert_eq!(&reply, b"+PONG\r\n");
}

/// Nobody sees what a server in the background prints: why it does not start is among its messages.
#[test]
fn a_start_in_the_background_that_fails_is_among_the_messages() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = other.local_addr().expect("it is bound").port().to_string();
    let name = format!("ferrite-background-fails-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
    let started = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .args([
            "--daemonize",
            "yes",
            "--port",
            &port,
            "--logfile",
            "messages",
        ])
        .args(["--dir".as_ref(), directory.as_os_str()])
        .output()
        .expect("the server has been built");
    assert!(started.status.success(), "{started:?}");
    let expected = format!("cannot listen on 127.0.0.1:{port}: ");
    eventually("the reason is told", || {
        let messages = fs::read_to_string(directory.join("messages"));
        messages.is_ok_and(|text| text.contains(&expected))
    });
    fs::remove_dir_all(&directory).expect("it is ours");
}

#[test]
fn a_server_in_the_background_serves_and_names_its_process() {
    let name = format!("ferrite-background-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).expect("the directory for temporary files is writable");
    let (socket, pid_file) = (directory.join("socket"), directory.join("pid"));
    let started = Command::new(env!("CARGO_BIN_EXE_ferrite-server"))
        .args(["--daemonize", "yes", "--port", "0", "--threads", "1"])
        .args(["--dir".as_ref(), directory.as_os_str()])
        .args(["--unixsocket".as_ref(), socket.as_os_str()])
        .args(["--pidfile".as_ref(), pid_file.as_os_str()])
        .output()
        .expect("the server has been built");
    assert!(started.status.success(), "{started:?}");
    let began = Instant::now();
    let mut connection = loop {
        match UnixStream::connect(&socket) {
            Ok(connection) => break connection,
            Err(error) => assert!(began.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let timeout = connection.set_read_timeout(Some(PATIENCE));
    timeout.expect("it is a socket");
    let question = connection.write_all(b"INFO server\r\n");
    question.expect("the server listens");
    let (mut reply, mut part) = (String::new(), [0; 4096]);
    // It listens before it writes the file, and answers after that.
    let pid = loop {
        let count = connection.read(&mut part).expect("the server answers");
        assert!(count > 0, "{reply}");
        reply += &String::from_utf8_lossy(&part[..count]);
        let line = reply.split_once("process_id:").map(|(_, rest)| rest);
        if let Some((pid, _)) = line.and_then(|rest| rest.split_once("\r\n")) {
            break pid.parse::<u32>().expect("a number");
        }
    };
    let named = fs::read_to_string(&pid_file).expect("it is written before anybody is served");
    assert_eq!(named, format!("{pid}\n"));
    let end = connection.write_all(b"SHUTDOWN NOSAVE\r\n");
    end.expect("the server listens");
    // It says nothing any more, and closes the connection.
    while connection.read(&mut part).is_ok_and(|count| count > 0) {}
    let process = format!("/proc/{pid}");
    crate::support::eventually("its end", || !Path::new(&process).exists());
    crate::support::remove_data(&directory);
}
