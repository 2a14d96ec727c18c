#!/usr/bin/env node
// The client of a lock, for lockcheck: lockcheck validate --client ./mylock.mjs
//
// It reads requests from its input and prints answers, one JSON object a line: docs/protocol.md.
// As it stands, the lock is a key in Redis with a lease, set if it is not there, and removed by its
// owner alone. Put your own in the three places.

import { randomUUID } from "node:crypto";
import { createConnection } from "node:net";
import { createInterface } from "node:readline";

const NOT_SUPPORTED = 10, UNAVAILABLE = 11, UNKNOWN = 13, NOT_OWNER = 20, HELD = 22;
const REMOVE =
  "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0";

class Failure extends Error {
  constructor(code, text) {
    super(text);
    this.code = code;
  }
}

class MyLock {
  constructor({ servers, ttl_ms }) {
    // 1. Connect: the servers are host:port.
    [this.host, this.port] = servers[0].split(":");
    this.ttlMs = ttl_ms;
    this.owners = new Map(); // by the numbers of their acquires
  }

  async acquire({ key, msg_id }) {
    // 2. Granted, with a token if it has one: { token }. Or a Failure: it is held. Any other
    //    error means that it may have happened.
    const owner = randomUUID();
    const answer = await this.redis("SET", `lock:${key}`, owner, "NX", "PX", this.ttlMs);
    if (answer !== "+OK") throw new Failure(HELD, "held");
    this.owners.set(msg_id, owner);
    return {};
  }

  async release({ key, acquire }) {
    // 3. Released, or a Failure: it was not ours any more.
    const owner = this.owners.get(acquire);
    this.owners.delete(acquire);
    const answer = await this.redis("EVAL", REMOVE, 1, `lock:${key}`, owner);
    if (answer !== ":1") throw new Failure(NOT_OWNER, "not ours any more");
    return {};
  }

  leave({ acquire }) {
    this.owners.delete(acquire); // it will not be released: nothing keeps it alive
  }

  /** A request in Redis' protocol, and the first line of its answer, within a second. */
  redis(...words) {
    const parts = words.map((word) => `$${Buffer.byteLength(`${word}`)}\r\n${word}\r\n`);
    return new Promise((resolve, reject) => {
      let code = UNAVAILABLE, answer = "";
      const fail = (why) => reject(new Failure(code, why));
      const socket = createConnection({ host: this.host, port: this.port }, () => {
        code = UNKNOWN; // from here on it may happen
        socket.write(`*${words.length}\r\n${parts.join("")}`);
      });
      const timer = setTimeout(() => socket.destroy(new Error("no answer in a second")), 1000);
      socket.on("data", (data) => {
        answer += data;
        if (!answer.includes("\r\n")) return;
        if (answer.startsWith("-")) fail(answer.trim());
        resolve(answer.split("\r\n")[0]);
        socket.destroy();
      });
      socket.on("error", (error) => fail(error.message));
      socket.on("close", () => {
        clearTimeout(timer);
        fail("the connection was closed");
      });
    });
  }
}

async function answered(request) {
  switch (request.type) {
    case "init":
      lock = new MyLock(request);
      return { type: "init_ok" };
    case "acquire":
      return { type: "acquire_ok", ...(await lock.acquire(request)) };
    case "release":
      return { type: "release_ok", ...(await lock.release(request)) };
    case "leave":
      return lock.leave(request);
    default:
      throw new Failure(NOT_SUPPORTED, `unknown request: ${request.type}`);
  }
}

let lock;
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line).body;
  let body;
  try {
    body = await answered(request);
  } catch (error) {
    const code = error instanceof Failure ? error.code : UNKNOWN;
    body = { type: "error", code, text: `${error.message}` };
  }
  if (request.msg_id === undefined) continue; // it needs no answer
  body.in_reply_to = request.msg_id;
  console.log(JSON.stringify({ src: "client", dest: "lockcheck", body }));
}
