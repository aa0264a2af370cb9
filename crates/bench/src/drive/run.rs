//! One run: starts the threads, gives them the same start, adds up what they count, and watches the
//! server's use of the machine.

use super::clock::{self, Ticks};
use super::counts::{Slice, new_histogram, percentile_ns};
use super::job::{Job, Message};
use super::outcome::{Interval, Outcome, Point};
use super::plan::Plan;
use super::progress::Progress;
use super::worker::Worker;
use crate::limits::{INTERVAL, SLICE};
use crate::load::data::Data;
use crate::load::workload::Workload;
use crate::wire::link::{LinkError, NO_AUTH, no_auth};
use crate::wire::target::Target;
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, SystemTime};

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
