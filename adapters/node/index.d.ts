/** The Node SDK of storeproof: write a store, call `serve` once, let the bench judge it. */

/** Any JSON value: what a body may be. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A value, or a promise of it: every method may be sync or async. */
export type Awaitable<T> = T | Promise<T>;

/** One ordered box: the pair of both names. Distinct pairs are distinct boxes. */
export interface Recipient {
  /** The tenant; `"default"` where a store has only one. Non-empty. */
  scope: string;
  /** The box within the scope. Non-empty. */
  handle: string;
}

/** The moment of a call. */
export interface At {
  /** Integer milliseconds since 1970; the time leases are judged by where `clock` is `"caller"`. */
  now: number;
}

/** Who says to hold which lease on which box. */
export interface Holder extends Recipient {
  owner: string;
  lease: string;
}

/** `Seq` is a number (an integer from 1 to 2^53-1) unless a queue declares other ids. */
export interface Message<Seq = number> {
  seq: Seq;
  body: Json;
}

/** What a successful claim hands out: at least one message, in ascending order. */
export interface Delivery<Seq = number> {
  /** Non-empty, and never given out twice in the life of the storage. */
  lease: string;
  messages: Message<Seq>[];
}

/**
 * One open store. Arguments arrive as one object; a "no" is `throw new Refused(reason)`.
 * `release`, `renew` and `peek` are called only where the capability of that name is declared.
 */
export interface MailboxStore<Seq = number> {
  /**
   * Adds a message at the end of the box. When this answers, the message is kept.
   * @throws {Refused} `invalid_name`, `invalid_body`, `too_large`, or your code for a tombstoned recipient
   */
  append(args: Recipient & { body: Json } & At): Awaitable<{ seq: Seq }>;

  /**
   * Leases the box to `owner` for `ttlMs` milliseconds and delivers a non-empty prefix of at most
   * `max` messages; `null` where nothing waits or another lease lives.
   * `ttlMs` and `max` arrive as they were sent, whatever their type: check them.
   * @throws {Refused} `invalid_name`, `invalid_ttl`, `invalid_max`
   */
  claim(args: Recipient & { owner: string; ttlMs: any; max?: any } & At): Awaitable<Delivery<Seq> | null>;

  /**
   * Settles the lease: what it delivered up to and including `upTo` is gone, the rest claimable.
   * `acked` is how many messages this call removed.
   * @throws {Refused} `lease_not_held`
   */
  ack(args: Holder & { upTo: Seq } & At): Awaitable<{ acked: number }>;

  /** Gives the lease back: all is claimable at once. @throws {Refused} `lease_not_held` */
  release?(args: Holder & At): Awaitable<unknown>;

  /** Moves the expiry to `now + ttlMs`. @throws {Refused} `lease_not_held`, `invalid_ttl` */
  renew?(args: Holder & { ttlMs: any } & At): Awaitable<unknown>;

  /** Everything not yet acked, leased or not; changes nothing. @throws {Refused} `invalid_name` */
  peek?(args: Recipient & At): Awaitable<{ messages: Message<Seq>[] }>;

  /** Housekeeping over the whole store. */
  reap(args: At): Awaitable<unknown>;

  /** Empties the box and ends its lease; `dropped` is how many messages went. @throws {Refused} `invalid_name` */
  drop(args: Recipient & At): Awaitable<{ dropped: number }>;

  /**
   * Lets go of files and connections. A second call does nothing; every other call then throws
   * (`new Refused("closed")`, or whatever your storage throws: it is sent as that refusal).
   */
  close(): Awaitable<unknown>;
}

/** What the subject promises. Absent means false; an absent clock means `"wall"`. */
export interface Capabilities {
  /** A claim leases the whole box. Never together with `queue`. */
  mailbox?: boolean;
  /** A claim leases messages, and another consumer gets the next ones. */
  queue?:
    | boolean
    | { ids?: "int" | "string" | "uuid-time"; redelivery?: "lease" | "consumer-death" | "never" };
  /** What was receipted survives close, attach and kill -9. Needs `location`. */
  durable?: boolean;
  /** Any scope, each apart from the others. */
  tenancy?: boolean;
  /** Several processes may use one storage at once. Needs `location`. */
  crossProcessSafe?: boolean;
  /** The subject can mark a recipient as about to be deleted. */
  tombstone?: boolean;
  peek?: boolean;
  release?: boolean;
  renew?: boolean;
  /** Calls may overlap and be answered out of order. Without it: one at a time. */
  concurrent?: boolean;
  /** Whose time leases are judged by: the `now` of each call, or the store's own clock. */
  clock?: "caller" | "wall";
  /** `true`, or the full names of the methods served. */
  memory?: boolean | string[];
  /** `true`, or the full names of the methods served. */
  bundle?: boolean | string[];
  /** `true`, or the full names of the methods served. */
  siteRules?: boolean | string[];
}

/** A reader whose answers about damaged data are judged; served by `face/*` methods. */
export interface Face {
  name: string;
  kind: "get" | "list";
  shape?: Json;
  storage?: true;
  reopen?: true;
  unplantable?: string;
  tolerances?: { form: string; variant?: string; tolerance: string; reason: string; url?: string }[];
}

/** Sizes in bytes of UTF-8, times in milliseconds. */
export interface Limits {
  maxNameBytes?: number;
  maxBodyBytes?: number;
  leaseGranularityMs?: number;
}

/** A method of the protocol registered by its full name. Its answer goes out as it is. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type RegisteredMethod<Store> = (params: any, context: { store?: Store }) => Awaitable<object | void>;

/** What `serve` takes: who the subject is, what it promises, and how to get at its stores. */
export interface Subject<Store extends object = MailboxStore> {
  name: string;
  version: string;
  /** Absent: `"javascript"`. */
  language?: string;
  homepage?: string;
  capabilities: Capabilities;
  faces?: Face[];
  limits?: Limits;
  server?: { restart: string };

  /**
   * A fresh, empty store. `location` (any JSON) is what `attach` needs to find it again; `root` is
   * the absolute folder that holds all its bytes.
   */
  open?(): Awaitable<{ store: Store; location?: Json; root?: string }>;

  /** The same storage again, given by this process or by another one. */
  attach?(location: any): Awaitable<{ store: Store }>;

  /** Removes a storage that is closed. */
  destroy?(location: any): Awaitable<unknown>;

  /** Marks a recipient as about to be deleted; from now on `append` to it must refuse. */
  tombstone?(store: Store, recipient: Recipient & At): Awaitable<unknown>;

  /**
   * Further methods of the protocol by full name (`"face/read"`, `"memory/put"`, `"bundle/hash"`).
   * `context.store` is the store that `params.store` names, also once it is closed. In `face/read`, `face/reopen` and
   * `face/seed` an exception is the answer (reason `threw`).
   */
  methods?: { [name: string]: RegisteredMethod<Store> };
}

/** Reason codes the contract names; a store may have others. */
export type Reason =
  | "invalid_name" | "invalid_body" | "invalid_ttl" | "invalid_max" | "too_large"
  | "lease_not_held" | "closed" | "recipient_deleted" | "bad_package" | (string & {});

/** A refusal: an answer the bench judges. Any other exception is a fault of the adapter. */
export class Refused extends Error {
  /** `data` holds further members for the wire, such as `{ code }` beside `bad_package`. */
  constructor(reason: Reason, message?: string, data?: object);
  readonly name: "Refused";
  readonly reason: string;
  readonly data: object;
}

/**
 * Serves the subject on stdin and stdout until shutdown or the end of stdin, then exits. Call it
 * once. From then on stdout belongs to the protocol: console.log goes to stderr.
 * @throws {TypeError} where the subject's own declaration is wrong, naming the member
 */
export function serve<Store extends object = MailboxStore>(subject: Subject<Store>): void;
