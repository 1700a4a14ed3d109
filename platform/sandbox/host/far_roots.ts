/** The URL prefixes under which the operator of a worker lets confined pipelines read. */

/** Checks the URLs of far files. Local files never match, because the runner reads them itself. */
export class FarRoots {
  readonly #roots: readonly string[];

  /** @param roots Prefixes as granted: `https://host/folder`, `s3://bucket/prefix`. */
  constructor(roots: readonly string[]) {
    this.#roots = roots.map((root) => canonical(root.endsWith("/") ? root : `${root}/`));
  }

  /**
   * Whether a path or pattern is below a root. Segments `.` and `..` and escaped slashes, also within
   * braces, are refused, because servers interpret them in different ways. The query of a web URL may
   * have them, because it names no path.
   */
  has(path: string): boolean {
    const named = isWeb(path) ? path.replace(/[?#].*$/s, "") : path;
    const hasDotSegment = /(^|[/{,(|\\])(\.|%2e){1,2}([/},)|\\]|$)/i.test(named);
    // deno-lint-ignore no-control-regex -- control characters are refused
    const hasRefused = /[\u0000-\u001f]/.test(path) || /\\|%2f|%5c/i.test(named);
    return !hasDotSegment && !hasRefused &&
      this.#roots.some((root) => canonical(path).startsWith(root));
  }
}

/** Normalizes a web URL as for a request. Keys of object stores stay as they are. */
function canonical(path: string): string {
  return isWeb(path) ? URL.parse(path)?.href ?? path : path;
}

function isWeb(path: string): boolean {
  return /^https?:\/\//i.test(path);
}
