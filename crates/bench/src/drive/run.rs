//! One run: starts the threads, gives them the same start, adds up what they count, and watches the
//! server's use of the machine.

use super::clock::{self, Ticks};
use super::cluster::Cluster;
use super::counts::{Counts, Slice, new_histogram, percentile_ns};
use super::plan::{Plan, Until};
use super::progress::Progress;
use super::worker::{Finish, Worker};
use crate::limits::{ERROR_PAUSE, INTERVAL, SLICE};
use crate::load::data::Data;
use crate::load::numbers::Place;
use crate::load::workload::Workload;
use crate::wire::link::LinkError;
use crate::wire::target::Target;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// What all threads of a run share.
pub(crate) struct Job<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) workload: &'a Workload,
    pub(crate) target: &'a Target,
    pub(crate) data: &'a Data,
    /// What each connection says first, and how many replies that has.
    pub(crate) greeting: (Vec<u8>, u32),
    /// The nodes, if it is a cluster that is loaded.
    pub(crate) cluster: Option<Cluster>,
    /// How many requests have been given out.
    claimed: AtomicU64,
    /// How many keys have been appended.
    appended: Arc<AtomicU64>,
    /// How far each of the workload's sequences has come.
    cursors: Arc<[AtomicU64]>,
    /// 0 until all connections are open.
    start: AtomicU64,
    /// Guards the wait for the start.
    gate: Mutex<()>,
    opened: Condvar,
    is_given_up: AtomicBool,
    /// From when on the next error reply is shown.
    next_shown: AtomicU64,
    warmup: Ticks,
    duration: Ticks,
}

impl<'a> Job<'a> {
    fn new(plan: &'a Plan, workload: &'a Workload, target: &'a Target, data: &'a Data) -> Self {
        let duration = match plan.until {
            // Years, and far from an overflow.
            Until::Requests(_) => clock::ticks(Duration::from_secs(10 * 365 * 86_400)),
            Until::Time(duration) => clock::ticks(duration),
        };
        // In a cluster each node's part of a sequence is walked through by its own connections.
        let lanes = target.nodes.as_ref().map_or(1, |map| map.nodes.len());
        let sequences = workload.numbers.len() * lanes;
        Job {
            plan,
            workload,
            target,
            data,
            greeting: target.greeting.encode(),
            cluster: target.nodes.clone().map(Cluster::new),
            claimed: AtomicU64::new(0),
            appended: Arc::default(),
            cursors: (0..sequences).map(|_| AtomicU64::new(0)).collect(),
            start: AtomicU64::new(0),
            gate: Mutex::new(()),
            opened: Condvar::new(),
            is_given_up: AtomicBool::new(false),
            next_shown: AtomicU64::new(0),
            warmup: clock::ticks(plan.warmup),
            duration,
        }
    }

    /// Which part of the load a thread is. The first threads have a connection more if there is no
    /// even split.
    pub(crate) fn place(&self, thread: usize) -> Place {
        let (clients, threads) = (self.plan.clients, self.plan.threads);
        let before = |thread: usize| thread * (clients / threads) + thread.min(clients % threads);
        Place {
            first_client: before(thread),
            own_clients: before(thread + 1) - before(thread),
            clients,
            appended: Arc::clone(&self.appended),
            cursors: Arc::clone(&self.cursors),
        }
    }

    /// Waits for all threads to be ready. `None`: the run was given up.
    pub(crate) fn wait_for_start(&self) -> Option<Ticks> {
        let mut guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.has_started() && !self.is_given_up() {
            guard = self
                .opened
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner);
        }
        let start = self.start.load(Ordering::Relaxed);
        (!self.is_given_up()).then_some(start)
    }

    /// Lets all threads begin.
    fn begin(&self) {
        let _guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.start.store(clock::now(), Ordering::Relaxed);
        self.opened.notify_all();
    }

    /// Lets all threads end.
    fn give_up(&self) {
        let _guard = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_given_up.store(true, Ordering::Relaxed);
        self.opened.notify_all();
    }

    /// Requests are being sent.
    pub(crate) fn has_started(&self) -> bool {
        self.start.load(Ordering::Relaxed) != 0
    }

    /// From when on requests count.
    #[inline]
    pub(crate) fn measure_from(&self) -> Ticks {
        self.start.load(Ordering::Relaxed) + self.warmup
    }

    /// From when on no request is sent.
    #[inline]
    pub(crate) fn until(&self) -> Ticks {
        self.measure_from() + self.duration
    }

    /// Takes up to `wanted` of the requests that are to be sent in all.
    #[inline]
    pub(crate) fn claim(&self, wanted: u32) -> u32 {
        let Until::Requests(total) = self.plan.until else {
            return wanted;
        };
        let before = self.claimed.fetch_add(u64::from(wanted), Ordering::Relaxed);
        // At most what was wanted.
        total.saturating_sub(before).min(u64::from(wanted)) as u32
    }

    /// All requests have been given out.
    pub(crate) fn is_claimed(&self) -> bool {
        match self.plan.until {
            Until::Requests(total) => self.claimed.load(Ordering::Relaxed) >= total,
            Until::Time(_) => false,
        }
    }

    /// The run is to end now.
    #[inline]
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// Whether an error reply that came now is to be shown: one per pause, whichever thread it came to.
    pub(crate) fn takes_error(&self, now: Ticks) -> bool {
        let next = self.next_shown.load(Ordering::Relaxed);
        let after = now + clock::ticks(ERROR_PAUSE);
        now >= next
            && self
                .next_shown
                .compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// The addresses of a cluster's nodes.
    fn node_names(&self) -> Vec<String> {
        let map = self.cluster.as_ref().map(|cluster| cluster.map().0);
        let nodes = map.iter().flat_map(|map| &map.nodes);
        nodes.map(|node| node.name.clone()).collect()
    }

    /// A slice with a row for each of the workload's.
    pub(crate) fn new_slice(&self, index: u64) -> Slice {
        Slice::new(index, self.workload.rows.len(), self.plan.rate().is_some())
    }
}

/// What threads say.
pub(crate) enum Message {
    /// All connections of a thread are open.
    Ready,
    /// What a thread has counted in a slice of time.
    Slice(Box<Slice>),
    /// The map of the cluster is not true any more.
    Moved,
    /// The text of an error reply that is to be shown.
    ErrorReply(String),
    /// A thread has ended.
    Done(Result<Finish, LinkError>),
}

/// One point of the curves over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// The end of the slice, in milliseconds since the start of measuring.
    pub(crate) at_ms: u64,
    pub(crate) requests: u64,
    pub(crate) errors: u64,
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) max_ns: u64,
}

/// The latencies of a second or so, compressed.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    /// Since the start of measuring.
    pub(crate) start: Duration,
    pub(crate) length: Duration,
    compressed: Vec<u8>,
}

impl Interval {
    /// The `index`th interval of this length.
    pub(crate) fn new(index: u32, length: Duration, latency: &Histogram<u64>) -> Interval {
        let mut compressed = Vec::new();
        V2DeflateSerializer::new()
            .serialize(latency, &mut compressed)
            .expect("memory takes every byte");
        Interval {
            start: length * index,
            length,
            compressed,
        }
    }

    /// Its latencies in nanoseconds.
    pub(crate) fn histogram(&self) -> Histogram<u64> {
        Deserializer::new()
            .deserialize(&mut self.compressed.as_slice())
            .expect("it was written so")
    }
}

/// What a run has found out.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// When measuring began, by the calendar.
    pub(crate) started: SystemTime,
    /// Second by second.
    pub(crate) intervals: Vec<Interval>,
    /// By the workload's rows.
    pub(crate) counts: Slice,
    /// From the start of measuring to the last reply.
    pub(crate) elapsed: Duration,
    pub(crate) series: Vec<Point>,
    /// Requests that were never answered.
    pub(crate) unanswered: u64,
    /// What the server has used of the processors meanwhile.
    pub(crate) server_cpu: Option<Duration>,
    /// What the server occupied in memory at the end, in bytes.
    pub(crate) server_rss_bytes: Option<u64>,
    /// The addresses of a cluster's nodes, in the order in which they are counted.
    pub(crate) nodes: Vec<String>,
    /// How often their map was read again.
    pub(crate) maps_read: u64,
    /// What the threads of the load have used of the processors, warm-up included.
    pub(crate) own_cpu: Duration,
    /// How long these threads ran, added up.
    pub(crate) own_time: Duration,
}

impl Outcome {
    /// All rows as one.
    pub(crate) fn total(&self) -> Counts {
        self.counts.total()
    }

    /// Answered requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.rate_of(self.counts.rows.iter().map(Counts::requests).sum())
    }

    /// So many in the time of the run, per second.
    pub(crate) fn rate_of(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// How busy the load's threads were, of the processors that they could have used: near 1 it may be
    /// the load that is measured.
    pub(crate) fn load_busy(&self, plan: &Plan) -> f64 {
        // Pinned threads may share a processor.
        let share = match plan.cpus.len() {
            0 => 1.0,
            pinned => pinned.min(plan.threads) as f64 / plan.threads as f64,
        };
        let usable_s = self.own_time.as_secs_f64() * share;
        // The two clocks differ by a little.
        (self.own_cpu.as_secs_f64() / usable_s.max(1e-9)).min(1.0)
    }

    /// Microseconds of processor time that the server has used per request.
    pub(crate) fn server_us_per_request(&self) -> Option<f64> {
        let requests: u64 = self.counts.rows.iter().map(Counts::requests).sum();
        let cpu = self.server_cpu?;
        (requests > 0).then(|| cpu.as_secs_f64() * 1e6 / requests as f64)
    }
}

/// Runs a workload.
///
/// # Errors
/// The server cannot be reached, closed a connection or refused the greeting; the text says so.
pub(crate) fn run(plan: &Plan, workload: &Workload, target: &Target) -> Result<Outcome, String> {
    let data = Data::new(plan.seed);
    let job = Job::new(plan, workload, target, &data);
    // Measured now, rather than by the first thread that needs it.
    clock::ticks(Duration::from_secs(1));
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for thread in 0..plan.threads {
            let (job, sender) = (&job, sender.clone());
            scope.spawn(move || {
                pin(&job.plan.cpus, thread);
                let worker = Worker::new(job, thread, sender.clone());
                let done = worker.and_then(Worker::run);
                // Nobody listens any more only if the run was given up.
                let _ = sender.send(Message::Done(done));
            });
        }
        drop(sender);
        let outcome = Collector::new(&job).collect(&receiver);
        job.give_up();
        outcome
    })
    .map_err(|error| describe(&error, target))
}

/// How the error reply begins that every request gets on a connection without a password.
pub(crate) const NO_AUTH: &str = "NOAUTH";

/// What is said of a server that wants a password.
pub(crate) fn no_auth(name: &str, text: &str) -> String {
    format!("{name}: {text} (-a, --user and --uri say who asks)")
}

fn describe(error: &LinkError, target: &Target) -> String {
    let name = &target.name;
    match error {
        LinkError::Refused(text) if text.starts_with(NO_AUTH) => no_auth(name, text),
        LinkError::Refused(text) => format!("{name}: {text}"),
        LinkError::Io(_) => format!("Could not connect to Redis at {name}: {error}"),
        other => format!("{name}: {other}"),
    }
}

/// Pins a thread to its processor. That it cannot be pinned is said once, not fatal.
fn pin(cpus: &[usize], thread: usize) {
    if cpus.is_empty() {
        return;
    }
    let cpu = cpus[thread % cpus.len()];
    if let Err(error) = sys::cpu::pin_current_thread(cpu) {
        eprintln!("WARNING: processor {cpu} cannot be used: {error}");
    }
}

/// Adds up what the threads report.
struct Collector<'a> {
    job: &'a Job<'a>,
    total: Slice,
    /// Slices that not all threads have handed over yet.
    pending: BTreeMap<u64, Slice>,
    series: Vec<Point>,
    progress: Progress,
    last_reply: Ticks,
    unanswered: u64,
    maps_read: u64,
    own_cpu: Duration,
    own_time: Duration,
    cpu_at_start: Option<Duration>,
    intervals: Vec<Interval>,
    /// The latencies of the interval that is not complete.
    interval: Histogram<u64>,
    /// Which one that is.
    interval_index: u32,
}

impl<'a> Collector<'a> {
    fn new(job: &'a Job<'a>) -> Self {
        Collector {
            job,
            total: job.new_slice(0),
            pending: BTreeMap::new(),
            series: Vec::new(),
            progress: Progress::new(&job.workload.title, job.plan.has_progress),
            last_reply: 0,
            unanswered: 0,
            maps_read: 0,
            own_cpu: Duration::ZERO,
            own_time: Duration::ZERO,
            cpu_at_start: None,
            intervals: Vec::new(),
            interval: new_histogram(),
            interval_index: 0,
        }
    }

    fn collect(mut self, receiver: &Receiver<Message>) -> Result<Outcome, LinkError> {
        let threads = self.job.plan.threads;
        let (mut ready, mut done) = (0, 0);
        let mut failure = None;
        while done < threads {
            match receiver.recv_timeout(self.patience()) {
                Ok(Message::Ready) => {
                    ready += 1;
                    if ready == threads {
                        self.job.begin();
                    }
                }
                Ok(Message::Slice(slice)) => self.take(*slice),
                Ok(Message::Moved) => self.read_map(),
                Ok(Message::ErrorReply(text)) => {
                    self.progress.clear();
                    println!("Error from server: {text}");
                }
                Ok(Message::Done(Ok(finish))) => {
                    done += 1;
                    self.last_reply = self.last_reply.max(finish.last_reply);
                    self.unanswered += finish.unanswered;
                    self.own_cpu += finish.cpu;
                    self.own_time += finish.time;
                }
                Ok(Message::Done(Err(error))) => {
                    done += 1;
                    self.job.give_up();
                    failure.get_or_insert(error);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.look_at_server();
            self.show_before(self.settled());
        }
        self.progress.clear();
        match failure {
            Some(error) => Err(error),
            None => Ok(self.finish()),
        }
    }

    /// How long to wait for the next report: until the warm-up ends, to look at the server then.
    fn patience(&self) -> Duration {
        if !self.job.has_started() {
            return SLICE;
        }
        clock::pause(clock::now(), self.job.measure_from(), SLICE)
    }

    /// Notes what the server had used when measuring began.
    fn look_at_server(&mut self) {
        let Some(pid) = self.job.target.pid else {
            return;
        };
        let has_begun = self.job.has_started() && clock::now() >= self.job.measure_from();
        if has_begun && self.cpu_at_start.is_none() {
            self.cpu_at_start = sys::process::cpu_time_of(pid);
        }
    }

    /// Reads the map of the cluster again. Without an answer the old one stays, and the next MOVED asks
    /// again.
    fn read_map(&mut self) {
        let (job, patience) = (self.job, self.job.plan.timeout);
        if let Some(cluster) = &job.cluster {
            self.maps_read += u64::from(cluster.read_again(job.target, patience));
        }
    }

    fn take(&mut self, slice: Slice) {
        self.total.add(&slice);
        match self.pending.get_mut(&slice.index) {
            Some(pending) => pending.add(&slice),
            None => {
                self.pending.insert(slice.index, slice);
            }
        }
    }

    /// Slices before this one are complete: every thread hands over within a slice's time.
    fn settled(&self) -> u64 {
        if !self.job.has_started() {
            return 0;
        }
        let since = clock::between(self.job.measure_from(), clock::now());
        (since.as_nanos() / SLICE.as_nanos()).saturating_sub(1) as u64
    }

    /// Turns slices before `index` into points of the curve.
    fn show_before(&mut self, index: u64) {
        while let Some((&first, _)) = self.pending.first_key_value()
            && first < index
            && let Some(slice) = self.pending.remove(&first)
        {
            let total = slice.total();
            self.keep_interval(first, &total.latency);
            let point = Point {
                at_ms: (first + 1) * SLICE.as_millis() as u64,
                requests: total.requests(),
                errors: total.errors,
                p50_ns: percentile_ns(&total.latency, 50.0),
                p99_ns: percentile_ns(&total.latency, 99.0),
                max_ns: if total.latency.is_empty() {
                    0
                } else {
                    total.latency.max()
                },
            };
            self.progress.show(&point, SLICE);
            self.series.push(point);
        }
    }

    /// Adds a slice to its interval, for the log of histograms if there is to be one.
    fn keep_interval(&mut self, slice: u64, latency: &Histogram<u64>) {
        if !self.job.plan.keeps_intervals {
            return;
        }
        let per_interval = (INTERVAL.as_millis() / SLICE.as_millis()) as u64;
        // A run of a century has fewer.
        let index = u32::try_from(slice / per_interval).unwrap_or(u32::MAX);
        if index != self.interval_index {
            self.end_interval();
            self.interval_index = index;
        }
        self.interval
            .add(latency)
            .expect("all histograms have the same bounds");
    }

    fn end_interval(&mut self) {
        if !self.interval.is_empty() {
            let interval = Interval::new(self.interval_index, INTERVAL, &self.interval);
            self.intervals.push(interval);
            self.interval.reset();
        }
    }

    fn finish(mut self) -> Outcome {
        let pid = self.job.target.pid;
        let cpu = pid.and_then(sys::process::cpu_time_of);
        let server_cpu = match (self.cpu_at_start, cpu) {
            (Some(before), Some(after)) => Some(after.saturating_sub(before)),
            _ => None,
        };
        self.show_before(u64::MAX);
        self.end_interval();
        let since = clock::between(self.job.measure_from(), clock::now());
        let nodes = self.job.node_names();
        self.total.reserve_node(nodes.len());
        Outcome {
            started: SystemTime::now() - since,
            intervals: self.intervals,
            elapsed: clock::between(self.job.measure_from(), self.last_reply),
            nodes,
            maps_read: self.maps_read,
            counts: self.total,
            series: self.series,
            unanswered: self.unanswered,
            server_cpu,
            server_rss_bytes: pid.and_then(sys::process::rss_bytes_of),
            own_cpu: self.own_cpu,
            own_time: self.own_time,
        }
    }
}
