// The parts of a framework's program for tests/clients/jobs.py, which says what they print. A framework is an object:
//
//     version, capabilities     what the parts of these names print
//     queue(port, name)         opens a queue for a producer, an object with add(job, { delay, priority }), which returns
//                               the job's ID, repeat(job, every), left() and result(job, id)
//     worker(port, name, options, work)    starts a worker, and returns a function that closes it

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const PAUSE_MS = 10;

export function tell(...words) {
  process.stdout.write(`${words.join(' ')}\n`);
}

/** The work of a worker: it may hold jobs once it has finished enough. */
class Work {
  constructor({ work, hold = Infinity }) {
    Object.assign(this, { work, hold, finishedCount: 0 });
  }

  async perform(job) {
    tell('started', process.hrtime.bigint(), job);
    if (this.finishedCount >= this.hold) {
      tell('holding', job);
      await sleep(2 ** 31 - 1);
    }
    await sleep(this.work);
    return job.toUpperCase();
  }

  finished(job) {
    tell('finished', process.hrtime.bigint(), job);
    this.finishedCount += 1;
  }

  again(job) {
    tell('again', job);
  }
}

/** Words such as `delay=100` as an object. */
function options(words) {
  const pairs = words.map((word) => word.split('='));
  return Object.fromEntries(pairs.map(([name, value]) => [name, name === 'limit' ? value : Number(value)]));
}

/** Whether the server has answered that a request is wrong. It loads its keys, and has no scripts, after a start. */
function isRefusal(error) {
  return error.name === 'ReplyError' && !/^(LOADING|NOSCRIPT)/.test(error.message);
}

class Producer {
  constructor(framework, port) {
    Object.assign(this, { framework, port, queues: new Map() });
  }

  queue(name) {
    if (!this.queues.has(name)) this.queues.set(name, this.framework.queue(this.port, name));
    return this.queues.get(name);
  }

  async add(name, job, ...words) {
    const asked = process.hrtime.bigint();
    try {
      const identifier = await this.queue(name).add(job, options(words));
      tell('added', asked, job, identifier);
    } catch (error) {
      if (isRefusal(error)) throw error;
      console.error(`add ${job}: ${error}`);
      await sleep(PAUSE_MS);
      tell('cut', asked, job);
    }
  }

  async repeat(name, job, every) {
    const asked = process.hrtime.bigint();
    await this.insist(() => this.queue(name).repeat(job, Number(every)));
    tell('repeating', asked, job);
  }

  async left(name) {
    tell('left', name, await this.insist(() => this.queue(name).left()));
  }

  async result(name, job, identifier) {
    tell('result', job, (await this.insist(() => this.queue(name).result(job, identifier))) ?? 'none');
  }

  /** Asks until there is an answer. */
  async insist(call) {
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (isRefusal(error)) throw error;
        console.error(String(error));
        await sleep(PAUSE_MS);
      }
    }
  }
}

export async function play(framework) {
  const [part, port, name, ...words] = process.argv.slice(2);
  if (part === 'version') return console.log(framework.version);
  if (part === 'capabilities') return console.log(framework.capabilities);
  if (part === 'producer') {
    const producer = new Producer(framework, Number(port));
    for await (const line of createInterface({ input: process.stdin })) {
      const [request, ...rest] = line.split(' ');
      await producer[request](...rest);
    }
  } else if (part === 'worker') {
    const close = framework.worker(Number(port), name, options(words), new Work(options(words)));
    process.stdin.resume();
    await new Promise((resolve) => process.stdin.on('end', resolve));
    await close?.();
  }
  process.exit(0);
}
