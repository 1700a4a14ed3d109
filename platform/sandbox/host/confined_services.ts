/**
 * How a confined pipeline reads other services: the client is the host's, and what it is fed comes
 * over the edge.
 *
 * @module
 */
import type { ReadingOptions, ServiceAccess } from "../../../actors/client/access.ts";
import type { Fed, Feed } from "../../../actors/client/feed.ts";
import type { DatasetDefinition } from "../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import type { ReaderId } from "../../../data/service/last_readers.ts";
import type { DistributeOptions } from "../../../data/operators/distribute.ts";
import type { AskHost } from "./confined_host.ts";

/** Elements asked of the host ahead: the next one is on its way while one is worked on. */
const AHEAD = 4;

/** What the host is asked to read. */
export interface ReadRequest {
  readonly service: string;
  readonly options: unknown;
}

/** One step of a client of the host. */
export interface HostFed {
  readonly fed: Record<string, unknown>;
  /** DETERMINISTIC: the digest of the table of splits, as soon as it is known. */
  readonly digest?: string;
  /** DETERMINISTIC: as whom it is read, as soon as that is known. */
  readonly reader?: ReaderId;
}

/** Access through the host. */
export function confinedAccess(ask: AskHost): ServiceAccess {
  return {
    read: (service, _credentials, options, feed) =>
      new HostReading(ask, service, options, feed).stop,
    dataset: async (service, _credentials, datasetId) => {
      const request = { service: addressOf(service), datasetId };
      return await ask("serviceDataset", request) as DatasetDefinition;
    },
  };
}

/** Feeds a feed of this process from one of the host's. */
class HostReading {
  readonly #ask: AskHost;
  readonly #feed: Feed;
  readonly #onTable: ((digest: string) => void) | undefined;
  readonly #onJoined: ((reader: ReaderId) => void) | undefined;
  readonly #opened: Promise<unknown>;
  #asking = 0;

  constructor(
    ask: AskHost,
    service: DistributeOptions["service"],
    { ordered, ...options }: ReadingOptions,
    feed: Feed,
  ) {
    this.#ask = ask;
    this.#feed = feed;
    const { onTable, onJoined, ...place } = ordered ?? {};
    this.#onTable = onTable;
    this.#onJoined = onJoined;
    const request: ReadRequest = {
      service: addressOf(service),
      options: { ...options, ...(ordered === undefined ? {} : { ordered: place }) },
    };
    this.#opened = ask("serviceRead", request);
    this.#opened.catch((error) => feed.fail(LeatError.from(error)));
    feed.onTaken = () => this.#pump();
    this.#pump();
  }

  readonly stop = (): void => {
    this.#feed.fail(new LeatError("cancelled", "The iterator was disposed"));
    // The edge may be closed, and its readings with it.
    this.#opened.then((reading) => this.#ask("serviceStop", reading)).catch(() => {});
  };

  #pump(): void {
    while (!this.#feed.closed && this.#asking + this.#feed.length < AHEAD) {
      this.#asking++;
      this.#next();
    }
  }

  async #next(): Promise<void> {
    try {
      const { fed, digest, reader } = await this.#ask(
        "serviceNext",
        await this.#opened,
      ) as HostFed;
      this.#asking--;
      if (reader !== undefined) this.#onJoined?.(reader);
      if (digest !== undefined) this.#onTable?.(digest);
      this.#came(fed);
    } catch (error) {
      this.#feed.fail(LeatError.from(error));
    }
  }

  #came(wire: Record<string, unknown>): void {
    if (wire["kind"] === "end") return this.#feed.end();
    this.#feed.push(wire as Exclude<Fed, { kind: "end" }>);
    this.#pump();
  }
}

function addressOf(service: DistributeOptions["service"]): string {
  return typeof service === "string" ? service : service.address;
}
