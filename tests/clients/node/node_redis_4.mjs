// node-redis 4, which keeps cursors as doubles: scans of 20,000 elements of each type show all of them.

import { createClient } from 'redis4';
import { equal, PORT, run } from './check.mjs';

const ELEMENTS = 20_000;
const NAMES = Array.from({ length: ELEMENTS }, (_, i) => `element:${i}`);
const SORTED = NAMES.toSorted();

async function open() {
  const client = createClient({ socket: { host: '127.0.0.1', port: PORT } });
  client.on('error', () => {});
  await client.connect();
  client.flushall = () => client.flushAll();
  return client;
}

/** Fails unless `iterator` shows every element; `name` makes the name of what it shows. */
async function shows(iterator, name) {
  const seen = new Set();
  for await (const shown of iterator) seen.add(name(shown));
  equal([...seen].sort(), SORTED);
}

const CHECKS = {
  async keys(c) {
    await c.mSet(NAMES.flatMap((name) => [name, 'x']));
    await shows(c.scanIterator({ MATCH: 'element:*', COUNT: 100 }), (key) => key);
  },

  async hash(c) {
    await c.hSet('scanned:hash', NAMES.flatMap((name) => [name, 'x']));
    await shows(c.hScanIterator('scanned:hash', { COUNT: 100 }), ({ field }) => field);
  },

  async set(c) {
    await c.sAdd('scanned:set', NAMES);
    await shows(c.sScanIterator('scanned:set', { COUNT: 100 }), (member) => member);
  },

  async sorted_set(c) {
    await c.zAdd('scanned:sorted', NAMES.map((value, score) => ({ value, score })));
    await shows(c.zScanIterator('scanned:sorted', { COUNT: 100 }), ({ value }) => value);
  },
};

await run('redis4', { scans: {} }, CHECKS, open, (client) => client.quit());
