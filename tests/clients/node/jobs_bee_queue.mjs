// Bee-Queue, for tests/clients/jobs.py. A job runs at least once: one whose worker does not report it is given to another. It
// knows its scripts by their digests alone, so that a program that finds them missing after a start of the server begins anew.

import Queue from 'bee-queue';
import { version } from './check.mjs';
import { play } from './jobs.mjs';

/** How often a job is reported, at least, and pauses. */
const [STALL_MS, PAUSE_MS] = [1000, 50];

function open(port, name, options) {
  const redis = { host: '127.0.0.1', port, retry_strategy: () => PAUSE_MS };
  return new Queue(name, { redis, stallInterval: STALL_MS, initialRedisFailureRetryDelay: PAUSE_MS, ...options });
}

await play({
  version: `bee-queue ${version('bee-queue')}`,
  capabilities: 'at-least-once delays order restarts',

  queue(port, name) {
    let queue;
    /** A request with a queue that has its scripts. */
    const request = async (call) => {
      if (!queue) {
        queue = open(port, name, { isWorker: false });
        queue.on('error', () => {});
      }
      try {
        return await call(queue);
      } catch (error) {
        if (error.code === 'NOSCRIPT') {
          queue.close().catch(() => {});
          queue = undefined;
        }
        throw error;
      }
    };
    return {
      async add(job, { delay = 0 }) {
        const added = await request((queue) => queue.createJob({ job }).delayUntil(Date.now() + delay).save());
        return added.id;
      },
      async left() {
        const { waiting, active, delayed, failed } = await request((queue) => queue.checkHealth());
        return waiting + active + delayed + failed;
      },
    };
  },

  worker(port, name, { concurrency }, work) {
    const queue = open(port, name, { activateDelayedJobs: true, delayedDebounce: PAUSE_MS });
    const report = (error) => {
      console.error(`${error}`);
      if (error.code === 'NOSCRIPT') process.exit(0);
    };
    queue.on('succeeded', (job) => work.finished(job.data.job));
    queue.on('stalled', (id) => queue.getJob(id).then((job) => work.again(job.data.job), report));
    queue.on('error', report);
    // It does not try again to connect for the first time.
    queue.ready().catch(() => process.exit(0));
    queue.process(concurrency, (job) => work.perform(job.data.job));
    queue.checkStalledJobs(STALL_MS / 2);
    return () => queue.close();
  },
});
