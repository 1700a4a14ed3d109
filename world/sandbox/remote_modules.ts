/**
 * Modules from hosts that the operator of a worker has granted. Their texts are fetched one by one,
 * under the thread's permission to import; which ones are needed is found by loading the first until
 * nothing is missing. So nothing is fetched that was not granted, a package least of all.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { setHas } from "./pristine.ts";

/** How many remote modules one thread may have. */
const MODULES_MAX = 1_000;

const permissionStatus = Deno.permissions.querySync.bind(Deno.permissions);
const OriginalUrl = URL;

/** See the module. */
export class RemoteModules {
  readonly #texts = new Map<string, string>();
  /** What was missing, for each load that is under way: overlapping calls of a function load at once. */
  readonly #loads = new Set<Set<string>>();
  readonly #fetching = new Set<string>();
  readonly #fetchText: (url: string) => Promise<string>;

  /** @param fetchText Default: as Deno imports it. */
  constructor(fetchText = importText) {
    this.#fetchText = fetchText;
  }

  /** Whether the text of a module is being fetched, by Deno. */
  isFetching(url: string): boolean {
    return setHas(this.#fetching, url);
  }

  /**
   * The text of a module.
   *
   * @throws {LeatError} `failed_precondition` where it has not been fetched, `permission_denied` where it would not be.
   */
  textOf(url: string): string {
    const text = this.#texts.get(url);
    if (text !== undefined) return text;
    for (const missing of this.#loads) missing.add(url);
    const { host, port, protocol } = new OriginalUrl(url);
    const full = port === "" ? `${host}:${protocol === "http:" ? 80 : 443}` : host;
    if (permissionStatus({ name: "import", host: full }).state !== "granted") {
      throw new LeatError("permission_denied", `Requires import access to "${full}"`);
    }
    throw new LeatError(
      "failed_precondition",
      `Cannot import ${url} while a user function runs: import it at the top of the function's module`,
    );
  }

  /**
   * What loading a module gives, after everything remote that it names has been fetched.
   *
   * @param load Loads it, and asks `textOf` for what is remote.
   */
  async import<T>(load: () => Promise<T>): Promise<T> {
    for (;;) {
      const missing = new Set<string>();
      this.#loads.add(missing);
      try {
        return await load();
      } catch (error) {
        if (missing.size === 0) throw error;
      } finally {
        this.#loads.delete(missing);
      }
      await this.#fetchSome([...missing].filter((url) => !this.#texts.has(url)));
    }
  }

  /** Fails where nothing can be fetched: what can, the next load may do with. */
  async #fetchSome(urls: readonly string[]): Promise<void> {
    const came = await Promise.allSettled(urls.map((url) => this.#fetch(url)));
    const failed = came.find(({ status }) => status === "rejected");
    if (failed === undefined || came.some(({ status }) => status === "fulfilled")) return;
    throw (failed as PromiseRejectedResult).reason;
  }

  async #fetch(url: string): Promise<void> {
    if (this.#texts.size >= MODULES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `A user function has more than ${MODULES_MAX} remote modules, the last of them ${url}: bundle them`,
      );
    }
    this.#fetching.add(url);
    try {
      this.#texts.set(url, await this.#fetchText(url));
    } finally {
      this.#fetching.delete(url);
    }
  }
}

async function importText(url: string): Promise<string> {
  const { default: text } = await import(url, { with: { type: "text" } }) as { default: string };
  return text;
}
