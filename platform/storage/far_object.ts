/** An object in far storage: reads ranges of its bytes, and fails if the object changes. */

import { LeatError } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import type { HttpAnswer, HttpClient, HttpRequest } from "./http_client.ts";

/** The address of an object, and how to request it. */
export interface FarSource {
  /** The object's name in messages. */
  readonly name: string;
  /** Makes a request with this `Range` header. Called for each attempt, because signatures expire. */
  request(range: string): HttpRequest | Promise<HttpRequest>;
  /** Makes the error for an answer without the requested bytes. */
  refusal(request: HttpRequest, answer: HttpAnswer): Promise<LeatError>;
}

/** Bytes that are arriving. */
export interface FarRange {
  /** The offset of the first byte: the requested one, or 0 if the server sends the whole object. */
  readonly start: number;
  /** Whether the server's first answer was the whole object, which is then kept. */
  readonly whole: boolean;
  chunks(): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** The largest object that is read from a server that ignores ranges: all of it is held in memory. */
export const WHOLE_OBJECT_BYTES_MAX = 256 * 1024 * 1024;

/** Limit of the characters of a server's range that an error quotes. */
const RANGE_SHOWN_MAX = 100;

/** Identifies the contents of an object. */
interface Version {
  readonly sizeBytes: number;
  /** The server's identifier of these contents: an ETag, or else the time of the last change. */
  readonly tag: string | undefined;
}

/** An object in far storage, as it was when first requested. */
export class FarObject {
  readonly client: HttpClient;
  readonly #source: FarSource;
  #version: Version | undefined;

  constructor(client: HttpClient, source: FarSource) {
    this.client = client;
    this.#source = source;
  }

  get name(): string {
    return this.#source.name;
  }

  /** 0 until the first answer. */
  get sizeBytes(): number {
    return this.#version?.sizeBytes ?? 0;
  }

  /** See `OpenFile.tag`; known after the first answer. */
  get tag(): string | undefined {
    return this.#version?.tag;
  }

  /**
   * Requests the bytes from `start` up to `stop` once. The first answer fixes the object's version.
   * @throws {LeatError} `failed_precondition` if the object has changed since, or the server sends no
   * ranges of a large object; otherwise the server's error.
   */
  async requestRange(start: number, stop: number, signal: AbortSignal): Promise<FarRange> {
    const request = await this.#source.request(`bytes=${start}-${stop - 1}`);
    const answer = await this.client.send(request, signal);
    try {
      switch (answer.status) {
        case 200:
          return await this.#whole(answer);
        case 206:
          return this.#part(answer, start, stop);
        case 416:
          return this.#nothing(answer, start);
      }
      throw await this.#source.refusal(request, answer);
    } catch (error) {
      answer.cancel();
      throw error;
    }
  }

  #part(answer: HttpAnswer, start: number, stop: number): FarRange {
    const header = answer.headers.get("content-range") ?? "";
    const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+)$/i.exec(header) ?? [];
    const isAsked = Number(first) === start && Number(last) < stop;
    if (!isAsked || !Number.isSafeInteger(Number(total))) {
      throw new LeatError(
        "failed_precondition",
        `Cannot read ${this.name}: asked for bytes ${start} to ${
          stop - 1
        }, the server answered with ` +
          `Content-Range "${
            shownText(header.slice(0, RANGE_SHOWN_MAX))
          }", which is another range or no size.`,
      );
    }
    this.#check(answer, Number(total), start);
    if (total === "0") return this.#empty(answer); // some servers announce a byte, and send none
    return { start, whole: false, chunks: () => answer.chunks() };
  }

  /**
   * Handles an answer with the whole object. The answer may lack the object's size. A later one gives
   * only the range that it was asked for: otherwise each of many could be kept whole.
   */
  async #whole(answer: HttpAnswer): Promise<FarRange> {
    const known = this.#version;
    const whole = known === undefined;
    const length = answer.headers.get("content-length");
    const sizeBytes = Number(length ?? known?.sizeBytes);
    if (sizeBytes > WHOLE_OBJECT_BYTES_MAX) throw this.#tooLarge(`has ${sizeBytes} bytes`);
    if (length !== null || known?.tag !== undefined) {
      this.#check(answer, sizeBytes, 0);
      return { start: 0, whole, chunks: () => answer.chunks() };
    }
    // Only the number of its bytes says whether the object has changed.
    const bytes = await answer.collect(WHOLE_OBJECT_BYTES_MAX);
    if (bytes === undefined) throw this.#tooLarge("has more");
    this.#check(answer, bytes.length, 0);
    return { start: 0, whole, chunks: () => [bytes] };
  }

  /** Handles the answer that the range does not exist: the object is empty or has become shorter. */
  #nothing(answer: HttpAnswer, start: number): FarRange {
    const total = /^bytes \*\/(\d+)$/i.exec(answer.headers.get("content-range") ?? "")?.[1];
    this.#check(answer, Number(total ?? start), start);
    return this.#empty(answer);
  }

  #empty(answer: HttpAnswer): FarRange {
    answer.cancel();
    return { start: 0, whole: false, chunks: () => [] };
  }

  #check(answer: HttpAnswer, sizeBytes: number, start: number): void {
    const tag = answer.headers.get("etag") ?? answer.headers.get("last-modified") ?? undefined;
    const version = this.#version ??= { sizeBytes, tag };
    const isSame = version.sizeBytes === sizeBytes &&
      (version.tag === tag || answer.status === 416);
    if (isSame) return;
    const describe = (version: Version) =>
      `${version.sizeBytes} bytes${version.tag === undefined ? "" : `, ${version.tag}`}`;
    throw new LeatError(
      "failed_precondition",
      `Cannot read ${this.name} from byte ${start} on: it has changed since it was opened ` +
        `(${describe(version)}; now ${describe({ sizeBytes, tag })}). Read it again from its ` +
        "beginning, and give new contents new names.",
    );
  }

  #tooLarge(size: string): LeatError {
    return new LeatError(
      "failed_precondition",
      `Cannot read ${this.name}: the server ignores ranges, so the whole file must fit into ` +
        `${WHOLE_OBJECT_BYTES_MAX} bytes of memory, but it ${size}. Serve it from a server that ` +
        "supports ranges, or copy it to this machine.",
    );
  }
}
