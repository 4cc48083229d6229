// plainjob (a job queue on better-sqlite3) before the mailbox suites, exactly as it is.
//
// One open store is one plainjob queue on a database file of its own; one box is one job type. No
// lock, no owner check and no bookkeeping of claims is added; what plainjob answers is passed on:
//
//   append   queue.add. The seq is what plainjob orders by, next_run_at and then the id: `add` takes the
//            time before the database's lock and the id behind it, so that of two processes that add at
//            the same moment the later id may be the one that is claimed first
//   claim    queue.getAndMarkJobAsProcessing, one job a claim (plainjob has no batch; its typings
//            promise the id alone, so the body comes from queue.getJobById). Owner and max have
//            nothing to go to. plainjob has no ttl per claim but one timeout for all jobs, which its
//            sweep applies (queue.requeueTimedOutJobs, by default once a minute). Here the sweep is
//            called before each claim and in reap, and its timeout is the ttl of the last claim that
//            delivered, in whichever process; until there is one, plainjob's default of 30 minutes
//   ack      queue.markJobAsDone of the claim's job, unless it is above upTo. `acked` is the number
//            of rows which plainjob says it changed; none is its no: `lease_not_held`
//   reap     what plainjob's maintenance timer does, with its default ages
//   drop     plainjob has no purge and cannot list jobs: a DELETE of the type's pending and
//            processing rows in its own table; `dropped` counts them
//
// The timeout is an option of each process's queue, and the processes of one deployment are configured
// alike; so must both of the bench be. The number stands in the database's user_version, which SQLite
// keeps for those who use the file, and is written in the transaction of the claim that it is for: no
// kill between the two leaves a job that the others sweep by another timeout.
//
// A claim has no id in plainjob, so the lease is the job's number, all that a claim answers. `peek`,
// `release` and `renew` are not declared: plainjob has nothing of the kind. Granularity: expiry is as
// coarse as the sweep's interval in use, a minute by default and an option; one second is declared, so
// that the moment a message waits between append and claim on a busy machine is not held against
// plainjob, whose timeout runs from the append. `durable` and `crossProcessSafe`: a file in WAL mode,
// and "Multi-process Workers" of its README.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Refused, serve } from "../../node/index.mjs";
import { better, Database, defineQueue, JobStatus, versions } from "./library.mjs";

const FILE = "plainjob.db";
const IDS = 2 ** 22; // four million jobs a store; 24 days of milliseconds fit beside them
const TIMEOUT_MS_MAX = 2 ** 31 - 1; // what user_version holds
const TIMEOUT_MS = 30 * 60 * 1000; // these three are plainjob's own defaults
const DONE_KEPT_MS = 7 * 24 * 60 * 60 * 1000;
const FAILED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;
const QUIET = { error() {}, warn() {}, info() {}, debug() {} };

class PlainjobMailbox {
  #connection;
  #queue;
  #epochMs;

  constructor({ folder, epochMs }) {
    this.#epochMs = epochMs;
    this.#connection = better(new Database(path.join(folder, FILE)));
    this.#queue = defineQueue({ connection: this.#connection, logger: QUIET });
  }

  append({ scope, handle, body }) {
    // In one transaction, since another process may drop the job as soon as it is there.
    const add = () => this.#seq(this.#queue.getJobById(this.#queue.add(typeOf(scope, handle), body).id));
    return { seq: this.#connection.transaction(add)() };
  }

  claim({ scope, handle, ttlMs }) {
    this.#queue.requeueTimedOutJobs(this.#timeoutMs());
    const claim = () => {
      const claimed = this.#queue.getAndMarkJobAsProcessing(typeOf(scope, handle));
      if (claimed === undefined) return null;
      this.#connection.pragma(`user_version = ${Math.min(ttlMs, TIMEOUT_MS_MAX)}`);
      return this.#queue.getJobById(claimed.id);
    };
    const job = this.#connection.transaction(claim).immediate();
    if (job === null) return null;
    const seq = this.#seq(job);
    return { lease: String(seq), messages: [{ seq, body: JSON.parse(job.data) }] };
  }

  ack({ lease, upTo }) {
    const seq = Number(lease);
    if (seq > upTo) return { acked: 0 };
    const { changes } = this.#queue.markJobAsDone(seq % IDS);
    if (changes === 0) throw new Refused("lease_not_held", "markJobAsDone changed no row");
    return { acked: changes };
  }

  reap() {
    this.#queue.requeueTimedOutJobs(this.#timeoutMs());
    this.#queue.removeDoneJobs(DONE_KEPT_MS);
    this.#queue.removeFailedJobs(FAILED_KEPT_MS);
  }

  drop({ scope, handle }) {
    const { changes } = this.#connection
      .prepare("DELETE FROM plainjob_jobs WHERE type = @type AND status IN (@pending, @processing)")
      .run({ type: typeOf(scope, handle), pending: JobStatus.Pending, processing: JobStatus.Processing });
    return { dropped: changes };
  }

  close() {
    this.#queue.close();
  }

  #seq({ id, nextRunAt }) {
    const seq = (nextRunAt - this.#epochMs) * IDS + id;
    if (id >= IDS || seq <= 0 || !Number.isSafeInteger(seq)) throw new RangeError(`job ${id} has no number in this store`);
    return seq;
  }

  #timeoutMs() {
    return this.#connection.pragma("user_version", { simple: true }) || TIMEOUT_MS;
  }
}

/** The job type of a box: JSON text, so that no two pairs share one. */
function typeOf(scope, handle) {
  return JSON.stringify([scope, handle]);
}

serve({
  name: "plainjob",
  version: `${versions.plainjob} (better-sqlite3 ${versions.sqlite})`,
  capabilities: { mailbox: true, durable: true, tenancy: true, crossProcessSafe: true, clock: "wall" },
  limits: { leaseGranularityMs: 1000 },

  open() {
    const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "plainjob-"));
    const location = { folder, epochMs: Date.now() - 1 };
    return { store: new PlainjobMailbox(location), location, root: folder };
  },

  attach(location) {
    fs.accessSync(path.join(location.folder, FILE));
    return { store: new PlainjobMailbox(location) };
  },

  destroy({ folder }) {
    fs.accessSync(path.join(folder, FILE));
    fs.rmSync(folder, { recursive: true });
  },
});
