/** Lets a confined pipeline read other services, through a client in the host process. */
import type { ReadingOptions, ServiceAccess } from "../../../actors/client/access.ts";
import type { Feed, FeedItem } from "../../../actors/client/feed.ts";
import type { DatasetDefinition } from "../../../actors/dispatcher/protocol.ts";
import { LeatError } from "../../../core/error.ts";
import type { KnownReader } from "../../../data/service/last_readers.ts";
import type { DistributeOptions } from "../../../data/operators/distribute.ts";
import type { AskHost } from "./confined_host.ts";

/** Elements requested ahead from the host, so that the next one arrives while one is processed. */
const AHEAD = 4;

interface ReadRequest {
  readonly service: string;
  readonly options: unknown;
}

/** The next item of a client in the host process. */
export interface HostFed {
  readonly fed: Record<string, unknown>;
  /** DETERMINISTIC: the digest of the table of splits, with the first item after it is known. */
  readonly digest?: string;
  /** DETERMINISTIC: the id of the reader, with the first item after it is known. */
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

/** Forwards the items of a client in the host process to a feed of this process. */
function readFromHost(
  ask: AskHost,
  service: DistributeOptions["service"],
  { ordered, ...options }: ReadingOptions,
  feed: Feed,
): () => void {
  const { onTable, onJoined, ...plain } = ordered ?? {};
  const request: ReadRequest = {
    service: addressOf(service),
    options: { ...options, ...(ordered === undefined ? {} : { ordered: plain }) },
  };
  const opened = ask("serviceRead", request);
  opened.catch((error) => feed.fail(LeatError.from(error)));
  let openRequests = 0;
  const pump = () => {
    while (!feed.closed && openRequests + feed.length < AHEAD) {
      openRequests++;
      next();
    }
  };
  const next = async () => {
    try {
      const { fed, digest, reader } = await ask("serviceNext", await opened) as HostFed;
      openRequests--;
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
    // The request fails if the edge is closed. The reading then ends with the host process.
    opened.then((reading) => ask("serviceStop", reading)).catch(() => {});
  };
}

function addressOf(service: DistributeOptions["service"]): string {
  return typeof service === "string" ? service : service.address;
}
