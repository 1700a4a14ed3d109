/**
 * The beginnings of URLs below which the operator of a worker lets confined pipelines read.
 *
 * @module
 */

/** See the module. Local files are never below one: the runner reads those itself. */
export class FarRoots {
  readonly #roots: readonly string[];

  /** @param roots As they were granted: `https://host/folder`, `s3://bucket/prefix`. */
  constructor(roots: readonly string[]) {
    this.#roots = roots.map((root) => canonical(root.endsWith("/") ? root : `${root}/`));
  }

  /**
   * Whether a path, or a pattern of paths, lies below one of the roots. A server may understand steps up
   * or down in a path, and escaped slashes, in its own way. So a path with any of them is refused, those
   * in braces of a pattern included.
   */
  has(path: string): boolean {
    const steps = /(^|[/{,(|\\])(\.|%2e){1,2}([/},)|\\]|$)/i.test(path);
    // deno-lint-ignore no-control-regex -- they are what is looked for
    const odd = /[\\\u0000-\u001f]|%2f|%5c/i.test(path);
    return !steps && !odd && this.#roots.some((root) => canonical(path).startsWith(root));
  }
}

/** A web URL as it is sent to its server; keys of object stores are compared as they are written. */
function canonical(path: string): string {
  return /^https?:\/\//i.test(path) ? URL.parse(path)?.href ?? path : path;
}
