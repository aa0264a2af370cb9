// ioredis's Cluster against three nodes: the checks of tests/clients/cluster.py.

import Redis from 'ioredis';
import { equal, rejects, run, until } from './check.mjs';
import { KEYS, PORTS, TAGS, each, marked, own, please, reload } from './cluster.mjs';

const { ReplyError } = Redis;

async function open(options) {
  const cluster = new Redis.Cluster([{ host: '127.0.0.1', port: PORTS[0] }], options);
  // Without a listener a node that is down ends the process.
  cluster.on('error', () => {});
  await new Promise((resolve) => cluster.once('ready', resolve));
  cluster.flushall = () => Promise.all(cluster.nodes('master').map((node) => node.flushall()));
  return cluster;
}

/** Gives every key a value: the first hundred one after the other. */
async function write(c, mark) {
  for (let number = 0; number < 100; number++) equal(await c.set(`key:${number}`, `${mark}${number}`), 'OK');
  await each(KEYS, (number) => c.set(`key:${number}`, `${mark}${number}`));
}

const read = (c) => each(KEYS, (number) => c.get(`key:${number}`));

const CHECKS = {
  async spread(c) {
    await write(c, 'a');
    equal(await read(c), marked('a'));
    const sizes = await Promise.all(c.nodes('master').map((node) => node.dbsize()));
    equal([sizes.length, sizes[0] + sizes[1] + sizes[2], Math.min(...sizes) > KEYS / 4], [3, KEYS, true]);
  },

  async hash_tags(c) {
    for (const tag of TAGS) {
      const keys = Array.from({ length: 100 }, (_, number) => `{${tag}}:${number}`);
      equal(await c.mset(keys.flatMap((key) => [key, key])), 'OK');
      equal(await c.mget(keys), keys);
      equal(await c.del(keys), 100);
    }
  },

  /** A pipeline of this client is for one node; its automatic pipelines are a node each. */
  async pipeline(c) {
    for (const tag of TAGS) {
      const pipe = c.pipeline();
      for (let number = 0; number < 500; number++) pipe.incrby(`{${tag}}:pipe`, 1);
      pipe.del(`{${tag}}:pipe`);
      const expected = Array.from({ length: 500 }, (_, number) => [null, number + 1]);
      equal(await pipe.exec(), [...expected, [null, 1]]);
    }
    const automatic = await open({ enableAutoPipelining: true });
    try {
      const replies = await each(500, (number) => automatic.incrby(`pipe:${number}`, number));
      equal(replies, Array.from({ length: 500 }, (_, number) => number));
      await each(500, (number) => automatic.del(`pipe:${number}`));
    } finally {
      automatic.disconnect();
    }
  },

  async transaction(c) {
    for (const tag of TAGS) {
      const key = `{${tag}}:count`;
      equal(await c.multi().set(key, 1).incr(key).del(key).exec(), [[null, 'OK'], [null, 2], [null, 1]]);
    }
  },

  async crossslot(c) {
    const error = await rejects(ReplyError, c.mset('foo', 1, 'bar', 2));
    equal(error.message, "CROSSSLOT Keys in request don't hash to the same slot");
    // This client sees it by itself.
    const mixed = await c.multi().set('foo', 1).set('bar', 2).exec().catch((error) => error);
    equal(/slot/i.test(String(mixed)), true);
  },

  async reload(c) {
    await reload((mark) => write(c, mark), () => read(c));
  },

  async node_down(c) {
    for (const tag of TAGS) equal(await c.set(`{${tag}}:down`, tag), 'OK');
    await please('down');
    for (const tag of [TAGS[0], TAGS[2]]) {
      for (let number = 0; number < 100; number++) equal(await c.get(`{${tag}}:down`), tag);
    }
    await please('up');
    await until(() => c.get(`{${TAGS[1]}}:down`).then((value) => value === TAGS[1], () => false));
    own(await read(c));
  },

  async sharded_pubsub(c) {
    const listener = await open({ shardedSubscribers: true });
    try {
      for (const tag of TAGS) {
        const heard = new Promise((resolve) => listener.once('smessage', (channel, message) => resolve([channel, message])));
        await listener.ssubscribe(tag);
        equal(await c.spublish(tag, 'news'), 1);
        equal(await heard, [tag, 'news']);
      }
    } finally {
      listener.disconnect();
    }
  },
};

await run('ioredis', { cluster: {} }, CHECKS, open, (cluster) => cluster.quit());
