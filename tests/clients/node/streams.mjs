// A producer and a worker of a queue on a stream, with ioredis, for tests/clients/streams.py, which says what they print.

import { setTimeout as sleep } from 'node:timers/promises';
import { Redis, ReplyError } from 'ioredis';
import { version } from './check.mjs';

const [STREAM, GROUP] = ['numbers', 'workers'];
const BATCH = 10;
const [BLOCK_MS, IDLE_MS, PAUSE_MS] = [50, 200, 10];

const [part, port, name, holdAfter] = process.argv.slice(2);
let hasEnded = false;

function tell(...words) {
  process.stdout.write(`${words.join(' ')}\n`);
}

function now() {
  return process.hrtime.bigint();
}

function connect(options) {
  const client = new Redis({ host: '127.0.0.1', port: Number(port), ...options });
  // Each request reports its own error.
  client.on('error', () => {});
  return client;
}

/** The reply, or nothing if the connection broke; what the server answers as an error is one. */
async function answered(request) {
  try {
    return await request;
  } catch (error) {
    if (error instanceof ReplyError || error.name === 'ReplyError') throw error;
    await sleep(PAUSE_MS);
    return undefined;
  }
}

async function produce() {
  // A request that got no reply is not sent again.
  const client = connect({ autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 });
  for (let serial = 0; !hasEnded; serial++) {
    const number = `${name}${String(serial).padStart(6, '0')}`;
    const identifier = await answered(client.xadd(STREAM, '*', 'number', number));
    if (identifier === undefined) tell('cut', number);
    else tell('added', number, identifier);
  }
}

async function work() {
  const client = connect();
  let acknowledged = 0;
  while (!hasEnded) {
    const batch = await receive(client);
    if (batch.length && holdAfter !== undefined && acknowledged >= Number(holdAfter)) {
      tell('holding');
      while (!hasEnded) await sleep(PAUSE_MS);
    }
    for (const identifier of hasEnded ? [] : batch) {
      if ((await answered(client.xack(STREAM, GROUP, identifier))) === undefined) {
        tell('unsure', identifier);
        continue;
      }
      tell('acked', now(), identifier);
      acknowledged += 1;
    }
  }
}

/** IDs of entries that others have left, or of new ones. */
async function receive(client) {
  let [asked, how] = [now(), 'claimed'];
  const claimed = await answered(client.xautoclaim(STREAM, GROUP, name, IDLE_MS, '0-0', 'COUNT', BATCH));
  let entries = claimed?.[1] ?? [];
  if (!entries.length) {
    [asked, how] = [now(), 'new'];
    const block = ['COUNT', BATCH, 'BLOCK', BLOCK_MS, 'STREAMS', STREAM, '>'];
    const found = await answered(client.xreadgroup('GROUP', GROUP, name, ...block));
    entries = found?.[0][1] ?? [];
  }
  for (const [identifier, fields] of entries) tell('got', asked, how, identifier, fields[1]);
  return entries.map(([identifier]) => identifier);
}

if (part === 'version') {
  console.log('ioredis', version('ioredis'));
} else {
  process.stdin.on('end', () => (hasEnded = true)).resume();
  await (part === 'producer' ? produce() : work());
  process.exit(0);
}
