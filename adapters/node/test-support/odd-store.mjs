// A subject that does what a body tells it to: for tests of what `serve` makes of odd answers.

import fs from "node:fs";
import { Refused, serve } from "../index.mjs";

class BodyError extends Error {
  name = "BodyError";
}

const ANSWERS = {
  nan: { seq: NaN },
  bigint: { seq: 5n },
  nothing: undefined,
  zero: { seq: 0 },
  extra: { seq: 4, note: undefined, self: serve },
};

const DELIVERIES = {
  undefined: undefined,
  empty: { lease: "l", messages: [] },
  null: null,
  numbers: { lease: "", messages: [0, -7, 1.5].map((seq) => ({ seq, body: 1 })) },
  list: [],
  noBody: { lease: "l", messages: [{ seq: 1 }] },
  infinite: { lease: "l", messages: [{ seq: 1, body: { deep: [Infinity] } }] },
  surrogate: { lease: "l", messages: [{ seq: 1, body: "\ud800" }] },
  surrogateKey: { lease: "l", messages: [{ seq: 1, body: { "\udc00": 1 } }] },
  hole: { lease: "l", messages: [{ seq: 1, body: [undefined] }] },
  map: { lease: "l", messages: [{ seq: 1, body: new Map() }] },
  noLease: { messages: [{ seq: 1, body: 1 }] },
};

class OddStore {
  log = [];
  closes = 0;

  async append({ body }) {
    if (Object.hasOwn(ANSWERS, body)) return ANSWERS[body];
    if (body === "log") {
      console.log("console.log from the store");
      process.stdout.write("process.stdout.write from the store\n");
      process.stdout.write(Buffer.from("a Buffer from the store\n"), () => {});
    }
    if (body === "throw") throw new BodyError("no room: \ud800");
    if (body === "throw text") throw "only text";
    if (body === "refuse") throw new Refused("too_large", "at most 3", { limit: 3, reason: "not this" });
    if (body === "refuse badly") throw new Refused("too_large", "at most 3", { limit: NaN });
    if (body?.waitMs) await new Promise((resolve) => setTimeout(resolve, body.waitMs));
    this.log.push(body);
    return { seq: this.log.length };
  }

  claim({ handle }) {
    return DELIVERIES[handle];
  }

  ack() {
    return { acked: "1" };
  }

  peek() {
    return { messages: [] };
  }

  drop() {
    return { dropped: 0 };
  }

  release() {
    return false;
  }

  close() {
    this.closes += 1;
    if (this.closes > 2) throw new BodyError("bad file descriptor");
    if (process.env.ODD_CLOSED) fs.appendFileSync(process.env.ODD_CLOSED, "closed\n");
  }
}

const row = { intact: { id: 1 }, gone: undefined, surrogate: "\ud800" };

serve({
  name: "odd-store",
  version: "0.0.1",
  homepage: "https://example.org/odd",
  capabilities: {
    mailbox: true,
    tombstone: true,
    release: true,
    concurrent: process.env.ODD_CONCURRENT === "1",
    bundle: ["bundle/hash"],
    memory: true,
  },
  faces: [{ name: "rows", kind: "get" }],
  open: async () => ({ store: new OddStore(), location: { at: ["anywhere"] } }),
  tombstone(store, recipient) {
    store.log.push(recipient);
  },
  methods: {
    "face/open": ({ face }) => ({ subject: face }),
    "face/read": ({ subject }) => {
      if (subject === "broken") throw new BodyError("row is torn");
      if (subject === "shapeless") return [];
      return { answer: row[subject] };
    },
    "face/close": () => {},
    "bundle/hash": ({ sectionHashes }) => ({ hash: String(Object.keys(sectionHashes).length) }),
    "bundle/canonical": ({ value }) => ({ text: JSON.stringify(value) }),
    "memory/put": ({ entry }, { store }) => void store.log.push(entry),
    "memory/list": (_, { store }) => ({ entries: store.log }),
    "memory/import": () => {
      throw new Refused("bad_package", "cut short", { code: "not-json" });
    },
    "rules/constants": () => ({ valueDepth: 1000 }),
  },
});
