// An unusual but legitimate store: it keeps its own clock, delivers at most two messages a claim,
// leaves gaps between seqs, takes only short plain names and small bodies, answers 0 when the last
// ack of a box is repeated, and declares no optional capability.
//
//   storeproof certify -- node adapters/node/examples/wall-mailbox.mjs

import { Refused, serve } from "../index.mjs";

const CLAIM_MESSAGES_MAX = 2;
const BODY_BYTES_MAX = 4096;
const SEQ_STEP = 7;
const NAME = /^[a-z][a-z0-9]{0,15}$/;

class WallMailbox {
  #boxes = new Map(); // key -> { messages: [{ seq, body }], lease?, settled? }
  #lastSeq = 0;
  #leaseCount = 0;
  #isClosed = false;

  append({ scope, handle, body }) {
    const key = this.#keyOf(scope, handle);
    if (Buffer.byteLength(JSON.stringify(body)) > BODY_BYTES_MAX) throw new Refused("too_large");
    if (!this.#boxes.has(key)) this.#boxes.set(key, { messages: [] });
    this.#lastSeq += SEQ_STEP;
    this.#boxes.get(key).messages.push({ seq: this.#lastSeq, body });
    return { seq: this.#lastSeq };
  }

  claim({ scope, handle, owner, ttlMs, max = CLAIM_MESSAGES_MAX }) {
    const box = this.#boxes.get(this.#keyOf(scope, handle));
    checkAboveZero(ttlMs, "invalid_ttl");
    checkAboveZero(max, "invalid_max");
    if (!box || box.messages.length === 0 || isLive(box.lease)) return null;

    const messages = box.messages.slice(0, Math.min(max, CLAIM_MESSAGES_MAX));
    this.#leaseCount += 1;
    const id = `lease-${this.#leaseCount}`;
    box.lease = { id, owner, expiry: clock() + ttlMs, lastDelivered: messages.at(-1).seq };
    return { lease: id, messages };
  }

  ack({ scope, handle, owner, lease, upTo }) {
    const box = this.#boxes.get(this.#keyOf(scope, handle));
    if (isSame(box?.settled, lease, owner)) return { acked: 0 };
    if (!isLive(box?.lease) || !isSame(box.lease, lease, owner)) throw new Refused("lease_not_held");
    const rest = box.messages.filter(({ seq }) => seq > Math.min(upTo, box.lease.lastDelivered));
    const acked = box.messages.length - rest.length;
    box.messages = rest;
    box.settled = box.lease;
    box.lease = undefined;
    return { acked };
  }

  reap() {
    this.#checkOpen(); // and nothing piles up: an expired lease is replaced by the next claim
  }

  drop({ scope, handle }) {
    const key = this.#keyOf(scope, handle);
    const dropped = this.#boxes.get(key)?.messages.length ?? 0;
    this.#boxes.delete(key);
    return { dropped };
  }

  close() {
    this.#isClosed = true;
    this.#boxes.clear();
  }

  #checkOpen() {
    if (this.#isClosed) throw new Refused("closed");
  }

  #keyOf(scope, handle) {
    this.#checkOpen();
    if (!NAME.test(scope) || !NAME.test(handle)) throw new Refused("invalid_name", `names look like ${NAME.source}`);
    return `${scope} ${handle}`; // injective, since no accepted name holds a space
  }
}

/** `ttlMs` and `max` arrive as they were sent: "5", true and null are no numbers. */
function checkAboveZero(value, reason) {
  if (!(Number.isSafeInteger(value) && value > 0)) throw new Refused(reason);
}

function isSame(lease, id, owner) {
  return lease !== undefined && lease.id === id && lease.owner === owner;
}

function isLive(lease) {
  return lease !== undefined && clock() < lease.expiry;
}

/** Milliseconds that never go back, unlike the time of day. */
function clock() {
  return performance.now();
}

serve({
  name: "wall-mailbox",
  version: "1.0.0",
  capabilities: { mailbox: true, clock: "wall" },
  limits: { maxNameBytes: 16, maxBodyBytes: BODY_BYTES_MAX },
  open: () => ({ store: new WallMailbox() }),
});
