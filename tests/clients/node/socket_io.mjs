// Socket.IO with the adapters redis-adapter and redis-streams-adapter, for tests/clients/restarted.py: two server processes and
// clients of both, through a kill of the server.
//
//     socket_io.mjs PORT MODE               runs the checks
//     socket_io.mjs server PORT ADAPTER     is one of two servers; it does what its parent sends, and answers

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createAdapter as createRedisAdapter } from '@socket.io/redis-adapter';
import { createAdapter as createStreamsAdapter } from '@socket.io/redis-streams-adapter';
import { createClient } from 'redis';
import { Server } from 'socket.io';
import { io as connect } from 'socket.io-client';
import { version } from './check.mjs';

const [PAUSE_MS, PATIENCE_MS] = [20, 60_000];

async function redis(port) {
  const client = createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: PAUSE_MS } });
  // It connects again by itself.
  client.on('error', (error) => console.error(String(error)));
  return client.connect();
}

async function serve(port, kind) {
  const adapter = kind === 'streams' ? createStreamsAdapter(await redis(port), { blockTimeInMs: 200 })
    : createRedisAdapter(await redis(port), await redis(port)); // prettier-ignore
  const http = createServer();
  const io = new Server(http, { adapter, connectionStateRecovery: kind === 'streams' ? {} : undefined });
  io.on('hello', (number, answer) => answer(number + 1));
  io.on('connection', (socket) => {
    socket.on('join', async (room, answer) => answer(await socket.join(room)));
    socket.data.name = socket.handshake.query.name;
  });
  const does = {
    emit: (room, ...words) => (room ? io.to(room) : io).emit(...words),
    except: (room, ...words) => io.except(room).emit(...words),
    ask: (room, word) => io.to(room).timeout(PATIENCE_MS).emitWithAck(word),
    names: async (room) => (await io.in(room).fetchSockets()).map((socket) => socket.data.name).sort(),
    together: (number) => io.serverSideEmitWithAck('hello', number),
    join: (room, more) => io.in(room).socketsJoin(more),
    leave: (room, less) => io.in(room).socketsLeave(less),
    disconnect: (room) => io.in(room).disconnectSockets(true),
    count: () => io.of('/').adapter.serverCount(),
  };
  process.on('message', async ({ serial, name, words }) => {
    try {
      const value = await does[name](...words);
      // An adapter's own result is no answer.
      process.send({ serial, value: typeof value === 'boolean' ? null : (value ?? null) });
    } catch (error) {
      process.send({ serial, error: String(error) });
    }
  });
  process.on('disconnect', () => process.exit(0));
  http.listen(0, '127.0.0.1', () => process.send({ port: http.address().port }));
}

/** One of two servers. */
class Process {
  static async start(port, kind) {
    const made = new Process();
    made.child = fork(fileURLToPath(import.meta.url), ['server', port, kind], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    made.serial = 0;
    [{ port: made.port }] = await once(made.child, 'message');
    return made;
  }

  /** Sends a request, and returns the answer to it. */
  do(name, ...words) {
    const serial = this.serial++;
    const answer = new Promise((resolve, reject) => {
      const hear = (message) => {
        if (message.serial !== serial) return;
        this.child.off('message', hear);
        if (message.error) reject(new Error(message.error));
        else resolve(message.value);
      };
      this.child.on('message', hear);
    });
    this.child.send({ serial, name, words });
    return answer;
  }
}

/** A client, and the words that it has heard. */
class Client {
  static async open(server, name) {
    const made = new Client();
    made.heard = [];
    made.socket = connect(`http://127.0.0.1:${server.port}`, { query: { name }, reconnectionDelay: PAUSE_MS, forceNew: true });
    made.socket.onAny((word, ...rest) => {
      const answer = rest.at(-1);
      if (typeof answer === 'function') answer(name);
      else made.heard.push(word);
    });
    await until(() => made.socket.connected);
    return made;
  }

  async join(room) {
    await this.socket.timeout(PATIENCE_MS).emitWithAck('join', room);
  }
}

async function until(condition) {
  const end = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `it does not happen that ${condition}`);
    await sleep(PAUSE_MS);
  }
}

let input;

async function restart() {
  // An input that is read keeps a process alive.
  input ??= createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  console.log('please restart');
  await input.next();
}

/** A pair of servers, a client of each, and one more of the second. */
class Stage {
  static async set(port, kind) {
    const made = new Stage();
    made.kind = kind;
    [made.one, made.other] = [await Process.start(port, kind), await Process.start(port, kind)];
    for (const server of [made.one, made.other]) await until(async () => (await server.do('count')) === 2);
    made.clients = [await Client.open(made.one, 'a'), await Client.open(made.other, 'b'), await Client.open(made.other, 'c')];
    return made;
  }

  /** Waits until a last word has come to each client, and returns what each has heard before that. */
  async heard(server = this.one) {
    this.last = (this.last ?? 0) + 1;
    const word = `last${this.last}`;
    await server.do('emit', null, word);
    await until(() => this.clients.every(({ heard }) => heard.includes(word)));
    return this.clients.map(({ heard }) => heard.splice(0).filter((each) => each !== word));
  }

  async crosses() {
    const words = Array.from({ length: 100 }, (_, number) => `word${number}`);
    for (const word of words) await this.one.do('emit', null, word);
    assert.deepEqual(await this.heard(), [words, words, words]);
    await this.other.do('emit', null, 'back');
    assert.deepEqual(await this.heard(this.other), [['back'], ['back'], ['back']]);
  }

  async rooms() {
    const [a, b] = this.clients;
    await a.join('room');
    await b.join('room');
    await this.one.do('emit', 'room', 'inside');
    await this.one.do('except', 'room', 'outside');
    assert.deepEqual(await this.heard(), [['inside'], ['inside'], ['outside']]);
  }

  async acknowledged() {
    assert.deepEqual((await this.one.do('ask', 'room', 'question')).sort(), ['a', 'b']);
    assert.deepEqual((await this.other.do('ask', 'room', 'question')).sort(), ['a', 'b']);
  }

  async fetchSockets() {
    for (const server of [this.one, this.other]) {
      assert.deepEqual(await server.do('names', 'room'), ['a', 'b']);
      assert.deepEqual(await server.do('names', []), ['a', 'b', 'c']);
    }
  }

  async serverSideEmit() {
    assert.deepEqual(await this.one.do('together', 5), [6]);
    assert.deepEqual(await this.other.do('together', 7), [8]);
  }

  async joinAndLeave() {
    await this.one.do('join', 'room', 'more');
    await until(async () => (await this.one.do('names', 'more')).length === 2);
    await this.other.do('emit', 'more', 'inside');
    await this.other.do('leave', 'room', 'more');
    await until(async () => (await this.other.do('names', 'more')).length === 0);
    await this.other.do('emit', 'more', 'none');
    assert.deepEqual(await this.heard(this.other), [['inside'], ['inside'], []]);
  }

  /** After a kill of the server all goes on, and no message comes twice. */
  async restarted() {
    const words = ['before1', 'before2'];
    for (const word of words) await this.one.do('emit', null, word);
    assert.deepEqual(await this.heard(), [words, words, words]);
    await restart();
    await until(async () => {
      await this.one.do('emit', null, 'again');
      await this.other.do('emit', null, 'again');
      return this.clients.every(({ heard }) => heard.length > 2);
    });
    await sleep(PAUSE_MS);
    for (const each of await this.heard()) assert.ok(each.every((word) => word === 'again'), `${each}`);
    await this.crosses();
    await until(async () => (await this.one.do('count')) === 2);
    await this.serverSideEmit();
    await this.fetchSockets();
  }

  /** A client whose connection broke gets what it has missed, though the server was killed meanwhile. */
  async recovered() {
    const [, b] = this.clients;
    await this.heard();
    b.socket.io.reconnection(false);
    b.socket.io.engine.close();
    await until(async () => (await this.one.do('names', [])).length === 2);
    const { id } = b.socket;
    await this.one.do('emit', null, 'missed1');
    await this.one.do('emit', 'room', 'missed2');
    await until(() => this.clients[0].heard.includes('missed2'));
    await restart();
    await until(async () => (await this.one.do('together', 1).catch(() => []))[0] === 2);
    assert.deepEqual(b.heard, []);
    b.socket.io.reconnection(true);
    b.socket.connect();
    await until(() => b.socket.connected);
    assert.ok(b.socket.recovered, `${id} is not recovered`);
    const [ofA, ofB, ofC] = await this.heard();
    assert.deepEqual([ofA, ofB, ofC], [['missed1', 'missed2'], ['missed1', 'missed2'], ['missed1']]);
    await this.rooms();
  }

  async disconnects() {
    await this.one.do('disconnect', 'room');
    await until(() => !this.clients[0].socket.connected && !this.clients[1].socket.connected);
    assert.ok(this.clients[2].socket.connected);
  }

  end() {
    for (const { socket } of this.clients) socket.disconnect();
    for (const { child } of [this.one, this.other]) child.disconnect();
  }
}

const CHECKS = ['crosses', 'rooms', 'acknowledged', 'fetchSockets', 'serverSideEmit', 'joinAndLeave', 'restarted', 'recovered', 'disconnects'];

async function main(port, mode) {
  let passed = true;
  for (const kind of ['adapter', 'streams']) {
    const stage = await Stage.set(port, kind);
    for (const check of CHECKS) {
      // The adapter without streams keeps no messages.
      if (kind !== 'streams' && check === 'recovered') continue;
      try {
        await stage[check]();
        console.log('ok', `${mode}-${kind}`, check);
      } catch (error) {
        console.error(error);
        console.log('not ok', `${mode}-${kind}`, `${check}: ${String(error.message).replaceAll('\n', ' ')}`);
        passed = false;
      }
    }
    stage.end();
  }
  process.exit(passed ? 0 : 1);
}

const [first, ...rest] = process.argv.slice(2);
if (first === 'version') {
  console.log(`redis-adapter ${version('@socket.io/redis-adapter')}, redis-streams-adapter ${version('@socket.io/redis-streams-adapter')}`);
} else if (first === 'server') {
  await serve(Number(rest[0]), rest[1]);
} else {
  await main(Number(first), rest[0]);
}
