// Reproduces each failure of expect.toml on plainjob alone: no harness, no SDK, no adapter.
//
// Prints what was done and what came back; exit 1 if one no longer reproduces, or if this file and
// expect.toml name different clauses. Run it with `scripts/gallery certify plainjob`, or by itself:
//
//   node adapters/gallery/plainjob/by_hand.mjs

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import { better, Database, defineQueue, JobStatus, versions } from "./library.mjs";

const QUIET = { error() {}, warn() {}, info() {}, debug() {} };

// This file is also the second process: calls of its own plainjob queue, one a line.
if (process.argv[2] === "peer") {
  const queue = defineQueue({ connection: better(new Database(process.argv[3])), logger: QUIET });
  for await (const line of createInterface({ input: process.stdin })) {
    const [method, ...parameters] = JSON.parse(line);
    console.log(JSON.stringify(queue[method](...parameters) ?? null));
  }
  process.exit(0);
}

const shown = {
  "mailbox/core/claim-fences"(queue) {
    add(queue, "alpha", "m1", "m2");
    const ann = claim(queue, "alpha", "ann");
    return ann === 1 && claim(queue, "alpha", "bob") === 2;
  },

  "mailbox/core/one-live-lease"(queue) {
    add(queue, "alpha", "m1", "m2", "m3");
    const first = claim(queue, "alpha", "ann");
    const second = claim(queue, "alpha", "ann");
    return first === 1 && second === 2 && status(queue, 1) === "Processing" && status(queue, 2) === "Processing";
  },

  "mailbox/core/append-under-lease"(queue) {
    add(queue, "alpha", "m1");
    claim(queue, "alpha", "ann");
    add(queue, "alpha", "late");
    return claim(queue, "alpha", "bob") === 2 && status(queue, 1) === "Processing";
  },

  "mailbox/core/lease-lives-to-expiry"(queue) {
    add(queue, "beta", "m1");
    claim(queue, "beta", "ann");
    add(queue, "beta", "m2");
    told("requeueTimedOutJobs(3000)", queue.requeueTimedOutJobs(3000));
    return claim(queue, "beta", "cid") === 2 && status(queue, 1) === "Processing";
  },

  "mailbox/core/ack-partial"(queue) {
    add(queue, "alpha", "m1");
    claim(queue, "alpha", "ann");
    told("the calls that plainjob has", Object.keys(queue).join(" "));
    return claim(queue, "alpha", "bob") === undefined && status(queue, 1) === "Processing";
  },

  async "mailbox/core/lease-from-claim"(queue) {
    add(queue, "alpha", "m1");
    await wait(1000);
    const claimed = Date.now();
    const ann = claim(queue, "alpha", "ann");
    told("requeueTimedOutJobs(500)", queue.requeueTimedOutJobs(500));
    const bob = claim(queue, "alpha", "bob");
    const later = told("milliseconds from before ann's claim to after bob's", Date.now() - claimed);
    return ann === 1 && bob === 1 && later < 500;
  },

  "mailbox/core/handles-independent"(queue) {
    add(queue, "a", "mine1", "mine2");
    add(queue, "ab", "theirs1", "theirs2");
    const ann = claim(queue, "a", "ann");
    const bob = claim(queue, "ab", "bob");
    done(queue, bob);
    return ann === 1 && bob === 3 && claim(queue, "a", "cid") === 2;
  },

  "mailbox/core/reap-harmless"(queue) {
    add(queue, "alpha", "a1", "a2", "a3");
    const ann = claim(queue, "alpha", "ann");
    told("requeueTimedOutJobs(3600000)", queue.requeueTimedOutJobs(3_600_000));
    return ann === 1 && status(queue, 1) === "Processing" && claim(queue, "alpha", "bob") === 2;
  },

  "mailbox/core/reopen"(queue, reopen) {
    add(queue, "alpha", "a1", "a2");
    const ann = claim(queue, "alpha", "ann");
    const again = reopen();
    return ann === 1 && status(again, 1) === "Processing" && claim(again, "alpha", "bob") === 2;
  },

  "mailbox/core/invalid-input"(queue) {
    add(queue, "", "m1");
    const taken = claim(queue, "", "ann") === 1;
    for (const timeout of [0, -1, "soon", null]) {
      told(`requeueTimedOutJobs(${inspect(timeout)})`, queue.requeueTimedOutJobs(timeout));
    }
    return taken;
  },

  "mailbox/ownership/foreign-ack"(queue) {
    add(queue, "alpha", "m1");
    claim(queue, "alpha", "ann");
    return done(queue, 1, "bob").changes === 1 && status(queue, 1) === "Done";
  },

  async "mailbox/ownership/stale-ack-after-reclaim"(queue) {
    add(queue, "alpha", "m1");
    const ann = claim(queue, "alpha", "ann");
    await wait(600);
    told("requeueTimedOutJobs(300)", queue.requeueTimedOutJobs(300));
    const bob = claim(queue, "alpha", "bob");
    return ann === bob && done(queue, ann, "ann").changes === 1 && status(queue, bob) === "Done";
  },

  async "mailbox/ownership/stale-ack-unclaimed"(queue) {
    add(queue, "alpha", "m1");
    claim(queue, "alpha", "ann");
    await wait(600);
    told("requeueTimedOutJobs(300)", queue.requeueTimedOutJobs(300));
    const requeued = status(queue, 1) === "Pending";
    const acked = done(queue, 1, "ann").changes === 1;
    return requeued && acked && claim(queue, "alpha", "bob") === undefined;
  },

  "mailbox/ownership/double-ack"(queue) {
    add(queue, "alpha", "m1");
    claim(queue, "alpha", "ann");
    const first = done(queue, 1).changes;
    return first === 1 && status(queue, 1) === "Done" && done(queue, 1).changes === 1;
  },

  "mailbox/ownership/wrong-box-ack"(queue) {
    add(queue, "alpha", "a1");
    add(queue, "beta", "b1");
    claim(queue, "alpha", "ann");
    const parameters = told("how many parameters markJobAsDone has", queue.markJobAsDone.length);
    const acked = done(queue, 1, "ann, who means beta,").changes === 1;
    return parameters === 1 && acked && status(queue, 1) === "Done";
  },

  "mailbox/ownership/no-lease-ack"(queue) {
    add(queue, "alpha", "m1", "m2");
    const unclaimed = status(queue, 1) === "Pending";
    const acked = done(queue, 1, "ann, who claimed nothing,").changes === 1;
    return unclaimed && acked && status(queue, 1) === "Done" && claim(queue, "alpha", "bob") === 2;
  },

  "mailbox/ownership/up-to-below"(queue) {
    add(queue, "alpha", "m1", "m2");
    done(queue, claim(queue, "alpha", "ann"));
    const second = claim(queue, "alpha", "ann");
    told("the calls that plainjob has", Object.keys(queue).join(" "));
    const held = second === 2 && claim(queue, "alpha", "bob") === undefined;
    return held && done(queue, 2, "ann, later,").changes === 1;
  },

  "mailbox/tenancy/scopes-isolated"(queue) {
    add(queue, '["acme","inbox"]', "acme1", "acme2");
    add(queue, '["globex","inbox"]', "globex1", "globex2");
    const ann = claim(queue, '["acme","inbox"]', "ann");
    const bob = claim(queue, '["globex","inbox"]', "bob");
    const acrossScopes = done(queue, ann, "bob").changes === 1;
    return bob === 3 && acrossScopes && claim(queue, '["acme","inbox"]', "cid") === 2;
  },

  "mailbox/tenancy/drop-isolated"(queue, _, connection) {
    add(queue, '["acme","inbox"]', "acme1", "acme2");
    add(queue, '["globex","inbox"]', "globex1", "globex2");
    const bob = claim(queue, '["globex","inbox"]', "bob");
    const drop = connection.prepare("DELETE FROM plainjob_jobs WHERE type = ?").run('["acme","inbox"]');
    told("the rows of acme's type are deleted (plainjob has no call for it)", drop);
    return bob === 3 && status(queue, 3) === "Processing" && claim(queue, '["globex","inbox"]', "cid") === 4;
  },

  async "mailbox/tenancy/reap-isolated"(queue) {
    add(queue, '["globex","inbox"]', "globex1");
    const bob = claim(queue, '["globex","inbox"]', "bob, who needs an hour,");
    add(queue, '["acme","inbox"]', "acme1");
    claim(queue, '["acme","inbox"]', "ann, who needs 300 ms,");
    await wait(600);
    told("the one sweep there is, for ann's job: requeueTimedOutJobs(300)", queue.requeueTimedOutJobs(300));
    return bob === 1 && status(queue, 1) === "Pending" && claim(queue, '["globex","inbox"]', "cid") === 1;
  },

  "mailbox/cross-process/lease-exclusion": besideAnn,
  "mailbox/cross-process/linearizable": besideAnn,

  async "mailbox/cross-process/foreign-ack-across"(queue, _, connection) {
    add(queue, "alpha", "m1");
    claim(queue, "alpha", "ann");
    await withPeer(connection, (peer) => peer.call("bob", "markJobAsDone", 1));
    return status(queue, 1) === "Done";
  },

  async "mailbox/cross-process/expiry-visible"(queue, _, connection) {
    add(queue, "alpha", "m1", "m2");
    claim(queue, "alpha", "ann");
    return withPeer(connection, async (peer) => {
      const bob = await peer.call("bob", "getAndMarkJobAsProcessing", "alpha");
      const fenced = status(queue, 1) === "Processing";
      await wait(600);
      console.log("    what timed out is claimable in every process; that is not what fails");
      await peer.call("the sweep", "requeueTimedOutJobs", 300);
      return bob?.id === 2 && fenced && claim(queue, "alpha", "cid") === 1;
    });
  },

  async "mailbox/cross-process/reopen-across"(queue, reopen, connection) {
    add(queue, "alpha", "m1", "m2");
    claim(queue, "alpha", "ann");
    return withPeer(connection, async (peer) => {
      const again = reopen();
      const bob = await peer.call("bob", "getAndMarkJobAsProcessing", "alpha");
      return bob?.id === 2 && status(again, 1) === "Processing";
    });
  },

  async "mailbox/cross-process/kill-mid-reap"(queue, _, connection) {
    add(queue, "beta", "b1", "b2");
    claim(queue, "beta", "ann");
    await withPeer(connection, async (peer) => {
      await peer.call("the sweep", "requeueTimedOutJobs", 3_600_000);
      await peer.kill();
    });
    return status(queue, 1) === "Processing" && claim(queue, "beta", "bob") === 2;
  },

  async "mailbox/cross-process/kill-holding-lease"(queue, _, connection) {
    add(queue, "alpha", "m1");
    await withPeer(connection, async (peer) => {
      await peer.call("bob", "getAndMarkJobAsProcessing", "alpha");
      await peer.kill();
    });
    await wait(600);
    told("requeueTimedOutJobs(300)", queue.requeueTimedOutJobs(300));
    const free = status(queue, 1) === "Pending";
    const acked = done(queue, 1, "somebody in the dead one's name").changes === 1;
    return free && acked && claim(queue, "alpha", "cid") === undefined;
  },
};

async function besideAnn(queue, _, connection) {
  add(queue, "alpha", "m1", "m2");
  const ann = claim(queue, "alpha", "ann");
  return withPeer(connection, async (peer) => {
    const bob = await peer.call("bob", "getAndMarkJobAsProcessing", "alpha");
    return ann === 1 && bob?.id === 2 && status(queue, 1) === "Processing";
  });
}

/** Hands `use` a second process that has the same file open. */
async function withPeer({ filename }, use) {
  const child = spawn(process.execPath, [process.argv[1], "peer", filename], { stdio: ["pipe", "pipe", "inherit"] });
  const over = new Promise((resolve) => child.once("exit", resolve));
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  console.log(`    another process opens the file: pid ${child.pid}`);
  const kill = async () => {
    child.kill("SIGKILL");
    await over;
    console.log(`    kill -9 ${child.pid}`);
  };
  const call = async (who, method, ...parameters) => {
    child.stdin.write(`${JSON.stringify([method, ...parameters])}\n`);
    const { value } = await answers.next();
    return told(`${who} there: ${method}(${parameters.map((one) => inspect(one)).join(", ")})`, JSON.parse(value));
  };
  try {
    return await use({ call, kill });
  } finally {
    child.stdin.end();
    await over;
  }
}

function told(what, answer) {
  console.log(`    ${what}  ->  ${inspect(answer, { breakLength: Infinity })}`);
  return answer;
}

function add(queue, type, ...bodies) {
  told(`add to type ${inspect(type)}: ${bodies.join(" ")}`, bodies.map((body) => queue.add(type, body).id));
}

function claim(queue, type, who) {
  return told(`${who} claims: getAndMarkJobAsProcessing(${inspect(type)})`, queue.getAndMarkJobAsProcessing(type))?.id;
}

function done(queue, id, who = "ann") {
  return told(`${who} acks: markJobAsDone(${id})`, queue.markJobAsDone(id));
}

function status(queue, id) {
  return told(`the status of job ${id}`, JobStatus[queue.getJobById(id).status]);
}

async function wait(ms) {
  await sleep(ms);
  console.log(`    ${ms} ms pass`);
}

async function reproduce(show) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "plainjob-by-hand-"));
  let connection;
  let queue;
  const open = () => {
    queue?.close();
    connection = better(new Database(path.join(folder, "by_hand.db")));
    queue = defineQueue({ connection, logger: QUIET });
    return queue;
  };
  const reopen = () => {
    console.log("    the queue is closed, and its file opened again");
    return open();
  };
  try {
    return await show(open(), reopen, connection);
  } finally {
    queue.close();
    fs.rmSync(folder, { recursive: true });
  }
}

const expected = fs.readFileSync(new URL("expect.toml", import.meta.url), "utf8");
const clauses = [...expected.matchAll(/^clause = "(.*)"$/gm)].map(([, clause]) => clause);
console.log(`plainjob ${versions.plainjob} on better-sqlite3 ${versions.sqlite}, by hand`);
let bad = 0;
for (const clause of clauses) {
  console.log(clause);
  const came = clause in shown && (await reproduce(shown[clause]));
  console.log(came ? "    reproduced" : "    NOT REPRODUCED");
  if (!came) bad += 1;
}
for (const clause of Object.keys(shown).filter((clause) => !clauses.includes(clause))) {
  console.log(`${clause}\n    reproduced here, and not in expect.toml`);
  bad += 1;
}
console.log(`${clauses.length} expected failures, ${bad} deviations`);
process.exitCode = bad ? 1 : 0;
