// node-redis's createCluster against three nodes: the checks of tests/clients/cluster.py.

import { createCluster, SimpleError } from 'redis';
import { equal, rejects, run, until } from './check.mjs';
import { KEYS, PORTS, TAGS, each, marked, own, please, reload } from './cluster.mjs';

const onAll = (cluster, call) => Promise.all(cluster.masters.map(async (master) => call(await cluster.nodeClient(master))));

async function open() {
  const cluster = createCluster({ rootNodes: [{ url: `redis://127.0.0.1:${PORTS[0]}` }] });
  // Without a listener a node that is down ends the process.
  cluster.on('error', () => {});
  await cluster.connect();
  cluster.flushall = () => onAll(cluster, (node) => node.flushAll());
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
    const sizes = await onAll(c, (node) => node.dbSize());
    equal([sizes.length, sizes[0] + sizes[1] + sizes[2], Math.min(...sizes) > KEYS / 4], [3, KEYS, true]);
  },

  async hash_tags(c) {
    for (const tag of TAGS) {
      const keys = Array.from({ length: 100 }, (_, number) => `{${tag}}:${number}`);
      equal(await c.mSet(keys.flatMap((key) => [key, key])), 'OK');
      equal(await c.mGet(keys), keys);
      equal(await c.del(keys), 100);
    }
    // Over several nodes, which this client does by itself.
    const keys = Array.from({ length: 100 }, (_, number) => `many:${number}`);
    equal(await c.mSet(keys.flatMap((key) => [key, key])), 'OK');
    equal(await c.mGet(keys), keys);
    equal(await c.del(keys), 100);
  },

  async pipeline(c) {
    for (const tag of TAGS) {
      const batch = c.multi();
      for (let number = 0; number < 500; number++) batch.incr(`{${tag}}:pipe`);
      batch.del(`{${tag}}:pipe`);
      const expected = Array.from({ length: 500 }, (_, number) => number + 1);
      equal(await batch.execAsPipeline(), [...expected, 1]);
    }
  },

  async transaction(c) {
    for (const tag of TAGS) {
      const key = `{${tag}}:count`;
      equal(await c.multi().set(key, 1).incr(key).del(key).exec(), ['OK', 2, 1]);
    }
  },

  async crossslot(c) {
    const error = await rejects(SimpleError, c.rename('foo', 'bar'));
    equal(error.message, "CROSSSLOT Keys in request don't hash to the same slot");
    await rejects(Error, c.multi().set('foo', '1').set('bar', '2').exec());
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
    for (const tag of TAGS) {
      let hear;
      const heard = new Promise((resolve) => (hear = (message, channel) => resolve([channel, message])));
      await c.sSubscribe(tag, hear);
      equal(await c.sPublish(tag, 'news'), 1);
      equal(await heard, [tag, 'news']);
      await c.sUnsubscribe(tag, hear);
    }
  },
};

await run('redis', { cluster: {} }, CHECKS, open, (cluster) => cluster.close());
