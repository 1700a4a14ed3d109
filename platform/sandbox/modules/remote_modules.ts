/**
 * The modules that the worker has fetched from granted hosts. A hook cannot wait for a fetch, so it
 * fails for a missing module. The missing modules are then fetched, and the import is repeated until
 * it succeeds.
 */
import { LeatError } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import type { FetchedModule } from "./fetched_modules.ts";

/** Limit of the remote modules of one process. */
const MODULES_MAX = 1_000;

export class RemoteModules {
  /** The modules by requested URL, and by the URL to which that redirects. */
  readonly #modules = new Map<string, FetchedModule>();
  /** The missing modules of each import in progress: concurrent calls of a function may import. */
  readonly #loads = new Set<Set<string>>();
  readonly #fetchModule: (url: string) => Promise<FetchedModule>;

  constructor(fetchModule: (url: string) => Promise<FetchedModule>) {
    this.#fetchModule = fetchModule;
  }

  /** The URL of a fetched module after all redirects. Other URLs stay the same. */
  positionOf(url: string): string {
    return this.#modules.get(url)?.url ?? url;
  }

  /** Returns a fetched module. @throws {LeatError} `failed_precondition` if it is not fetched. */
  moduleAt(url: string): FetchedModule {
    const module = this.#modules.get(url);
    if (module !== undefined) return module;
    for (const missing of this.#loads) missing.add(url);
    throw new LeatError(
      "failed_precondition",
      `Cannot import ${
        shownPath(url)
      } while a user function runs: import it at the top of the function's module`,
    );
  }

  /** Repeats `load`, which calls `moduleAt`, and fetches missing modules until it succeeds. */
  async import<T>(load: () => Promise<T>): Promise<T> {
    const failed = new Map<string, unknown>();
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
      // Some of them may be missing in other imports only. So this one fails when a repeated load
      // misses nothing but what could not be fetched before.
      const untried = [...missing].filter((url) => !failed.has(url));
      if (untried.length === 0) throw failed.get([...missing][0]!);
      await Promise.all(
        untried.filter((url) => !this.#modules.has(url)).map((url) =>
          this.#fetch(url).catch((error) => failed.set(url, error))
        ),
      );
    }
  }

  async #fetch(url: string): Promise<void> {
    if (this.#modules.size >= MODULES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `A user function imports more than ${MODULES_MAX} remote modules, the last one ${
          shownPath(url)
        }: bundle them`,
      );
    }
    const fetched = await this.#fetchModule(url);
    // All URLs that redirect to the same URL share one module.
    const module = this.#modules.get(fetched.url) ?? fetched;
    this.#modules.set(fetched.url, module);
    this.#modules.set(url, module);
  }
}
