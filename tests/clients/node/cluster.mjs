// What the two Node cluster clients share: the nodes, what the runner does on request, and the check of maps that change.

import { createInterface } from 'node:readline';
import { equal } from './check.mjs';

/** The nodes' ports, and hash tags at home at each of them. */
export const PORTS = process.env.CLIENTS_NODES.split(' ').map((node) => Number(node.split(':')[1]));
export const TAGS = process.env.CLIENTS_TAGS.split(' ');
export const KEYS = 10_000;

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Asks the runner for something, and waits until it is done. */
export async function please(wish) {
  console.log(`please ${wish}`);
  equal((await answers.next()).value, 'done');
}

/** The values of all keys with one mark. */
export const marked = (mark) => Array.from({ length: KEYS }, (_, number) => `${mark}${number}`);

/** All values are the keys' own, whatever their mark. */
export function own(values) {
  equal(values.map((value) => value.slice(1)), marked(''));
}

/** Calls `body` for each number below `count`, a thousand at a time. */
export async function each(count, body) {
  const replies = [];
  for (let first = 0; first < count; first += 1000) {
    const calls = Array.from({ length: Math.min(1000, count - first) }, (_, at) => body(first + at));
    replies.push(...(await Promise.all(calls)));
  }
  return replies;
}

/** `write(mark)` gives every key a value with this mark, `read` returns all values. */
export async function reload(write, read) {
  await please('swap');
  await write('b');
  equal(await read(), marked('b'));
  await please('swap');
  // What has moved lies where it was before, with the values of then.
  const values = await read();
  own(values);
  equal(values.filter((value) => value.startsWith('a')).length, Number(process.env.CLIENTS_MOVED));
  await please('swap');
  equal(await read(), marked('b'));
  await please('swap');
  equal(await read(), values);
}
