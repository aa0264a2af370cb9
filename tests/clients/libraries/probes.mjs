// What well-known libraries for Node.js do with a server, each as its documentation begins. The first argument is the name of
// one. A library that works prints nothing and ends with 0.

import assert from "node:assert/strict";

const port = Number(process.env.LIBRARIES_PORT);
const url = `redis://127.0.0.1:${port}`;
const options = { host: "127.0.0.1", port, maxRetriesPerRequest: null };

// An error that comes as an event is an error.
async function ioredis() {
  const { Redis } = await import("ioredis");
  return new Redis(options);
}

async function nodeRedis() {
  const { createClient } = await import("redis");
  const client = createClient({ url });
  await client.connect();
  return client;
}

// A server of Express on a free port, and what it answers to some requests with one cookie.
async function ask(app, count) {
  const server = await new Promise((resolve) => {
    const listening = app.listen(0, "127.0.0.1", () => resolve(listening));
  });
  const found = [];
  let cookie = "";
  for (let n = 0; n < count; n++) {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { cookie } });
    cookie = answer.headers.get("set-cookie")?.split(";")[0] ?? cookie;
    found.push(answer.ok ? await answer.text() : answer.status);
  }
  server.close();
  return found;
}

// Waits for a job that a worker of a queue does.
function done(worker) {
  return new Promise((resolve, reject) => {
    worker.on("completed", resolve);
    worker.on("error", reject);
    worker.on("failed", (_, error) => reject(error));
  });
}

const probes = {
  async ioredis() {
    const client = await ioredis();
    await client.set("key", "value", "EX", 30);
    assert.equal(await client.get("key"), "value");
    assert.deepEqual(await client.multi().incr("n").expire("n", 30).exec(), [[null, 1], [null, 1]]);
    const listener = await ioredis();
    const heard = new Promise((resolve) => listener.on("message", (_, message) => resolve(message)));
    await listener.subscribe("channel");
    await client.publish("channel", "hello");
    assert.equal(await heard, "hello");
  },
  async node_redis() {
    const client = await nodeRedis();
    await client.set("key", "value", { EX: 30 });
    assert.equal(await client.get("key"), "value");
    assert.deepEqual(await client.multi().incr("n").expire("n", 30).exec(), [1, 1]);
  },
  async connect_redis() {
    const { RedisStore } = await import("connect-redis");
    const { default: express } = await import("express");
    const { default: session } = await import("express-session");
    const app = express();
    const store = new RedisStore({ client: await nodeRedis() });
    app.use(session({ store, secret: "secret", resave: false, saveUninitialized: true }));
    app.get("/", (request, response) => {
      request.session.count = (request.session.count ?? 0) + 1;
      response.send(String(request.session.count));
    });
    assert.deepEqual(await ask(app, 3), ["1", "2", "3"]);
  },
  async rate_limit_redis() {
    const { RedisStore } = await import("rate-limit-redis");
    const { rateLimit } = await import("express-rate-limit");
    const { default: express } = await import("express");
    const client = await nodeRedis();
    const store = new RedisStore({ sendCommand: (...words) => client.sendCommand(words) });
    const app = express();
    app.use(rateLimit({ windowMs: 60_000, limit: 2, store }));
    app.get("/", (_, response) => response.send("page"));
    assert.deepEqual(await ask(app, 3), ["page", "page", 429]);
  },
  async rate_limiter_flexible() {
    const { RateLimiterRedis } = await import("rate-limiter-flexible");
    const limiter = new RateLimiterRedis({ storeClient: await ioredis(), points: 2, duration: 30 });
    await limiter.consume("user");
    await limiter.consume("user");
    const refusal = await limiter.consume("user").then(() => null, (refusal) => refusal);
    if (refusal instanceof Error) throw refusal;
    assert.equal(refusal?.remainingPoints, 0);
  },
  async keyv() {
    const { default: KeyvRedis } = await import("@keyv/redis");
    const { default: Keyv } = await import("keyv");
    const store = new KeyvRedis(url);
    const keyv = new Keyv({ store });
    const failed = new Promise((_, reject) => keyv.on("error", reject));
    const used = async () => {
      await keyv.set("key", { a: 1 }, 30_000);
      assert.deepEqual(await keyv.get("key"), { a: 1 });
      assert.equal(await keyv.delete("key"), true);
      await keyv.clear();
    };
    await Promise.race([used(), failed]);
  },
  async cache_manager() {
    const { default: KeyvRedis } = await import("@keyv/redis");
    const { default: Keyv } = await import("keyv");
    const { createCache } = await import("cache-manager");
    const cache = createCache({ stores: [new Keyv({ store: new KeyvRedis(url) })] });
    assert.equal(await cache.wrap("key", () => 5, 30_000), 5);
    assert.equal(await cache.wrap("key", () => 6, 30_000), 5);
  },
  async socket_io_redis_adapter() {
    const { Server } = await import("socket.io");
    const { createAdapter } = await import("@socket.io/redis-adapter");
    const make = async () => new Server({ adapter: createAdapter(await nodeRedis(), await nodeRedis()) });
    const [one, other] = [await make(), await make()];
    const heard = new Promise((resolve) => other.on("hello", resolve));
    await new Promise((resolve) => setTimeout(resolve, 500));
    one.serverSideEmit("hello", 5);
    assert.equal(await heard, 5);
  },
  async socket_io_redis_streams_adapter() {
    const { Server } = await import("socket.io");
    const { createAdapter } = await import("@socket.io/redis-streams-adapter");
    const make = async () => new Server({ adapter: createAdapter(await nodeRedis()) });
    const [one, other] = [await make(), await make()];
    const heard = new Promise((resolve) => other.on("hello", (number, answer) => (answer(number + 1), resolve(number))));
    const servers = async () => (await one.of("/").adapter.serverCount()) === 2;
    while (!(await servers())) await new Promise((resolve) => setTimeout(resolve, 20));
    const answers = await one.serverSideEmitWithAck("hello", 5);
    assert.equal(await heard, 5);
    assert.deepEqual(answers, [6]);
  },
  // What needs no module.
  async redis_om_node() {
    const { Repository, Schema } = await import("redis-om");
    const albums = new Repository(new Schema("album", { title: { type: "string" } }, { dataStructure: "HASH" }), await nodeRedis());
    await albums.save("1", { title: "Mushroomhead" });
    await albums.expire("1", 60);
    assert.equal((await albums.fetch("1")).title, "Mushroomhead");
    await albums.remove("1");
    assert.equal((await albums.fetch("1")).title, undefined);
  },
  async ioredis_streams() {
    const [producer, consumer] = [await ioredis(), await ioredis()];
    await producer.xgroup("CREATE", "stream", "group", "$", "MKSTREAM");
    const read = () => consumer.xreadgroup("GROUP", "group", "one", "BLOCK", 10_000, "STREAMS", "stream", ">");
    const waiting = read();
    const first = await producer.xadd("stream", "*", "n", 1);
    assert.deepEqual(await waiting, [["stream", [[first, ["n", "1"]]]]]);
    const second = await producer.xadd("stream", "*", "n", 2);
    assert.deepEqual(await read(), [["stream", [[second, ["n", "2"]]]]]);
    assert.equal(await consumer.xack("stream", "group", first), 1);
    assert.deepEqual(await producer.xpending("stream", "group"), [1, second, second, [["one", "1"]]]);
    const [, claimed] = await producer.xautoclaim("stream", "group", "other", 0, "0-0");
    assert.deepEqual(claimed, [[second, ["n", "2"]]]);
  },
  async redlock() {
    const { default: Client } = await import("ioredis");
    const { default: Redlock } = await import("redlock");
    const redlock = new Redlock([new Client(options)], { retryCount: 0 });
    const lock = await redlock.lock("lock", 5000);
    await lock.unlock();
  },
  async bullmq() {
    const { Queue, Worker } = await import("bullmq");
    const worker = new Worker("queue", async (job) => job.data * 2, { connection: options });
    const finished = done(worker);
    const queue = new Queue("queue", { connection: options });
    await queue.add("double", 4);
    assert.equal((await finished).returnvalue, 8);
  },
  async bull() {
    const { default: Bull } = await import("bull");
    const queue = new Bull("queue", { redis: options });
    const finished = done(queue);
    queue.process(async (job) => job.data.n * 2);
    await queue.add({ n: 4 });
    assert.equal((await finished).data.n, 4);
  },
  async bee_queue() {
    const { default: Queue } = await import("bee-queue");
    const queue = new Queue("queue", { redis: options });
    queue.process(async (job) => job.data.n * 2);
    const failed = new Promise((_, reject) => queue.on("error", reject));
    const job = await Promise.race([queue.createJob({ n: 4 }).save(), failed]);
    const result = await Promise.race([new Promise((resolve) => job.on("succeeded", resolve)), failed]);
    assert.equal(result, 8);
  },
};

await probes[process.argv[2]]();
// Connections keep the process alive.
process.exit(0);
