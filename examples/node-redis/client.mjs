#!/usr/bin/env node
// A lock by node-redis: SET NX PX, released by a script, as many write it; a client of lockcheck.

import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { createClient } = createRequire(import.meta.url)("redis"); // by NODE_PATH, too

const NOT_SUPPORTED = 10, UNKNOWN = 13, NOT_OWNER = 20, HELD = 22;
const PATIENCE_MS = 2000;
const REMOVE =
  "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

const owners = new Map(); // by the numbers of their acquires
let redis, ttlMs;

const failed = (code, text) => ({ type: "error", code, text });

/** Its result; node-redis itself waits for as long as there is no connection. */
function inTime(promise) {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error(`no answer within ${PATIENCE_MS} ms`));
    const timer = setTimeout(late, PATIENCE_MS);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

async function answered(asked) {
  const key = `lock:${asked.key}`;
  switch (asked.type) {
    case "describe":
      return { type: "describe_ok", name: "node-redis", servers: "redis", promises: ["lease"] };
    case "init":
      redis = createClient({ url: `redis://${asked.servers[0]}`, disableOfflineQueue: true });
      redis.on("error", (error) => console.error(`${error}`));
      ttlMs = asked.ttl_ms;
      await inTime(redis.connect());
      return { type: "init_ok" };
    case "acquire": {
      const owner = randomUUID();
      if (!(await inTime(redis.set(key, owner, { NX: true, PX: ttlMs })))) return failed(HELD, "held");
      owners.set(asked.msg_id, owner);
      return { type: "acquire_ok" };
    }
    case "release": {
      const owner = owners.get(asked.acquire);
      owners.delete(asked.acquire);
      const removed = await inTime(redis.eval(REMOVE, { keys: [key], arguments: [owner] }));
      return removed ? { type: "release_ok" } : failed(NOT_OWNER, "not ours any more");
    }
    case "leave":
      owners.delete(asked.acquire);
      return {};
    default:
      return failed(NOT_SUPPORTED, `unknown request: ${asked.type}`);
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line).body;
  const body = await answered(asked).catch((error) => failed(UNKNOWN, `${error}`));
  if (asked.msg_id === undefined) continue;
  body.in_reply_to = asked.msg_id;
  console.log(JSON.stringify({ src: "client", dest: "lockcheck", body }));
}
process.exit(0); // the connection would keep it alive
