// ioredis against the server: the checks of tests/clients/run with its default (RESP3), with RESP2 and auto-pipelining.

import Redis, { ReplyError } from 'ioredis';
import { between, DEPTHS, equal, EVERY_BYTE, LOCKED_PORT, MEGABYTE, PASSWORD, PORT, rejects, run, until } from './check.mjs';

const MODES = { default: {}, resp2: { protocol: 2 }, resp3: { protocol: 3 }, auto_pipelining: { enableAutoPipelining: true } };

async function open(options, port = PORT) {
  const client = new Redis({ host: '127.0.0.1', port, ...options });
  client.on('error', () => {});
  // "ready" comes after INFO said that the server is not loading.
  await new Promise((resolve) => client.once('ready', resolve));
  return client;
}

async function using(options, body) {
  const client = await open(options);
  try {
    return await body(client);
  } finally {
    client.disconnect();
  }
}

/** A client of the server that wants a password, not yet connected; it does not try again after a refusal. */
function locked(options) {
  const retryStrategy = () => null;
  const client = new Redis({ host: '127.0.0.1', port: LOCKED_PORT, lazyConnect: true, retryStrategy, ...options });
  client.on('error', () => {});
  return client;
}

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
    equal(await c.getBuffer(key), EVERY_BYTE);
  },

  async empty(c) {
    equal(await c.set('', ''), 'OK');
    equal(await c.get(''), '');
    equal(await c.strlen(''), 0);
  },

  async megabyte(c) {
    equal(await c.set('megabyte', MEGABYTE), 'OK');
    equal(Buffer.compare(await c.getBuffer('megabyte'), MEGABYTE), 0);
  },

  async set_options(c) {
    equal(await c.set('option', '1', 'NX'), 'OK');
    equal(await c.set('option', '2', 'NX'), null);
    equal(await c.set('option', '2', 'XX'), 'OK');
    equal(await c.set('option-absent', '2', 'XX'), null);
    equal(await c.set('option', '3', 'GET'), '2');
    equal(await c.set('option', '4', 'EX', 100), 'OK');
    between(await c.ttl('option'), 90, 100);
    equal(await c.set('option', '5', 'PX', 200_000, 'GET'), '4');
    between(await c.pttl('option'), 190_000, 200_000);
    equal(await c.set('option', '6', 'KEEPTTL'), 'OK');
    between(await c.pttl('option'), 190_000, 200_000);
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
    equal(await c.expireat('expire', 4_102_444_800), 1);
    equal(await c.expiretime('expire'), 4_102_444_800);
  },

  async increment(c) {
    equal(await c.incr('counter'), 1);
    equal(await c.incrby('counter', 41), 42);
    equal(await c.decrby('counter', 2), 40);
    equal(await c.incrbyfloat('counter', 0.5), '40.5');
    equal(await c.get('counter'), '40.5');
  },

  async multi_key(c) {
    equal(await c.mset({ m1: 'a', m2: 'b', m3: '' }), 'OK');
    equal(await c.mget('m1', 'absent', 'm2', 'm3'), ['a', null, 'b', '']);
    equal(await c.msetnx({ m4: 'x', m1: 'y' }), 0);
  },

  async ranges(c) {
    equal(await c.append('range', 'Hello World'), 11);
    equal(await c.getrange('range', -5, -1), 'World');
    equal(await c.setrange('range', 6, 'Redis'), 11);
    equal(await c.get('range'), 'Hello Redis');
  },

  async bits(c) {
    equal(await c.setbit('bits', 7, 1), 0);
    equal(await c.setbit('bits', 100, 1), 0);
    equal(await c.getbit('bits', 100), 1);
    equal(await c.bitcount('bits'), 2);
    equal(await c.bitpos('bits', 1), 7);
  },

  async collections(c) {
    equal(await c.hset('hash', { f: 'v', n: 1 }), 2);
    equal(await c.hincrby('hash', 'n', 4), 5);
    equal(await c.hgetall('hash'), { f: 'v', n: '5' });
    equal(await c.sadd('set', 'a', 'b'), 2);
    equal((await c.smembers('set')).sort(), ['a', 'b']);
    equal(await c.zadd('sorted', 1, 'a', 2.5, 'b'), 2);
    equal((await c.zrange('sorted', 0, -1, 'WITHSCORES')).flat().map(String), ['a', '1', 'b', '2.5']);
    equal(await c.rpush('list', 1, 2, 3), 3);
    equal(await c.lmove('list', 'other', 'LEFT', 'RIGHT'), '1');
    equal(await c.lrange('list', 0, -1), ['2', '3']);
    equal(await c.geoadd('places', 13.361389, 38.115556, 'Palermo', 15.087269, 37.502669, 'Catania'), 2);
    equal(Math.round(await c.geodist('places', 'Palermo', 'Catania', 'km')), 166);
    equal(await c.pfadd('visits', 'x', 'y'), 1);
    equal(await c.pfcount('visits'), 2);
    equal(await c.blpop('list', 1), ['list', '2']);
    equal((await c.bzpopmin('sorted', 1)).map(String), ['sorted', 'a', '1']);
  },

  async delete(c) {
    await c.mset({ d1: '1', d2: '2', d3: '3' });
    equal(await c.exists('d1', 'd2', 'd3', 'd1', 'absent'), 4);
    equal(await c.del('d1', 'absent'), 1);
    equal(await c.unlink('d2', 'd3'), 2);
    equal(await c.exists('d1', 'd2', 'd3'), 0);
  },

  async scan(c) {
    const expected = Array.from({ length: 1000 }, (_, i) => `scan:${i}`);
    await c.mset(Object.fromEntries(expected.map((key) => [key, 'x'])));
    const seen = new Set();
    for await (const keys of c.scanStream({ match: 'scan:*', count: 50 })) keys.forEach((key) => seen.add(key));
    equal([...seen].sort(), expected.sort());
  },

  async pipeline(c) {
    const pipe = c.pipeline();
    for (let i = 0; i < 500; i++) pipe.set(`pipe:${i}`, i).get(`pipe:${i}`);
    const expected = Array.from({ length: 500 }, (_, i) => [[null, 'OK'], [null, `${i}`]]).flat();
    equal(await pipe.exec(), expected);
    const calls = Array.from({ length: 1000 }, () => c.incr('pipe-counter'));
    equal(await Promise.all(calls), Array.from({ length: 1000 }, (_, i) => i + 1));
  },

  async deep_pipeline(c) {
    for (const [count, size] of DEPTHS) {
      const value = 'x'.repeat(size);
      const pipe = c.pipeline().set('deep', value);
      for (let i = 0; i < count; i++) pipe.get('deep');
      const replies = await pipe.exec();
      equal(replies.length, count + 1);
      equal(replies.slice(1).every(([error, reply]) => error === null && reply === value), true);
    }
  },

  async select(c, options) {
    await c.set('where', 'zero');
    await using({ ...options, db: 3 }, async (other) => {
      equal(await other.get('where'), null);
      equal(await other.set('where', 'three'), 'OK');
      equal(await c.get('where'), 'zero');
      equal(await other.dbsize(), 1);
      await other.flushdb();
    });
  },

  async client_info(c, options) {
    await using({ ...options, connectionName: 'checks' }, async (named) => {
      equal(await named.client('GETNAME'), 'checks');
      const id = await named.client('ID');
      const listed = (await c.client('LIST')).trim().split('\n').filter((line) => line.includes(' name=checks '));
      equal(listed.length, 1);
      equal(listed[0].startsWith(`id=${id} addr=127.0.0.1:`), true);
      equal((await named.client('INFO')).startsWith(`id=${id} `), true);
    });
  },

  async info(c) {
    const info = await c.info();
    for (const line of [/^redis_version:\d+\.\d+\.\d+\r?$/m, /^role:master\r?$/m, /^loading:0\r?$/m, /^db0:keys=\d+/m]) {
      if (!line.test(info)) throw new Error(`INFO lacks ${line}`);
    }
  },

  async config(c, options) {
    const databases = await c.config('GET', 'databases');
    equal(Array.isArray(databases) ? databases : Object.entries(databases).flat(), ['databases', '16']);
  },

  async command(c) {
    const [get] = await c.command('INFO', 'get');
    equal([get[0], get[1], get[3], get[4], get[5]], ['get', 2, 1, 1, 1]);
    equal((await c.command()).length, await c.command('COUNT'));
    equal(await c.command('GETKEYS', 'MSET', 'a', '1', 'b', '2'), ['a', 'b']);
  },

  async not_an_integer(c) {
    await c.set('word', 'abc');
    const error = await rejects(ReplyError, c.incr('word'));
    equal(error.message, 'ERR value is not an integer or out of range');
  },

  async unknown_command(c) {
    const error = await rejects(ReplyError, c.call('NOSUCHCOMMAND', 'x'));
    equal(error.message.startsWith('ERR unknown command'), true);
    equal(await c.ping(), 'PONG');
  },

  async password(_, options) {
    const client = locked({ ...options, password: PASSWORD });
    equal(await client.ping(), 'PONG');
    client.disconnect();
  },

  async wrong_password(_, options) {
    const client = locked({ ...options, password: 'no' });
    const refusal = new Promise((resolve) => client.on('error', resolve));
    client.connect().catch(() => {});
    const error = await refusal;
    equal([error instanceof ReplyError, error.message.startsWith('WRONGPASS')], [true, true]);
    client.disconnect();
  },

  async no_password(_, options) {
    const client = locked(options);
    const error = await rejects(ReplyError, client.get('x'));
    equal(error.message.startsWith('NOAUTH'), true);
    client.disconnect();
  },

  async reconnect(c, options) {
    await using(options, async (victim) => {
      const before = await victim.client('ID');
      equal(await c.client('KILL', 'ID', before), 1);
      const after = await until(() => victim.client('ID').then((id) => id !== before && id));
      equal(after > before, true);
    });
  },
};

await run('ioredis', MODES, CHECKS, open, (client) => client.quit());
