/** The URL prefixes that the operator of a worker lets confined pipelines read. */

/** Prefixes of far files. Local files never match: the runner reads those itself. */
export class FarRoots {
  readonly #roots: readonly string[];

  /** @param roots As they were granted: `https://host/folder`, `s3://bucket/prefix`. */
  constructor(roots: readonly string[]) {
    this.#roots = roots.map((root) => canonical(root.endsWith("/") ? root : `${root}/`));
  }

  /**
   * Whether a path, or a pattern of paths, is below one of the roots. Servers may interpret `.` and
   * `..` segments and escaped slashes differently. So a path with any of them is refused, also
   * within braces of a pattern.
   */
  has(path: string): boolean {
    const steps = /(^|[/{,(|\\])(\.|%2e){1,2}([/},)|\\]|$)/i.test(path);
    // deno-lint-ignore no-control-regex -- they are what is looked for
    const odd = /[\\\u0000-\u001f]|%2f|%5c/i.test(path);
    return !steps && !odd && this.#roots.some((root) => canonical(path).startsWith(root));
  }
}

/**
 * A web URL in the form that is sent to its server; keys of object stores are compared literally.
 */
function canonical(path: string): string {
  return /^https?:\/\//i.test(path) ? URL.parse(path)?.href ?? path : path;
}
