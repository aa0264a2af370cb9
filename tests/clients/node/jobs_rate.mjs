// BullMQ, for scripts/jobs: adds jobs, or does them, as fast as it can.
//
//     node jobs_rate.mjs PORT add COUNT        adds jobs, 100 at a time; prints the milliseconds
//     node jobs_rate.mjs PORT work COUNT       does jobs that do nothing, 50 at a time, until COUNT are done by all
//                                              such processes; prints its own number

import { Queue, Worker } from 'bullmq';

const [port, verb, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const connection = { host: '127.0.0.1', port };
const ADDERS = 100;
const CONCURRENCY = 50;

if (verb === 'add') {
  const queue = new Queue('jobs', { connection });
  let next = 0;
  const adder = async () => {
    while (next < count) {
      next += 1;
      await queue.add('job', { number: next });
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: ADDERS }, adder));
  console.log(Math.round(performance.now() - began));
  await queue.close();
} else {
  let done = 0;
  const worker = new Worker('jobs', async () => (done += 1), { connection, concurrency: CONCURRENCY });
  const queue = new Queue('jobs', { connection });
  while ((await queue.getCompletedCount()) < count) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  console.log(done);
  await worker.close();
  await queue.close();
}
