// What the two Node clients share: where the servers are, assertions, and the printing of one line per check.

import { deepStrictEqual } from 'node:assert';
import { readFileSync } from 'node:fs';

export const PORT = Number(process.env.CLIENTS_PORT);
export const LOCKED_PORT = Number(process.env.CLIENTS_LOCKED_PORT);
export const PASSWORD = process.env.CLIENTS_PASSWORD;
/** Pipelines: how many requests, and the bytes of the value that each is answered with. */
const DEEPEST = Number(process.env.CLIENTS_DEEPEST);
export const DEPTHS = [[1, 1], [DEEPEST, 1], [DEEPEST / 10, 1e3], [DEEPEST / 1e3, 1e5], [DEEPEST / 1e4, 1e6]];
export const EVERY_BYTE = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
export const MEGABYTE = Buffer.concat(Array(4096).fill(EVERY_BYTE));

/** Like `deepStrictEqual`, but a map reply with a null prototype equals a plain object. */
export function equal(actual, expected) {
  deepStrictEqual(plain(actual), plain(expected));
}

function plain(value) {
  const isBareMap = value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === null;
  return isBareMap ? { ...value } : value;
}

/** Fails unless `low < actual <= high`. */
export function between(actual, low, high) {
  if (!(actual > low && actual <= high)) throw new Error(`got ${actual}, expected above ${low}, at most ${high}`);
}

/** Awaits the error of class `kind` with which `promise` must fail, and returns it. */
export async function rejects(kind, promise) {
  let result;
  try {
    result = await promise;
  } catch (error) {
    if (error instanceof kind) return error;
    throw new Error(`failed with ${error?.constructor?.name}, expected ${kind.name}: ${error}`);
  }
  throw new Error(`returned ${result}, expected ${kind.name}`);
}

/** Asks again every few milliseconds until `call` returns something true. */
export async function until(call) {
  for (let i = 0; i < 500; i++) {
    const result = await call();
    if (result) return result;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('did not happen within five seconds');
}

/** The version of an installed package. */
export function version(name) {
  return JSON.parse(readFileSync(new URL(`./node_modules/${name}/package.json`, import.meta.url))).version;
}

/** Runs one check, prints its line, and returns whether it passed. */
export async function attempt(mode, check, body) {
  try {
    await body();
    console.log(`ok ${mode} ${check}`);
    return true;
  } catch (error) {
    console.error(error);
    console.log(`not ok ${mode} ${check}: ${String(error.message).split('\n').join(' ')}`);
    return false;
  }
}

/**
 * Runs every check in every mode, each mode on the emptied server, and exits with 1 if any failed.
 * `open(options)` returns a connected client; a check receives it, the mode's options and `open`.
 */
export async function run(name, modes, checks, open, close) {
  console.log(`version ${version(name)}`);
  let passed = true;
  for (const [mode, options] of Object.entries(modes)) {
    const client = await open(options);
    await client.flushall();
    for (const [check, body] of Object.entries(checks)) {
      passed = (await attempt(mode, check, () => body(client, options))) && passed;
    }
    await close(client);
  }
  process.exit(passed ? 0 : 1);
}
