// node-redis against the server: the checks of tests/clients/run with its default (RESP3), with RESP2, and with its cache.

import { RESP_TYPES, createClient, SimpleError, ErrorReply } from 'redis';
import { between, DEPTHS, equal, EVERY_BYTE, LOCKED_PORT, MEGABYTE, PASSWORD, PORT, rejects, run, until } from './check.mjs';

const MODES = {
  default: {},
  resp2: { RESP: 2 },
  resp3: { RESP: 3 },
  // As the documentation turns it on.
  cache: { RESP: 3, clientSideCache: { ttl: 0, maxEntries: 0, evictPolicy: 'LRU' } },
};

async function open(options, port = PORT) {
  const client = createClient({ socket: { host: '127.0.0.1', port }, ...options });
  // Without a listener an error event ends the process; with one, commands fail by themselves.
  client.on('error', () => {});
  await client.connect();
  return client;
}

/** Runs `body` with a second client of its own. */
async function using(options, body) {
  const client = await open(options);
  try {
    return await body(client);
  } finally {
    client.destroy();
  }
}

/** Connects to the server that wants a password; a refusal must not be retried for ever. */
async function openLocked(options) {
  const socket = { host: '127.0.0.1', port: LOCKED_PORT, reconnectStrategy: false };
  const client = createClient({ ...options, socket });
  client.on('error', () => {});
  await client.connect();
  return client;
}

const buffers = (client) => client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });

const CHECKS = {
  async connect(c) {
    equal(await c.ping(), 'PONG');
    equal(await c.echo('hello'), 'hello');
  },

  async text(c) {
    equal(await c.set('text', 'caf\u00e9 \u2713'), 'OK');
    equal(await c.get('text'), 'caf\u00e9 \u2713');
    equal(await c.get('absent'), null);
  },

  async binary(c) {
    const key = Buffer.from([0, 255, 13, 10]);
    equal(await c.set(key, EVERY_BYTE), 'OK');
    equal(await buffers(c).get(key), EVERY_BYTE);
  },

  async empty(c) {
    equal(await c.set('', ''), 'OK');
    equal(await c.get(''), '');
    equal(await c.strLen(''), 0);
  },

  async megabyte(c) {
    equal(await c.set('megabyte', MEGABYTE), 'OK');
    equal(Buffer.compare(await buffers(c).get('megabyte'), MEGABYTE), 0);
  },

  async set_options(c) {
    equal(await c.set('option', '1', { NX: true }), 'OK');
    equal(await c.set('option', '2', { NX: true }), null);
    equal(await c.set('option', '2', { XX: true }), 'OK');
    equal(await c.set('option-absent', '2', { XX: true }), null);
    equal(await c.set('option', '3', { GET: true }), '2');
    equal(await c.set('option', '4', { EX: 100 }), 'OK');
    between(await c.ttl('option'), 90, 100);
    equal(await c.set('option', '5', { PX: 200_000, GET: true }), '4');
    between(await c.pTTL('option'), 190_000, 200_000);
    equal(await c.set('option', '6', { KEEPTTL: true }), 'OK');
    between(await c.pTTL('option'), 190_000, 200_000);
  },

  async expire(c) {
    await c.set('expire', 'x');
    equal(await c.expire('expire', 50), 1);
    between(await c.ttl('expire'), 40, 50);
    equal(await c.expire('expire', 10, 'GT'), 0);
    equal(await c.persist('expire'), 1);
    equal(await c.persist('expire'), 0);
    equal(await c.ttl('expire'), -1);
    equal(await c.ttl('absent'), -2);
    equal(await c.expireAt('expire', 4_102_444_800), 1);
    equal(await c.expireTime('expire'), 4_102_444_800);
  },

  async increment(c) {
    equal(await c.incr('counter'), 1);
    equal(await c.incrBy('counter', 41), 42);
    equal(await c.decrBy('counter', 2), 40);
    equal(await c.incrByFloat('counter', 0.5), '40.5');
    equal(await c.get('counter'), '40.5');
  },

  async multi_key(c) {
    equal(await c.mSet({ m1: 'a', m2: 'b', m3: '' }), 'OK');
    equal(await c.mGet(['m1', 'absent', 'm2', 'm3']), ['a', null, 'b', '']);
    equal(await c.mSetNX({ m4: 'x', m1: 'y' }), 0);
  },

  async ranges(c) {
    equal(await c.append('range', 'Hello World'), 11);
    equal(await c.getRange('range', -5, -1), 'World');
    equal(await c.setRange('range', 6, 'Redis'), 11);
    equal(await c.get('range'), 'Hello Redis');
  },

  async bits(c) {
    equal(await c.setBit('bits', 7, 1), 0);
    equal(await c.setBit('bits', 100, 1), 0);
    equal(await c.getBit('bits', 100), 1);
    equal(await c.bitCount('bits'), 2);
    equal(await c.bitPos('bits', 1), 7);
  },

  async collections(c) {
    equal(await c.hSet('hash', { f: 'v', n: 1 }), 2);
    equal(await c.hIncrBy('hash', 'n', 4), 5);
    equal(await c.hGetAll('hash'), { f: 'v', n: '5' });
    equal(await c.sAdd('set', ['a', 'b']), 2);
    equal([...(await c.sMembers('set'))].sort(), ['a', 'b']);
    const scores = [{ value: 'a', score: 1 }, { value: 'b', score: 2.5 }];
    equal(await c.zAdd('sorted', scores), 2);
    equal(await c.zRangeWithScores('sorted', 0, -1), scores);
    equal(await c.rPush('list', ['1', '2', '3']), 3);
    equal(await c.lMove('list', 'other', 'LEFT', 'RIGHT'), '1');
    equal(await c.lRange('list', 0, -1), ['2', '3']);
    const palermo = { longitude: 13.361389, latitude: 38.115556, member: 'Palermo' };
    const catania = { longitude: 15.087269, latitude: 37.502669, member: 'Catania' };
    equal(await c.geoAdd('places', [palermo, catania]), 2);
    equal(Math.round(await c.geoDist('places', 'Palermo', 'Catania', 'km')), 166);
    equal(Number(await c.pfAdd('visits', ['x', 'y'])), 1);
    equal(await c.pfCount('visits'), 2);
    equal(await c.blPop('list', 1), { key: 'list', element: '2' });
    equal(await c.bzPopMin('sorted', 1), { key: 'sorted', value: 'a', score: 1 });
  },

  async delete(c) {
    await c.mSet({ d1: '1', d2: '2', d3: '3' });
    equal(await c.exists(['d1', 'd2', 'd3', 'd1', 'absent']), 4);
    equal(await c.del(['d1', 'absent']), 1);
    equal(await c.unlink(['d2', 'd3']), 2);
    equal(await c.exists(['d1', 'd2', 'd3']), 0);
  },

  async scan(c) {
    const expected = Array.from({ length: 1000 }, (_, i) => `scan:${i}`);
    await c.mSet(expected.flatMap((key) => [key, 'x']));
    const seen = new Set();
    for await (const keys of c.scanIterator({ MATCH: 'scan:*', COUNT: 50 })) keys.forEach((key) => seen.add(key));
    equal([...seen].sort(), expected.sort());
  },

  async pipeline(c) {
    const calls = Array.from({ length: 500 }, (_, i) => [c.set(`pipe:${i}`, `${i}`), c.get(`pipe:${i}`)]).flat();
    equal(await Promise.all(calls), Array.from({ length: 500 }, (_, i) => ['OK', `${i}`]).flat());
    const batch = c.multi();
    for (let i = 0; i < 1000; i++) batch.incr('pipe-counter');
    equal(await batch.execAsPipeline(), Array.from({ length: 1000 }, (_, i) => i + 1));
  },

  async deep_pipeline(c) {
    for (const [count, size] of DEPTHS) {
      const value = 'x'.repeat(size);
      const batch = c.multi().set('deep', value);
      for (let i = 0; i < count; i++) batch.get('deep');
      const replies = await batch.execAsPipeline();
      equal(replies.length, count + 1);
      equal(replies.slice(1).every((reply) => reply === value), true);
    }
  },

  async select(c, options) {
    await c.set('where', 'zero');
    await using({ ...options, database: 3 }, async (other) => {
      equal(await other.get('where'), null);
      equal(await other.set('where', 'three'), 'OK');
      equal(await c.get('where'), 'zero');
      equal(await other.dbSize(), 1);
      await other.flushDb();
    });
  },

  async client_info(c, options) {
    await using({ ...options, name: 'checks' }, async (named) => {
      equal(await named.clientGetName(), 'checks');
      const me = await named.clientInfo();
      equal([me.name, me.id], ['checks', await named.clientId()]);
      const listed = (await c.clientList()).filter((entry) => entry.name === 'checks');
      equal(listed.map((entry) => entry.id), [me.id]);
    });
  },

  async info(c) {
    const info = await c.info();
    for (const line of [/^redis_version:\d+\.\d+\.\d+\r?$/m, /^role:master\r?$/m, /^loading:0\r?$/m, /^db0:keys=\d+/m]) {
      if (!line.test(info)) throw new Error(`INFO lacks ${line}`);
    }
  },

  async config(c) {
    equal(await c.configGet('databases'), { databases: '16' });
    equal(Object.keys(await c.configGet('maxmemory*')).includes('maxmemory'), true);
    equal(await c.configGet('no-such-setting'), {});
  },

  async cache(c, options) {
    if (!options.clientSideCache) return;
    await c.set('city', 'New York');
    for (let i = 0; i < 3; i++) equal(await c.get('city'), 'New York');
    await using({ RESP: 3 }, async (other) => {
      await other.set('city', 'Paris');
      await until(async () => (await c.get('city')) === 'Paris');
      await c.set('city', 'Rome');
      await until(async () => (await c.get('city')) === 'Rome');
      await other.pExpire('city', 1);
      await until(async () => (await c.get('city')) === null);
      await other.set('city', 'Oslo');
      await until(async () => (await c.get('city')) === 'Oslo');
      await other.flushAll();
      await until(async () => (await c.get('city')) === null);
    });
  },

  async command(c) {
    const table = await c.command();
    const get = table.find((entry) => entry.name === 'get');
    equal([get.arity, get.firstKeyIndex, get.lastKeyIndex, get.step], [2, 1, 1, 1]);
    equal(get.flags.has('readonly'), true);
    equal(await c.commandGetKeys(['MSET', 'a', '1', 'b', '2']), ['a', 'b']);
    equal((await c.commandCount()) >= 60, true);
  },

  async not_an_integer(c) {
    await c.set('word', 'abc');
    const error = await rejects(SimpleError, c.incr('word'));
    equal(error.message, 'ERR value is not an integer or out of range');
  },

  async unknown_command(c) {
    const error = await rejects(SimpleError, c.sendCommand(['NOSUCHCOMMAND', 'x']));
    equal(error.message.startsWith('ERR unknown command'), true);
    equal(await c.ping(), 'PONG');
  },

  async password(_, options) {
    const client = await openLocked({ ...options, password: PASSWORD });
    equal(await client.ping(), 'PONG');
    client.destroy();
  },

  async wrong_password(_, options) {
    const error = await rejects(ErrorReply, openLocked({ ...options, password: 'no' }));
    equal(error.message.startsWith('WRONGPASS'), true);
  },

  async no_password(_, options) {
    const refused = openLocked(options).then((client) => client.ping().finally(() => client.destroy()));
    const error = await rejects(ErrorReply, refused);
    equal(error.message.startsWith('NOAUTH'), true);
  },

  async reconnect(c, options) {
    await using(options, async (victim) => {
      const before = await victim.clientId();
      equal(await c.clientKill({ filter: 'ID', id: String(before) }), 1);
      const after = await until(() => victim.clientId().catch(() => 0));
      equal(after > before, true);
    });
  },
};

/** `run` empties the server by the name that both clients have. */
async function openEmptied(options) {
  const client = await open(options);
  client.flushall = () => client.flushAll();
  return client;
}

await run('redis', MODES, CHECKS, openEmptied, (client) => client.close());
