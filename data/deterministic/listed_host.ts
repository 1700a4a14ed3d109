/** A host for the splits of one epoch or one save: it lists the files of a source once for all splits. */
import { DelegatingHost } from "../foreign/delegating_host.ts";
import type { Files, Host } from "../host.ts";

export class ListedHost extends DelegatingHost implements Host {
  /** The host that this one delegates to. */
  readonly base: Host;
  readonly files: Files;
  declare readonly runsForeign?: NonNullable<Host["runsForeign"]>;
  declare readonly foreignRunners?: NonNullable<Host["foreignRunners"]>;
  declare readonly python?: Host["python"];
  declare readonly threads?: Host["threads"];
  declare readonly sharesBatches?: Host["sharesBatches"];
  declare readonly evaluate?: NonNullable<Host["evaluate"]>;
  readonly #listings = new WeakMap<object, Promise<string[]>>();

  constructor(host: Host) {
    super(host);
    this.base = host;
    this.files = host.files;
    const { runsForeign, foreignRunners, python, threads, sharesBatches } = host;
    if (runsForeign !== undefined) this.runsForeign = runsForeign;
    if (foreignRunners !== undefined) this.foreignRunners = foreignRunners;
    if (python !== undefined) this.python = python;
    if (threads !== undefined) this.threads = threads;
    if (sharesBatches !== undefined) this.sharesBatches = sharesBatches;
    if (host.evaluate !== undefined) this.evaluate = (script) => host.evaluate!(script);
  }

  /** The listing of a source. Calls `list` for the first split, and again after a failure. */
  listing(source: object, list: () => Promise<string[]>): Promise<string[]> {
    return this.#listings.getOrInsertComputed(source, () => {
      const listing = list();
      listing.catch(() => this.#listings.delete(source));
      return listing;
    });
  }
}
