// plainjob (a job queue on better-sqlite3) before the mailbox suites, exactly as it is.
//
// One open store is one plainjob queue on a database file of its own; one box is one job type. No
// lock, no owner check and no bookkeeping of claims is added; what plainjob answers is passed on:
//
//   append   queue.add; the job id is the seq
//   claim    queue.getAndMarkJobAsProcessing, one job a claim (plainjob has no batch; its typings
//            promise the id alone, so the body comes from queue.getJobById). Owner and max have
//            nothing to go to. plainjob has no ttl per claim but one timeout for all jobs, which its
//            sweep applies (queue.requeueTimedOutJobs, by default once a minute). Here the sweep is
//            called before each claim and in reap, and its timeout is the ttl of the last claim that
//            delivered; until there is one, plainjob's default of 30 minutes
//   ack      queue.markJobAsDone of the claim's job, unless it is above upTo. `acked` is the number
//            of rows which plainjob says it changed; none is its no: `lease_not_held`
//   reap     what plainjob's maintenance timer does, with its default ages
//   drop     plainjob has no purge and cannot list jobs: a DELETE of the type's pending and
//            processing rows in its own table; `dropped` counts them
//
// A claim has no id in plainjob, so the lease is the job id, all that a claim answers. `peek`,
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
const TIMEOUT_MS = 30 * 60 * 1000; // these three are plainjob's own defaults
const DONE_KEPT_MS = 7 * 24 * 60 * 60 * 1000;
const FAILED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;
const QUIET = { error() {}, warn() {}, info() {}, debug() {} };

class PlainjobMailbox {
  #connection;
  #queue;
  #timeoutMs = TIMEOUT_MS;

  constructor(folder) {
    this.#connection = better(new Database(path.join(folder, FILE)));
    this.#queue = defineQueue({ connection: this.#connection, logger: QUIET });
  }

  append({ scope, handle, body }) {
    return { seq: this.#queue.add(typeOf(scope, handle), body).id };
  }

  claim({ scope, handle, ttlMs }) {
    this.#queue.requeueTimedOutJobs(this.#timeoutMs);
    const claimed = this.#queue.getAndMarkJobAsProcessing(typeOf(scope, handle));
    if (claimed === undefined) return null;
    this.#timeoutMs = ttlMs;
    const job = this.#queue.getJobById(claimed.id);
    return { lease: String(job.id), messages: [{ seq: job.id, body: JSON.parse(job.data) }] };
  }

  ack({ lease, upTo }) {
    const id = Number(lease);
    if (id > upTo) return { acked: 0 };
    const { changes } = this.#queue.markJobAsDone(id);
    if (changes === 0) throw new Refused("lease_not_held", "markJobAsDone changed no row");
    return { acked: changes };
  }

  reap() {
    this.#queue.requeueTimedOutJobs(this.#timeoutMs);
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
    return { store: new PlainjobMailbox(folder), location: folder, root: folder };
  },

  attach(location) {
    fs.accessSync(path.join(location, FILE));
    return { store: new PlainjobMailbox(location) };
  },

  destroy(location) {
    fs.accessSync(path.join(location, FILE));
    fs.rmSync(location, { recursive: true });
  },
});
