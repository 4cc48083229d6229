// The store's methods on the wire: what each takes, what it hangs on, what form its answer has.
//
// Only forms are checked here. Whether a seq is in range or a claim may be empty is the bench's to
// judge: a check that turned such an answer into a fault would hide the very bug it found.

import { AnswerFault } from "./errors.mjs";
import { isObject } from "./subject.mjs";

const FORMS = {
  string: (value) => typeof value === "string",
  integer: Number.isSafeInteger,
  seq: (value) => typeof value === "number" || typeof value === "string",
  json: (value) => value !== undefined,
};

const RECIPIENT = { scope: "string", handle: "string" };
const HOLDER = { ...RECIPIENT, owner: "string", lease: "string" };

/**
 * Wire name -> { op, needs, takes, answer }. A `takes` name that ends in `?` may be absent. `ttlMs`
 * and `max` pass whatever they are: refusing a bad one is the store's.
 */
export const STORE_METHODS = new Map([
  ["mailbox/append", { op: "append", takes: { ...RECIPIENT, body: "json", now: "integer" }, answer: receipt }],
  ["mailbox/claim", {
    op: "claim",
    takes: { ...RECIPIENT, owner: "string", ttlMs: "json", "max?": "json", now: "integer" },
    answer: delivery,
  }],
  ["mailbox/ack", { op: "ack", takes: { ...HOLDER, upTo: "seq", now: "integer" }, answer: count("acked") }],
  ["mailbox/release", { op: "release", needs: "release", takes: { ...HOLDER, now: "integer" }, answer: nothing("release") }],
  ["mailbox/renew", {
    op: "renew",
    needs: "renew",
    takes: { ...HOLDER, ttlMs: "json", now: "integer" },
    answer: nothing("renew"),
  }],
  ["mailbox/peek", { op: "peek", needs: "peek", takes: { ...RECIPIENT, now: "integer" }, answer: contents }],
  ["mailbox/reap", { op: "reap", takes: { now: "integer" }, answer: nothing("reap") }],
  ["mailbox/drop", { op: "drop", takes: { ...RECIPIENT, now: "integer" }, answer: count("dropped") }],
  ["recipient/tombstone", {
    op: "tombstone",
    needs: "tombstone",
    takes: { ...RECIPIENT, now: "integer" },
    answer: nothing("tombstone"),
  }],
]);

// Read once: `takes` is a list of { name, form, isOptional } from here on.
for (const method of STORE_METHODS.values()) {
  method.takes = Object.entries(method.takes).map(([entry, form]) => {
    return { name: entry.replace("?", ""), form, isOptional: entry.endsWith("?") };
  });
}

/** Picks the named parameters, or answers which one is missing or of the wrong form. */
export function pick(params, takes) {
  const picked = {};
  for (const { name, form, isOptional } of takes) {
    const value = params[name];
    const isAbsent = value === undefined && isOptional;
    if (!isAbsent && !FORMS[form](value)) return { wrong: `${name} must be a ${form} value` };
    picked[name] = value;
  }
  return { picked };
}

function receipt(answer) {
  demand(isObject(answer), "append must answer { seq }", answer);
  return { seq: seqOf(answer, "append") };
}

let isEmptyNoted = false;

function delivery(answer) {
  if (answer === null) return null;
  const form = "claim must answer null, or { lease, messages } with at least one message";
  demand(isObject(answer) && typeof answer.lease === "string", form, answer);
  const { messages } = contents(answer, "claim");
  // Sent on as it is: a lease on nothing breaks the contract, and the bench says so by name.
  if (messages.length === 0 && !isEmptyNoted) {
    isEmptyNoted = true;
    console.error(`storeproof: ${form}; this one answered no message`);
  }
  return { lease: answer.lease, messages };
}

function contents(answer, op = "peek") {
  const form = `${op} must answer { messages: [{ seq, body }, ...] }`;
  demand(isObject(answer) && Array.isArray(answer.messages), form, answer);
  return {
    messages: answer.messages.map((message) => {
      demand(isObject(message), form, message);
      demand(
        message.body !== undefined,
        `${op} answered a message without a body (undefined); an empty body is null`,
        message,
      );
      return { seq: seqOf(message, op), body: message.body };
    }),
  };
}

function count(member) {
  return (answer) => {
    const op = member === "acked" ? "ack" : "drop";
    const form = `${op} must answer { ${member}: how many messages this call removed }`;
    demand(isObject(answer) && typeof answer[member] === "number", form, answer);
    return { [member]: answer[member] };
  };
}

/** For methods without an answer; false must not pass for a yes. */
export function nothing(op) {
  return (answer) => {
    demand(answer !== false, `${op} answers nothing (to say no, throw new Refused(reason))`, answer);
    return {};
  };
}

function seqOf(answer, op) {
  const { seq } = answer;
  const hint = typeof seq === "bigint" ? "; this one is a BigInt, so answer Number(seq)" : "";
  demand(FORMS.seq(seq), `${op}: seq must be a number${hint}`, answer);
  return seq;
}

function demand(holds, form, answer) {
  if (holds) return;
  const seen = answer instanceof Promise ? "a promise inside the answer" : describe(answer);
  throw new AnswerFault(`${form}; it answered ${seen}`);
}

function describe(answer) {
  if (Array.isArray(answer)) return `a list of ${answer.length}`;
  if (isObject(answer)) return `an object with ${Object.keys(answer).join(", ") || "no members"}`;
  return String(answer);
}
