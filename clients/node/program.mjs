// Finds the program `airlock`.

import { createRequire } from "node:module";

/** Returns the program of the installed packages, or else the one on PATH. The packages of the
 * platforms are dependencies of the launcher, so they are found from its folder. */
export function findProgram() {
  const launcher = "@PACKAGE@/package.json";
  const platform = `@PACKAGE@-${process.platform}-${process.arch}/bin/airlock`;
  try {
    const here = createRequire(import.meta.url);
    return createRequire(here.resolve(launcher)).resolve(platform);
  } catch {
    return "airlock";
  }
}
