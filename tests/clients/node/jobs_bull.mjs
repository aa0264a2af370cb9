// Bull, for tests/clients/jobs.py. A job runs at least once: one whose lock is not renewed is given to another worker.

import Bull from 'bull';
import { version } from './check.mjs';
import { play } from './jobs.mjs';

/** How long a lock is held, how often it is renewed, how often other workers look for jobs without one, and pauses. */
const [LOCK_MS, RENEW_MS, LOOK_MS, PAUSE_MS] = [1000, 200, 200, 50];

function open(port, name, redis, options) {
  const queue = new Bull(name, { redis: { host: '127.0.0.1', port, retryStrategy: () => PAUSE_MS, ...redis }, ...options });
  queue.on('error', (error) => console.error(`${error}`));
  return queue;
}

await play({
  version: `bull ${version('bull')}`,
  capabilities: 'at-least-once delays order priorities repeats=200 limits results',

  queue(port, name) {
    // A request that got no reply is not sent again.
    const queue = open(port, name, { autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 });
    return {
      add: async (job, { delay, priority }) => (await queue.add({ job }, { delay, priority })).id,
      repeat: (job, every) => queue.add({ job }, { repeat: { every } }),
      left: () => queue.getJobCountByTypes(['waiting', 'active', 'delayed', 'paused', 'failed']),
      result: async (job, id) => (await queue.getJob(id))?.returnvalue,
    };
  },

  worker(port, name, { concurrency, limit }, work) {
    const [max, duration] = limit?.split('/').map(Number) ?? [];
    const times = { lockDuration: LOCK_MS, lockRenewTime: RENEW_MS, stalledInterval: LOOK_MS, maxStalledCount: 100 };
    const settings = { ...times, guardInterval: PAUSE_MS, retryProcessDelay: PAUSE_MS, drainDelay: 1 };
    const queue = open(port, name, { maxRetriesPerRequest: null }, { limiter: limit && { max, duration }, settings });
    queue.on('completed', (job) => work.finished(job.data.job));
    queue.on('stalled', (job) => work.again(job.data.job));
    queue.process(concurrency, (job) => work.perform(job.data.job));
    return () => queue.close();
  },
});
