/** The URL prefixes that the operator of a worker lets confined pipelines read. */

/** Prefixes of far files. Local files never match: the runner reads those itself. */
export class FarRoots {
  readonly #roots: readonly string[];

  /** @param roots As they were granted: `https://host/folder`, `s3://bucket/prefix`. */
  constructor(roots: readonly string[]) {
    this.#roots = roots.map((root) => canonical(root.endsWith("/") ? root : `${root}/`));
  }

  /**
   * Whether a path or pattern is below a root. `.` and `..` segments and escaped slashes, also
   * within braces, are refused: servers differ in how they interpret them.
   */
  has(path: string): boolean {
    const steps = /(^|[/{,(|\\])(\.|%2e){1,2}([/},)|\\]|$)/i.test(path);
    // deno-lint-ignore no-control-regex -- they are what is looked for
    const odd = /[\\\u0000-\u001f]|%2f|%5c/i.test(path);
    return !steps && !odd && this.#roots.some((root) => canonical(path).startsWith(root));
  }
}

/** A web URL as it is sent to its server. Keys of object stores are compared literally. */
function canonical(path: string): string {
  return /^https?:\/\//i.test(path) ? URL.parse(path)?.href ?? path : path;
}
