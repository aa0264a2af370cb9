//! From the command line to a running server, and its end.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use keyspace::{Keyspace, MAX_SHARDS, Options};
use parking_lot::Mutex;
use sys::poller::{Backend, Poller, Waker};
use sys::signal::{Signal, Signals};

use crate::cluster::{self, Cluster};
use crate::command::config::raise_max_clients;
use crate::command::{families, table};
use crate::config::logging;
use crate::config::{self, Setting, Settings, Startup, VERSION, addresses};
use crate::limits::{
    FEWEST_SHARDS_PER_WORKER, LOAD_THREADS, POLLER_SHARE, REPLAY_EXTRA_THREADS, SHARD_BYTES,
    SHARDS_PER_WORKER,
};
use crate::metrics::errorstats::ErrorStats;
use crate::metrics::hotkeys;
use crate::metrics::key_scan::KeyScan;
use crate::metrics::latency::LatencyMonitor;
use crate::metrics::slowlog::SlowLog;
use crate::net::worker::Worker;
use crate::observe::notify;
use crate::observe::{Observed, Observers};
use crate::persistence::snapshot::{self, Snapshots};
use crate::persistence::{self, Durable, Found, Persistence};
use crate::pubsub::PubSub;
use crate::report::http::{self, Http};
use crate::runtime::check_log::{self, Task};
use crate::runtime::control::{self, Control};
use crate::runtime::health;
use crate::runtime::pid_file::PidFile;
use crate::script::Scripts;
use crate::server::Server;
use crate::shared::clients::Clients;
use crate::shared::gate::{Closed, Gate};
use crate::shared::logins::Logins;
use crate::shared::memory::Budget;
use crate::shared::{Offload, Pause, RunningScript, Shared, Totals, WaitNumbers, WorkerHandle};
use crate::takeover;
use crate::values::Values;
use crate::values::blobs::Transfers;
use crate::values::cold::Fetching;

/// Runs the program. An error is what the user has to be told.
pub(crate) fn run(args: impl Iterator<Item = OsString>) -> Result<ExitCode, String> {
    end_on_panic();
    let loaded = config::load(args).map_err(|error| error.to_string())?;
    let (settings, config_file, ignored) = match loaded {
        Startup::Run {
            settings,
            file,
            ignored,
        } => (settings, file, ignored),
        Startup::Help(text) | Startup::Version(text) => {
            // The reader may have closed the pipe.
            let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        Startup::Health(settings) => return health::check(&settings).map(|()| ExitCode::SUCCESS),
        Startup::CheckConfig {
            text,
            is_right,
            settings,
        } => return Ok(check_config(&text, is_right, &settings)),
        Startup::CheckLog(directory) => return Ok(check_log::run(&directory, Task::Check)),
        Startup::RepairLog(directory) => return Ok(check_log::run(&directory, Task::Repair)),
    };
    addresses::check(&settings)?;
    change_directory(&settings)?;
    persistence::check_place(&settings)?;
    if settings.flag(Setting::Daemonize) {
        sys::process::daemonize()
            .map_err(|error| format!("cannot run in the background: {error}"))?;
    }
    sys::signal::ignore_sigpipe();
    sys::signal::ignore_file_limit();
    let signals =
        Signals::block(&Signal::ALL).map_err(|error| format!("cannot hear signals: {error}"))?;
    sys::memory::start_giving_back();
    logging::start(&settings)?;
    tell_of_ignored(&ignored);
    let has_file = !settings.text(Setting::LogFile).is_empty();
    // A server in the background shows nothing but its log.
    serve(settings, config_file, signals).inspect_err(|problem| {
        if has_file {
            log::error!("{problem}");
        }
    })
}

/// Opens what the settings name, and serves until the end.
fn serve(
    settings: Settings,
    config_file: Option<PathBuf>,
    signals: Signals,
) -> Result<ExitCode, String> {
    let cluster = Cluster::open(&settings)?;
    let listeners = control::listen(&settings)?;
    let http_listeners = http::listen(&settings)?;
    let mut pid_file = PidFile::write(&settings);
    allow_connections(&settings);
    // Calibrates the clock before anything is timed.
    let _ = sys::clock::ticks_per_us();
    let server = build(settings, config_file, cluster)?;
    let recovery = persistence::open(server)?;
    pid_file.settle();
    announce(server, &listeners);
    remove_leftovers(server);
    persistence::tell(server, recovery.as_ref());
    // The log says more than any snapshot.
    let loads = recovery.is_none() && snapshot::is_there(server)?;
    server
        .gate
        .set(Closed::Loading, loads || recovery.is_some());
    let http = start_http(server, http_listeners)?;
    let mut threads = start_workers(server)?;
    threads.push(start_thread("snapshot", move || {
        snapshot::run(server, loads)
    })?);
    threads.extend(http);
    let control = Control::new(server, listeners, signals)
        .map_err(|error| format!("cannot watch for connections: {error}"))?;
    match recovery {
        Some(recovery) => {
            let take_over = Box::new(move |found: &Found| takeover::take_over(server, found));
            persistence::begin_loading(server, recovery, take_over)?;
        }
        None if loads => {}
        None => log::info!("Ready to accept connections"),
    }
    control.run();
    for thread in threads {
        // A worker that panicked has aborted the process already.
        let _ = thread.join();
    }
    server.persistence.close()?;
    if server.failure.get().is_some() && server.is_loading() {
        persistence::forget_incomplete(server);
    }
    match server.failure.get() {
        // It is among the messages already, on the standard output.
        Some(_) if server.settings.text(Setting::LogFile).is_empty() => Ok(ExitCode::FAILURE),
        Some(problem) => {
            let _ = writeln!(std::io::stderr(), "ferrite-server: {problem}");
            Ok(ExitCode::FAILURE)
        }
        None => {
            log::info!("Ferrite is now ready to exit, bye bye...");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Removes what killed processes have not finished to write.
fn remove_leftovers(server: &Server) {
    snapshot::remove_leftovers(&server.settings);
    if let Some(file) = &server.config_file {
        config::remove_leftovers(file);
    }
}

/// A panic is a bug, and a server that lost one of its threads would hang rather than answer: end all of it,
/// in every build.
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

/// Prints what a start would say about the configuration, and about the map that it names.
fn check_config(text: &str, is_right: bool, settings: &Settings) -> ExitCode {
    let (wrong, notes) = cluster::check(settings, is_right);
    for line in &wrong {
        println!("refused: {line}");
    }
    for line in notes {
        println!("note: {line}");
    }
    println!("{}", text.trim_end());
    if is_right && wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn change_directory(settings: &Settings) -> Result<(), String> {
    let directory = settings.text(Setting::Dir);
    std::env::set_current_dir(&*directory)
        .map_err(|error| format!("cannot use 'dir' {directory}: {error}"))
}

/// Says which directives have no effect.
fn tell_of_ignored(ignored: &[&str]) {
    if !ignored.is_empty() {
        log::info!(
            "{} directives of redis-server are accepted and change nothing here (--check-config says why): {}",
            ignored.len(),
            ignored.join(", ")
        );
    }
}

/// Makes room for `maxclients`, or lowers it to what is possible.
fn allow_connections(settings: &Settings) {
    let wanted = settings.int(Setting::MaxClients) as u64;
    let possible = raise_max_clients(wanted);
    if possible < wanted {
        log::warn!(
            "maxclients lowered to {possible} by the limit of open files (raise it with ulimit -n)"
        );
        if let Err(error) = settings.set(Setting::MaxClients, &possible.to_string()) {
            log::warn!("maxclients: {error}");
        }
    }
}

/// The number of workers.
fn build(
    settings: Settings,
    config_file: Option<PathBuf>,
    cluster: Option<Cluster>,
) -> Result<&'static Server, String> {
    let shared = shared(settings, config_file).map_err(|error| format!("cannot start: {error}"))?;
    let (workers, shards) = (shared.workers.len(), shared.keyspace.shards());
    let persistence = Persistence::new(shared.keyspace.databases(), &shared.offload.leaves);
    let observed = Observed {
        pubsub: PubSub::new(shared),
        observers: Observers::new(shards),
    };
    let durable = Durable {
        observed,
        persistence,
        snapshots: Snapshots::new(),
    };
    let values = Values {
        durable,
        fetching: Fetching::new(workers),
        blobs: Transfers::new(workers),
    };
    // One server lives as long as its process; everything borrows from it.
    let server: &'static Server = Box::leak(Box::new(Server {
        values,
        cluster,
        scripts: Scripts::default(),
        slowlog: Mutex::new(SlowLog::default()),
        key_scan: KeyScan::default(),
        hot_key_session: hotkeys::Session::default(),
    }));
    server.keyspace.set_observer(server);
    notify::apply_setting(server);
    server.apply_eviction_settings();
    server.note_startup_memory(0);
    server.check_memory(server.persistence.ring_capacity());
    Ok(server)
}

/// The lowest floor.
fn shared(settings: Settings, config_file: Option<PathBuf>) -> std::io::Result<Shared> {
    families::install();
    let workers = settings.workers();
    let shards = match settings.int(Setting::Shards) as usize {
        0 => default_shards(workers, settings.int(Setting::MaxMemory) as usize),
        shards => shards,
    };
    let mut random = [0u8; 48];
    sys::random::fill(&mut random)?;
    let (ids, seed) = random.split_at(40);
    let (run_id, replication_id) = ids.split_at(20);
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let backend = usable_backend(&settings);
    let poller_name = Poller::new(backend)?.name();
    let handles = (0..workers)
        .map(|_| WorkerHandle::new(table().counters()))
        .collect::<Result<_, _>>()?;
    let keyspace = Keyspace::new(&Options {
        databases: settings.int(Setting::Databases) as usize,
        // The control thread checks memory, one thread writes snapshots, one compacts the log, one serves
        // HTTP, each worker has one for scripts, and some load the data.
        workers: 2 * workers + 4 + LOAD_THREADS.max(workers + REPLAY_EXTRA_THREADS),
        shards,
        seed: u64::from_le_bytes(seed.try_into().expect("eight bytes")),
        ticks: sys::clock::ticks,
        charge: sys::memory::charge,
    });
    keyspace.set_logged(settings.flag(Setting::AppendOnly));
    Ok(Shared {
        settings,
        config_file,
        keyspace,
        workers: handles,
        clients: Clients::default(),
        logins: Logins::default(),
        pause: Pause::default(),
        running: RunningScript::default(),
        waits: WaitNumbers::default(),
        deadlines: AtomicUsize::new(0),
        latency: Mutex::new(LatencyMonitor::default()),
        errors: ErrorStats::default(),
        totals: Totals::default(),
        memory: Budget::default(),
        offload: Offload::default(),
        gate: Gate::default(),
        control: Waker::new()?,
        http: Waker::new()?,
        shutdown: AtomicBool::new(false),
        ending: AtomicBool::new(false),
        failure: OnceLock::new(),
        active_expire: AtomicBool::new(true),
        run_id: hexadecimal(run_id),
        replication_id: hexadecimal(replication_id),
        started_ms: sys::clock::realtime_ms(),
        backend,
        poller_name,
    })
}

/// The shards for so many workers: fewer if memory is small, for each shard keeps a little in reserve.
fn default_shards(workers: usize, max_memory: usize) -> usize {
    let most = workers * SHARDS_PER_WORKER;
    let least = workers * FEWEST_SHARDS_PER_WORKER;
    let wanted = match max_memory {
        0 => most,
        bytes => (bytes / SHARD_BYTES).clamp(least, most),
    };
    wanted.next_power_of_two().min(MAX_SHARDS)
}

/// The poller that `io` asks for, or the one that takes its place where it is refused. By default it is
/// io_uring, which measured cheaper (docs/benchmarks.md); default seccomp profiles of containers refuse it.
fn usable_backend(settings: &Settings) -> Backend {
    let wanted = settings.choice(Setting::Io);
    match wanted {
        "epoll" => return Backend::Epoll,
        "portable" => return Backend::Portable,
        _ => {}
    }
    match Poller::new(Backend::Uring) {
        Ok(_) => Backend::Uring,
        Err(error) if wanted == "uring" => {
            log::warn!("io uring is not possible here, epoll takes its place: {error}");
            Backend::Auto
        }
        Err(_) => Backend::Auto,
    }
}

fn announce(server: &Server, listeners: &[sys::socket::Listener]) {
    if server.settings.flag(Setting::AlwaysShowLogo) {
        log::info!("Ferrite {VERSION}  (o)  every bit held, power or no power");
    }
    let addresses: Vec<String> = listeners
        .iter()
        .map(|listener| listener.local_addr_text())
        .collect();
    log::info!(
        "Ferrite {VERSION}, pid {}, {} workers, {} shards, {}, listening on {}",
        sys::process::pid(),
        server.workers.len(),
        server.keyspace.shards(),
        server.poller_name,
        addresses.join(" ")
    );
}

fn start_workers(server: &'static Server) -> Result<Vec<std::thread::JoinHandle<()>>, String> {
    let mut threads = Vec::new();
    let memory = match server.settings.int(Setting::MaxMemory) as usize {
        0 => usize::MAX,
        limit => limit / POLLER_SHARE / server.workers.len(),
    };
    for number in 0..server.workers.len() {
        let failed = |error: std::io::Error| format!("cannot start worker {number}: {error}");
        let poller = Poller::with_memory(server.backend, memory).map_err(failed)?;
        let worker = Worker::new(server, number, poller).map_err(failed)?;
        threads.push(start_thread(&format!("worker-{number}"), move || {
            worker.run()
        })?);
    }
    Ok(threads)
}

/// Serves HTTP from here on, where something listens for it: also while data is loaded, when health is worth
/// asking for.
fn start_http(
    server: &'static Server,
    listeners: Vec<sys::socket::Listener>,
) -> Result<Option<std::thread::JoinHandle<()>>, String> {
    if listeners.is_empty() {
        return Ok(None);
    }
    let addresses: Vec<String> = listeners
        .iter()
        .map(|listener| listener.local_addr_text())
        .collect();
    log::info!(
        "Dashboard and metrics on http://{}",
        addresses.join(" http://")
    );
    let http = Http::new(server, listeners)
        .map_err(|error| format!("cannot watch for HTTP connections: {error}"))?;
    start_thread("http", move || http.run()).map(Some)
}

fn start_thread(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<std::thread::JoinHandle<()>, String> {
    let thread = std::thread::Builder::new().name(name.into());
    thread
        .spawn(run)
        .map_err(|error| format!("cannot start thread {name}: {error}"))
}
