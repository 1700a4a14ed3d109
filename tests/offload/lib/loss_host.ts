/** A host on which only a lost service takes too long: a slow machine does not change a test. */
import { installedHost, installHost } from "../../../data/host.ts";
import { DenoHost } from "../../../mod.ts";

/** The `timeoutMs` of services that are lost. */
export const LOST_AFTER_MS = 200;

export class LossHost extends DenoHost implements Disposable {
  readonly #lost = Promise.withResolvers<void>();
  readonly #before = installedHost();

  constructor() {
    super();
    installHost(this);
  }

  /** Called when the service is lost. */
  lose(): void {
    this.#lost.resolve();
  }

  override async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms === LOST_AFTER_MS) {
      const aborted = Promise.withResolvers<void>();
      signal?.addEventListener("abort", () => aborted.resolve(), { once: true });
      await Promise.race([this.#lost.promise, aborted.promise]);
    }
    await super.sleep(ms, signal);
  }

  [Symbol.dispose](): void {
    installHost(this.#before);
  }
}
