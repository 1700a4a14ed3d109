/** How a confined pipeline reads other services: through a client in the host process. */
import type { ReadingOptions, ServiceAccess } from "../../../actors/client/access.ts";
import type { Fed, Feed } from "../../../actors/client/feed.ts";
import type { DatasetDefinition } from "../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import type { ReaderId } from "../../../data/service/last_readers.ts";
import type { DistributeOptions } from "../../../data/operators/distribute.ts";
import type { AskHost } from "./confined_host.ts";

/** Elements requested ahead from the host: the next one arrives while one is processed. */
const AHEAD = 4;

interface ReadRequest {
  readonly service: string;
  readonly options: unknown;
}

/** One step of a client in the host process. */
export interface HostFed {
  readonly fed: Record<string, unknown>;
  /** DETERMINISTIC: the digest of the table of splits, as soon as it is known. */
  readonly digest?: string;
  /** DETERMINISTIC: the id of the reader, as soon as it is known. */
  readonly reader?: ReaderId;
}

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

/** Forwards the host's feed to a feed of this process. */
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
