// The Node SDK of storeproof: write a store, call `serve` once, let the bench judge it.

export { Refused } from "./lib/errors.mjs";
export { serve } from "./lib/serve.mjs";
