// BullMQ, for tests/clients/jobs.py. A job runs at least once: one whose lock is not renewed is given to another worker.

import { Job, Queue, Worker } from 'bullmq';
import { version } from './check.mjs';
import { play } from './jobs.mjs';

/** How long a lock is held, how often it is renewed, how often other workers look for jobs without one, and pauses. */
const [LOCK_MS, RENEW_MS, LOOK_MS, PAUSE_MS] = [1000, 200, 200, 50];

function connection(port, options) {
  return { host: '127.0.0.1', port, retryStrategy: () => PAUSE_MS, ...options };
}

await play({
  version: `bullmq ${version('bullmq')}`,
  capabilities: 'at-least-once delays order priorities repeats=200 limits results',

  queue(port, name) {
    // A request that got no reply is not sent again.
    const options = { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
    const queue = new Queue(name, { connection: connection(port, options) });
    // Each request reports its own error.
    queue.on('error', () => {});
    return {
      add: async (job, { delay, priority }) => (await queue.add(job, null, { delay, priority })).id,
      repeat: (job, every) => queue.upsertJobScheduler(job, { every }, { name: job }),
      left: () => queue.getJobCountByTypes('waiting', 'active', 'delayed', 'prioritized', 'paused', 'failed'),
      result: async (job, id) => (await queue.getJob(id))?.returnvalue,
    };
  },

  worker(port, name, { concurrency, limit }, work) {
    const [max, duration] = limit?.split('/').map(Number) ?? [];
    const worker = new Worker(name, (job) => work.perform(job.name), {
      connection: connection(port),
      concurrency,
      limiter: limit && { max, duration },
      lockDuration: LOCK_MS,
      lockRenewTime: RENEW_MS,
      stalledInterval: LOOK_MS,
      maxStalledCount: 100,
      runRetryDelay: PAUSE_MS,
    });
    worker.on('completed', (job) => work.finished(job.name));
    const report = (error) => console.error(`${error}`);
    worker.on('stalled', (id) => Job.fromId(worker, id).then((job) => work.again(job.name), report));
    worker.on('error', report);
    return () => worker.close();
  },
});
