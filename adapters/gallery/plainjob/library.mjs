// Where plainjob and better-sqlite3 are found: in the environment that `scripts/gallery install`
// makes, because an import only looks in folders above its own file.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const environment = createRequire(new URL("../../../.gallery/plainjob/package.json", import.meta.url));

export const Database = environment("better-sqlite3");
export const { better, defineQueue, JobStatus } = await import(pathToFileURL(environment.resolve("plainjob")).href);
export const versions = {
  plainjob: environment("plainjob/package.json").version,
  sqlite: environment("better-sqlite3/package.json").version,
};
