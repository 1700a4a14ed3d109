/** Lets a confined pipeline read other services, through a client in the host process. */
import type { ReadingOptions, ServiceAccess } from "../../../actors/client/access.ts";
import type { Feed, FeedItem } from "../../../actors/client/feed.ts";
import type { DatasetDefinition } from "../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import type { KnownReader } from "../../../data/service/last_readers.ts";
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
  /** DETERMINISTIC: the digest of the table of splits, in the first step after it is known. */
  readonly digest?: string;
  /** DETERMINISTIC: the id of the reader, in the first step after it is known. */
  readonly reader?: KnownReader;
}

export function confinedAccess(ask: AskHost): ServiceAccess {
  return {
    read: (service, _credentials, options, feed) => readFromHost(ask, service, options, feed),
    dataset: async (service, _credentials, datasetId) => {
      const request = { service: addressOf(service), datasetId };
      return await ask("serviceDataset", request) as DatasetDefinition;
    },
  };
}

/** Forwards the host's feed to a feed of this process. */
function readFromHost(
  ask: AskHost,
  service: DistributeOptions["service"],
  { ordered, ...options }: ReadingOptions,
  feed: Feed,
): () => void {
  const { onTable, onJoined, ...place } = ordered ?? {};
  const request: ReadRequest = {
    service: addressOf(service),
    options: { ...options, ...(ordered === undefined ? {} : { ordered: place }) },
  };
  const opened = ask("serviceRead", request);
  opened.catch((error) => feed.fail(LeatError.from(error)));
  let asking = 0;
  const pump = () => {
    while (!feed.closed && asking + feed.length < AHEAD) {
      asking++;
      next();
    }
  };
  const next = async () => {
    try {
      const { fed, digest, reader } = await ask("serviceNext", await opened) as HostFed;
      asking--;
      if (reader !== undefined) onJoined?.(reader);
      if (digest !== undefined) onTable?.(digest);
      if (fed["kind"] === "end") return feed.end();
      feed.push(fed as Exclude<FeedItem, { kind: "end" }>);
      pump();
    } catch (error) {
      feed.fail(LeatError.from(error));
    }
  };
  feed.onTaken = pump;
  pump();
  return () => {
    feed.fail(new LeatError("cancelled", "The iterator was disposed"));
    // It fails if the edge is closed, which has ended the reading, too.
    opened.then((reading) => ask("serviceStop", reading)).catch(() => {});
  };
}

function addressOf(service: DistributeOptions["service"]): string {
  return typeof service === "string" ? service : service.address;
}
