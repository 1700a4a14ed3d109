/** Reads services for a confined runner, and connects only to granted dispatchers and workers. */
import { BlockList, isIPv4 } from "node:net";
import { accessFrom, type ReadingOptions } from "../../../actors/client/access.ts";
import { Feed } from "../../../actors/client/feed.ts";
import { LeatError } from "../../../core/error.ts";
import { definedFields, fieldsOf, isPlainObject } from "../../../core/tree.ts";
import type { KnownReader } from "../../../data/service/last_readers.ts";
import type { ReadingTask } from "../../../data/service/reading_task.ts";
import { Homes, type ServiceCredentials } from "../../nodes/client_homes.ts";
import { notOpened, OpenedNumbers } from "./opened_numbers.ts";
import type { HostFed } from "./confined_services.ts";

/** Limit of the services that one runner may read at a time. */
const READINGS_MAX = 8;
/** Limit of `maxOutstandingRequests`: requests and buffered elements of one reading. */
const OUTSTANDING_MAX = 256;
/** Limit of `bufferBytesMax`: bytes of buffered elements of one reading. */
const BUFFER_BYTES_MAX = 256 * 2 ** 20;

interface Reading {
  readonly feed: Feed;
  readonly stop: () => void;
  /** Settles with the last `next`. The following one waits for it, so that items stay in order. */
  last: Promise<unknown>;
  /** Values that are sent to the runner with the next item. */
  news: Omit<HostFed, "fed">;
}

export class HostReadings {
  readonly #homes: Homes;
  readonly #readings = new Map<number, Reading>();
  /** The runner's task. The worker sets it, so that the runner cannot read as another one. */
  forTask: ReadingTask | undefined;
  readonly #numbers = new OpenedNumbers();

  /** @param net Hosts to which it may connect, with or without a port. */
  constructor(net: readonly string[], services: ServiceCredentials | undefined) {
    const mayDial = (address: string) => {
      const error = denial(net, address);
      if (error === undefined) return;
      // A client would wait forever for a worker that it must not dial, so all readings fail.
      for (const { feed } of this.#readings.values()) feed.fail(error);
      throw error;
    };
    this.#homes = new Homes({ services, mayDial });
  }

  /** Starts a reading, and returns its number. */
  read(request: unknown): number {
    const { service, options } = fieldsOf(request);
    if (typeof service !== "string") throw malformed("read");
    if (this.#readings.size >= READINGS_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `A task reads at most ${READINGS_MAX} services at a time (READINGS_MAX)`,
      );
    }
    const feed = new Feed();
    const addNews = (news: Omit<HostFed, "fed">) => reading.news = { ...reading.news, ...news };
    const reads = { ...readingOf(options, addNews), forTask: this.forTask };
    const stop = accessFrom(this.#homes.open).read(service, {}, reads, feed);
    const reading: Reading = { feed, stop, last: Promise.resolve(), news: {} };
    const number = this.#numbers.next();
    this.#readings.set(number, reading);
    return number;
  }

  /** The next item of the client's feed. */
  next(number: unknown): Promise<HostFed> {
    const reading = this.#readings.get(number as number);
    if (reading === undefined) throw notOpened("read this service");
    const fed = reading.last.then(() => this.#take(reading));
    reading.last = fed.catch(() => {});
    return fed;
  }

  stop(number: unknown): null {
    this.#readings.get(number as number)?.stop();
    this.#readings.delete(number as number);
    return null;
  }

  async dataset(request: unknown): Promise<unknown> {
    const { service, datasetId } = fieldsOf(request);
    if (typeof service !== "string" || typeof datasetId !== "string") throw malformed("dataset");
    return await accessFrom(this.#homes.open).dataset(service, {}, datasetId, this.forTask);
  }

  async #take(reading: Reading): Promise<HostFed> {
    const fed = await reading.feed.take();
    const { news } = reading;
    reading.news = {};
    return { fed: { ...fed }, ...news };
  }
}

/** Checks the options of an untrusted request. The dispatcher checks the fields that it receives. */
function readingOf(
  options: unknown,
  addNews: (news: Omit<HostFed, "fed">) => void,
): ReadingOptions {
  if (!isPlainObject(options) || !isPlainObject(options.parameters)) throw malformed("options");
  const { dataset, repetition, maxOutstandingRequests, bufferBytesMax, ordered } = options;
  const isDataset = isPlainObject(dataset) &&
    (typeof dataset.datasetId === "string" || dataset.graph instanceof Uint8Array);
  const isBounded = isUpTo(OUTSTANDING_MAX, maxOutstandingRequests) &&
    isUpTo(BUFFER_BYTES_MAX, bufferBytesMax);
  if (!isDataset || !isBounded || !Number.isSafeInteger(repetition)) throw malformed("options");
  if (ordered !== undefined && !isPlainObject(ordered)) throw malformed("options");
  const { jobName, consumerIndex, trainerId, parameters } = options;
  return {
    dataset,
    parameters,
    repetition,
    ...definedFields({ jobName, consumerIndex, trainerId }),
    ...definedFields({ maxOutstandingRequests, bufferBytesMax }),
    ...(ordered === undefined ? {} : {
      ordered: {
        ...ordered,
        onTable: (digest: string) => addNews({ digest }),
        onJoined: (reader: KnownReader) => addNews({ reader }),
      },
    }),
  } as unknown as ReadingOptions;
}

function isUpTo(max: number, value: unknown): boolean {
  return value === undefined || Number.isSafeInteger(value) && (value as number) <= max;
}

/** The error for a node that must not be dialled, in Deno's words, so that `explainDenial` matches. */
function denial(net: readonly string[], address: string): LeatError | undefined {
  const { hostname, protocol, port } = new URL(address);
  const dialled = port || (protocol === "wss:" ? "443" : "80");
  if (net.some((granted) => coversHost(granted, hostname, dialled))) return undefined;
  return new LeatError("permission_denied", `Requires net access to "${hostname}:${dialled}"`);
}

/**
 * Whether a value of Deno's `--allow-net` covers a host, as Deno decides it for functions. Deno itself
 * cannot be asked here: this process may also connect to the hosts of far files.
 *
 * @param hostname As a URL has it: in lower case, an address of IPv6 in brackets.
 */
export function coversHost(granted: string, hostname: string, port: string): boolean {
  const [, subnet, bits] = /^([\d.]+)\/(\d+)$/.exec(granted) ?? [];
  if (subnet !== undefined) {
    const range = new BlockList();
    range.addSubnet(subnet, Number(bits));
    return isIPv4(hostname) && range.check(hostname);
  }
  // A scheme without a usual port, which would be dropped.
  const host = URL.parse(`host://${granted.toLowerCase()}`);
  if (host === null || host.port !== "" && host.port !== port) return false;
  const name = host.hostname;
  return name.startsWith("*.") ? `.${hostname}`.endsWith(name.slice(1)) : name === hostname;
}

function malformed(what: string): LeatError {
  return new LeatError("invalid_argument", `The request to read a service is malformed: ${what}`);
}
