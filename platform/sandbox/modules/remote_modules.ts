/**
 * Modules from hosts that the operator of a worker has granted. The worker fetches them one by one,
 * and looks at every host on the way. Which ones are needed is found by loading the first until
 * nothing is missing.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import type { FetchedModule } from "./fetched_modules.ts";

/** How many remote modules one process may have. */
const MODULES_MAX = 1_000;

/** See the module. */
export class RemoteModules {
  /** By the URLs that were asked for, and by those that these redirect to. */
  readonly #modules = new Map<string, FetchedModule>();
  /** What was missing, for each load that is under way: overlapping calls of a function load at once. */
  readonly #loads = new Set<Set<string>>();
  readonly #fetchModule: (url: string) => Promise<FetchedModule>;

  constructor(fetchModule: (url: string) => Promise<FetchedModule>) {
    this.#fetchModule = fetchModule;
  }

  /** Where a module is, as far as that is known: what is no remote module is where its URL says. */
  placeOf(url: string): string {
    return this.#modules.get(url)?.url ?? url;
  }

  /**
   * A module that has been fetched.
   *
   * @throws {LeatError} `failed_precondition` where it has not been fetched.
   */
  moduleAt(url: string): FetchedModule {
    const module = this.#modules.get(url);
    if (module !== undefined) return module;
    for (const missing of this.#loads) missing.add(url);
    throw new LeatError(
      "failed_precondition",
      `Cannot import ${url} while a user function runs: import it at the top of the function's module`,
    );
  }

  /**
   * What loading a module gives, after everything remote that it names has been fetched.
   *
   * @param load Loads it, and asks `moduleAt` for what is remote.
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
      await this.#fetchSome([...missing].filter((url) => !this.#modules.has(url)));
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
    if (this.#modules.size >= MODULES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `A user function has more than ${MODULES_MAX} remote modules, the last of them ${url}: bundle them`,
      );
    }
    const came = await this.#fetchModule(url);
    // Under each of its names it is the same.
    const known = this.#modules.get(came.url) ?? came;
    this.#modules.set(came.url, known);
    this.#modules.set(url, known);
  }
}
