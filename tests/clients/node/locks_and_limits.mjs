// Locks and rate limits of libraries for Node.js, each used by two processes at once.
//
//     locks_and_limits.mjs held     a lock excludes: a counter that it guards loses no update; a limit is exact
//     locks_and_limits.mjs ended    the lock of a killed process is free when its time to live ends, and not before; a
//                                   new window allows requests again
//
// Each mode is a library, for rate-limiter-flexible with its client. No check measures a duration: moments are compared
// by the server's clock. The other processes run this file with `plays`.

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { attempt, equal, PORT, version } from './check.mjs';

const PACKAGES = ['redlock', 'rate-limiter-flexible', 'rate-limit-redis'];
const HERE = fileURLToPath(import.meta.url);
/** A time to live that no check outlives, a short one, and how often a waiting process asks for a lock. */
const [LONG_MS, SHORT_MS, ASK_MS] = [30_000, 500, 2];
/** Increments by each of two processes, at least. */
const ROUNDS = 20;
/** Requests that a long window allows, and the window after which requests are allowed again. */
const LIMIT = 10;
const WINDOW_SECONDS = 1;
/** Two clocks of one machine, and the millisecond to which a server rounds a time to live. */
const CLOCK_MS = 10;

const client = new Redis({ host: '127.0.0.1', port: PORT });

// The locks and limits. A process imports the library that it uses, so that it starts quickly.

/** Each makes a lock with a time to live, once it is free. */
const LOCKS = {
  /** Excludes nothing. */
  'no-lock': async () => ({ unlock: async () => {} }),

  async 'node-redlock'(milliseconds) {
    const { default: Redlock } = await import('redlock');
    const redlock = new Redlock([client], { retryCount: -1, retryDelay: ASK_MS, retryJitter: ASK_MS });
    return redlock.lock('lock', milliseconds);
  },
};

/** Each makes a limiter: a function that asks for one request and tells whether the limit allows it. */
const LIMITS = {
  'rate-limiter-flexible-ioredis': (points, duration) => consume({ storeClient: client, points, duration }),

  async 'rate-limiter-flexible-node-redis'(points, duration) {
    return consume({ storeClient: await nodeRedis(), useRedisPackage: true, points, duration });
  },

  /** A server of Express. */
  async 'rate-limit-redis'(limit, duration) {
    const { default: express } = await import('express');
    const { rateLimit } = await import('express-rate-limit');
    const { RedisStore } = await import('rate-limit-redis');
    const connection = await nodeRedis();
    const store = new RedisStore({ sendCommand: (...words) => connection.sendCommand(words) });
    const app = express();
    app.use(rateLimit({ windowMs: duration * 1000, limit, store }));
    app.get('/', (_, response) => response.send('page'));
    const server = app.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return async () => {
      const { status } = await fetch(`http://127.0.0.1:${server.address().port}/`);
      if (status !== 200 && status !== 429) throw new Error(`status ${status}`);
      return status === 200;
    };
  },
};

async function nodeRedis() {
  const { createClient } = await import('redis');
  return createClient({ socket: { host: '127.0.0.1', port: PORT } }).connect();
}

async function consume(options) {
  const { RateLimiterRedis } = await import('rate-limiter-flexible');
  const limiter = new RateLimiterRedis(options);
  return async () => {
    try {
      await limiter.consume('user');
      return true;
    } catch (refusal) {
      if (refusal instanceof Error) throw refusal;
      return false;
    }
  };
}

// The other processes.

const ROLES = {
  /** Increments a counter by GET and SET under a lock, until both processes have done so often enough. */
  async count(number, library) {
    await begin();
    const isDone = (rounds) => Number(rounds) >= ROUNDS;
    while (!(await client.mget('rounds:0', 'rounds:1')).every(isDone)) {
      const lock = await LOCKS[library](LONG_MS);
      const counter = Number(await client.get('counter'));
      await sleep(1);
      await client.set('counter', counter + 1);
      await client.incr(`rounds:${number}`);
      await lock.unlock();
      // The turn of the other process.
      await sleep(ASK_MS);
    }
    tell('done');
  },

  /** Holds a lock for ever, and tells when its time to live ends. */
  async hold(library) {
    await LOCKS[library](SHORT_MS);
    tell(await expiry());
  },

  /** Waits for a lock, and tells when it had it. */
  async wait(library) {
    await begin();
    await LOCKS[library](LONG_MS);
    tell(await now());
  },

  /** As many requests at once as a window allows. Tells how many it allowed. */
  async request(_, library) {
    const allows = await LIMITS[library](LIMIT, 24 * 60 * 60);
    await begin();
    const answers = await Promise.all(Array.from({ length: LIMIT }, allows));
    tell(answers.filter((allowed) => allowed).length);
  },
};

function tell(message) {
  process.send({ message });
}

async function begin() {
  tell('ready');
  await once(process, 'message');
}

/** A process that plays roles. It ends with this one. */
class Process {
  heard = [];

  constructor() {
    this.process = fork(HERE, ['plays']);
    this.process.on('message', ({ message }) => this.heard.push(message));
    this.process.on('exit', (code, signal) => (this.end = `a process ended with ${signal ?? code}`));
  }

  play(...role) {
    this.process.send(role);
    return this;
  }

  async hear() {
    while (!this.heard.length) {
      if (this.end) throw new Error(this.end);
      await sleep(1);
    }
    return this.heard.shift();
  }

  async kill() {
    this.process.kill('SIGKILL');
    while (!this.end) await sleep(1);
  }
}

function plays() {
  process.on('disconnect', () => process.exit(1));
  process.on('message', (role) => {
    if (Array.isArray(role)) ROLES[role[0]](...role.slice(1));
  });
}

let pair;

/** The answers of two processes with one role, which begin together. They stay for the next: a start takes long. */
async function two(role, library) {
  pair ??= [new Process(), new Process()];
  try {
    pair.forEach((other, number) => other.play(role, number, library));
    for (const other of pair) equal(await other.hear(), 'ready');
    for (const other of pair) other.process.send('begin');
    return [await pair[0].hear(), await pair[1].hear()];
  } catch (error) {
    for (const other of pair) await other.kill();
    pair = undefined;
    throw error;
  }
}

// The server's data.

async function now() {
  const [seconds, microseconds] = await client.time();
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

/** When the lock's time to live ends; below zero if it has ended. */
function expiry() {
  return client.pexpiretime('lock');
}

/** The counter after two processes have incremented it, and how often they did. */
async function counted(library) {
  await client.flushall();
  await two('count', library);
  const [counter, one, other] = (await client.mget('counter', 'rounds:0', 'rounds:1')).map(Number);
  return { counter, rounds: one + other };
}

// The checks.

/** Without a lock updates are lost: `excludes` can fail. */
async function loses_updates(library) {
  for (let i = 0; i < 20; i++) {
    const { counter, rounds } = await counted(library);
    if (counter < rounds) return;
  }
  throw new Error('two processes without a lock lost no update');
}

async function excludes(library) {
  const { counter, rounds } = await counted(library);
  equal(counter, rounds);
}

async function extends_(library) {
  let lock = await LOCKS[library](LONG_MS);
  const before = await expiry();
  lock = await lock.extend(2 * LONG_MS);
  const after = await expiry();
  if (!(after > before && before > 0)) throw new Error(`the lock ended at ${before}, and at ${after} when extended`);
  await lock.unlock();
}

async function killed_holder(library) {
  // Ready before the lock is taken: its time to live is short.
  const waiter = new Process().play('wait', library);
  equal(await waiter.hear(), 'ready');
  const holder = new Process().play('hold', library);
  const ends = await holder.hear();
  await holder.kill();
  waiter.process.send('begin');
  const acquired = await waiter.hear();
  await waiter.kill();
  const early = ends - acquired;
  if (early > 0) throw new Error(`another process had the lock ${early} ms before its time to live ended`);
}

/** A lock that another holder has meanwhile stays with it. */
async function late_release(library) {
  const late = await LOCKS[library](SHORT_MS);
  const other = await LOCKS[library](LONG_MS);
  const held = await client.get('lock');
  await late.unlock().catch((error) => equal(error.name, 'LockError'));
  equal(await client.get('lock'), held);
  equal(typeof held, 'string');
  await other.unlock();
}

async function counts(library) {
  const [one, other] = await two('request', library);
  equal(one + other, LIMIT);
}

/** Requests without a pause, until a window has refused one and a later window has allowed one. */
async function renews(library) {
  const allows = await LIMITS[library](2, WINDOW_SECONDS);
  const began = await now();
  let [allowed, isRefused] = [0, false];
  while (!isRefused || allowed <= 2) {
    if (!(await allows())) {
      isRefused = true;
      await sleep(ASK_MS);
      continue;
    }
    allowed += 1;
    const windows = 1 + Math.floor(((await now()) - began + CLOCK_MS) / (WINDOW_SECONDS * 1000));
    if (allowed > 2 * windows) throw new Error(`${allowed} requests were allowed in ${windows} windows of two`);
  }
}

const limits = Object.keys(LIMITS);
const CHECKS = {
  held: [
    ['no-lock', 'loses_updates', loses_updates],
    ['node-redlock', 'excludes', excludes],
    ['node-redlock', 'extends', extends_],
    ...limits.map((library) => [library, 'counts', counts]),
  ],
  ended: [
    ['node-redlock', 'killed_holder', killed_holder],
    ['node-redlock', 'late_release', late_release],
    ...limits.map((library) => [library, 'renews', renews]),
  ],
};

const which = process.argv[2];
if (which === 'plays') {
  plays();
} else {
  console.log(`version ${PACKAGES.map((name) => `${name} ${version(name)}`).join(', ')}`);
  let passed = true;
  for (const [library, name, check] of CHECKS[which]) {
    await client.flushall();
    passed = (await attempt(library, name, () => check(library))) && passed;
  }
  process.exit(passed ? 0 : 1);
}
