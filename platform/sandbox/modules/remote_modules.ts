/**
 * Modules from granted hosts, which the worker fetches. A hook cannot wait for a fetch: it fails for
 * a missing module. The missing ones are then fetched and the import is repeated until it succeeds.
 */
import { LeatError } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import type { FetchedModule } from "./fetched_modules.ts";

/** Most remote modules of one process. */
const MODULES_MAX = 1_000;

export class RemoteModules {
  /** By requested URLs, and by the URLs that these redirect to. */
  readonly #modules = new Map<string, FetchedModule>();
  /** For each import in progress its missing modules: concurrent calls of a function may import. */
  readonly #loads = new Set<Set<string>>();
  readonly #fetchModule: (url: string) => Promise<FetchedModule>;

  constructor(fetchModule: (url: string) => Promise<FetchedModule>) {
    this.#fetchModule = fetchModule;
  }

  /** The final URL of a module, as far as known: other URLs stay the same. */
  positionOf(url: string): string {
    return this.#modules.get(url)?.url ?? url;
  }

  /** A fetched module. @throws {LeatError} `failed_precondition` for another one. */
  moduleAt(url: string): FetchedModule {
    const module = this.#modules.get(url);
    if (module !== undefined) return module;
    for (const missing of this.#loads) missing.add(url);
    throw new LeatError(
      "failed_precondition",
      `Cannot import ${url} while a user function runs: import it at the top of the function's module`,
    );
  }

  /** Loads a module with `load`, which calls `moduleAt`, after fetching everything it imports. */
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

  /** Fails if nothing could be fetched; otherwise the next load may succeed. */
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
        `A user function has more than ${MODULES_MAX} remote modules, the last of them ${
          shownPath(url)
        }: bundle them`,
      );
    }
    const came = await this.#fetchModule(url);
    // All its URLs lead to the same module.
    const known = this.#modules.get(came.url) ?? came;
    this.#modules.set(came.url, known);
    this.#modules.set(url, known);
  }
}
