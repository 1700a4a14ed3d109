/** Requests to an S3-compatible store: addresses, signatures, pages of listings, and errors. */

import { AwsV4Signer } from "aws4fetch";
import { XMLParser } from "fast-xml-parser";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import type { FarSource } from "./far_object.ts";
import {
  type HttpAnswer,
  type HttpClient,
  type HttpRequest,
  REFUSAL_BYTES_MAX,
  refusalOf,
} from "./http_client.ts";
import type { S3Settings } from "./s3_settings.ts";

interface KeysPage {
  readonly keys: readonly string[];
  /** The token of the next page; `undefined` at the last. */
  readonly next: string | undefined;
}

/** Limit of the characters of a key, see the stores' limit of 1,024 bytes. */
const KEY_CHARS_MAX = 1_024;
/** Limit of the bytes of a listing's page: of 1,000 keys, of which every character is escaped. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024;
/** Limit of the tags of a page. An object has about 26. Millions would be parsed for half a minute. */
const PAGE_TAGS_MAX = 200_000;

/** Error codes of the store that say more than the status. */
const CODE_OF_REFUSAL: Readonly<Record<string, LeatErrorCode>> = {
  ExpiredToken: "permission_denied",
  InvalidToken: "permission_denied",
  InternalError: "unavailable",
  RequestTimeout: "unavailable",
  SlowDown: "unavailable",
};

/**
 * Regions become a label of a host name, which has at most 63 characters. A region in an answer must not
 * be able to name another host.
 */
const REGION = /^[a-z0-9-]{1,63}$/;

/** Limit of the signing keys that are kept. A store may name another region for each request. */
const SIGNING_KEYS_MAX = 1_000;

/**
 * Buckets that can be part of a host name. The wildcard certificate covers one level of names, so no
 * dots; URLs have hosts in lower case.
 */
const HOST_BUCKET = /^[a-z0-9-]+$/;

const XML = new XMLParser({
  ignoreAttributes: true,
  isArray: (name) => name === "Contents",
  // Keys are literal: "007" is no number, blanks stay, numeric entities are decoded.
  htmlEntities: true,
  parseTagValue: false,
  trimValues: false,
});

export class S3Client {
  readonly #scheme: string;
  readonly #settings: S3Settings;
  readonly #client: HttpClient;
  /** `aws4fetch` caches the signing keys of each day and region here. */
  readonly #signingKeys = new Map<string, ArrayBuffer>();
  /** The regions of buckets that are not in the configured region. */
  readonly #regions = new Map<string, string>();

  constructor(scheme: string, settings: S3Settings, client: HttpClient) {
    this.#scheme = scheme;
    this.#settings = settings;
    this.#client = client;
  }

  source(bucket: string, key: string): FarSource {
    const name = `${this.#scheme}://${bucket}/${key}`;
    return {
      name,
      request: (range) => this.#request(name, bucket, `/${encodeKey(name, key)}`, { range }),
      refusal: (request, answer) => this.#refusal(request, answer),
    };
  }

  /** Requests a page of the keys that begin with `prefix`, in the store's order. */
  async list(
    bucket: string,
    prefix: string,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<KeysPage> {
    const name = `the listing of ${this.#scheme}://${bucket}/${prefix}`;
    // XML cannot hold most control characters. Stores that ignore the encoding send keys as they are.
    const query = [["list-type", "2"], ["prefix", prefix], ["encoding-type", "url"]];
    if (token !== undefined) query.push(["continuation-token", token]);
    const search = query.map((pair) => pair.map(encode).join("=")).join("&");
    return await this.#client.retries.run(signal, async () => {
      const request = await this.#request(name, bucket, `?${search}`, {});
      const answer = await this.#client.send(request, signal);
      if (answer.status !== 200) throw await this.#refusal(request, answer);
      return keysOf(name, await answer.collect(PAGE_BYTES_MAX), token);
    });
  }

  async #request(
    name: string,
    bucket: string,
    rest: string,
    headers: Record<string, string>,
  ): Promise<HttpRequest> {
    const region = this.#regions.get(bucket) ?? this.#settings.region;
    const moved = async (answer: Response) => {
      if (![301, 307, 400].includes(answer.status)) return undefined;
      const found = await regionIn(answer);
      // Compared with the region of this request: another request may have found the region meanwhile.
      if (!REGION.test(found) || found === region) return undefined;
      this.#regions.set(bucket, found);
      return await this.#signed(name, bucket, found, rest, headers);
    };
    return { ...await this.#signed(name, bucket, region, rest, headers), moved };
  }

  async #signed(
    name: string,
    bucket: string,
    region: string,
    rest: string,
    headers: Record<string, string>,
  ): Promise<HttpRequest> {
    const { credentials } = this.#settings;
    const url = `${this.#base(bucket, region)}${rest}`;
    // Without `redirected`: a signature is valid for one host only, and the bucket's host is known.
    if (credentials === undefined) return { name, url, headers };
    if (this.#signingKeys.size >= SIGNING_KEYS_MAX) this.#signingKeys.clear();
    const signer = new AwsV4Signer({
      ...credentials,
      url,
      headers,
      region,
      method: "GET",
      service: "s3",
      cache: this.#signingKeys,
    });
    const signed = await signer.sign();
    return { name, url: signed.url.href, headers: signed.headers };
  }

  /** The URL of a bucket, without a trailing slash. */
  #base(bucket: string, region: string): string {
    const { addressing } = this.#settings;
    const endpoint = this.#settings.endpoint ?? amazonEndpoint(region);
    const { protocol, host } = endpoint;
    const path = endpoint.pathname.replace(/\/+$/, "");
    const inHost = addressing === "host" && HOST_BUCKET.test(bucket);
    return inHost
      ? `${protocol}//${bucket}.${host}${path}`
      : `${protocol}//${host}${path}/${bucket}`;
  }

  async #refusal(request: HttpRequest, answer: HttpAnswer): Promise<LeatError> {
    const { Code, Message } = errorOf(await answer.reason());
    const reason = Code === undefined ? "" : `${Code}: ${Message ?? ""}`;
    const refusal = refusalOf(request, answer, reason, this.#remedy(answer.status));
    const code = CODE_OF_REFUSAL[Code ?? ""];
    if (code === undefined || code === refusal.code) return refusal;
    return new LeatError(code, refusal.message, { details: { ...refusal.details } });
  }

  #remedy(status: number): string {
    if (status === 301) return "Give the store's endpoint, and the bucket's region.";
    if (status !== 401 && status !== 403) return "";
    if (this.#settings.credentials !== undefined) {
      return "Check the keys, their permissions, and the region.";
    }
    return "No credentials were given: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY and run with " +
      "--allow-env, or give them in the storage options.";
  }
}

function amazonEndpoint(region: string): URL {
  return new URL(`https://s3.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`);
}

function encodeKey(name: string, key: string): string {
  const segments = key.split("/");
  if (segments.some((segment) => segment === "." || segment === "..") || !key.isWellFormed()) {
    throw new LeatError("invalid_argument", `Cannot read ${name}: no URL has such a path.`);
  }
  return segments.map(encode).join("/");
}

/** Encodes as signatures require: everything except letters, digits and `-._~`. */
function encode(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** @param token The token with which this page was requested. */
function keysOf(name: string, bytes: Uint8Array | undefined, token: string | undefined): KeysPage {
  if (bytes === undefined) throw tooLarge(name, PAGE_BYTES_MAX, "bytes", "PAGE_BYTES_MAX");
  if (countOf(bytes, TAG_BYTE) > PAGE_TAGS_MAX) {
    throw tooLarge(name, PAGE_TAGS_MAX, "tags", "PAGE_TAGS_MAX");
  }
  const result = parseXml(new TextDecoder().decode(bytes))?.ListBucketResult;
  if (!isRecord(result)) {
    throw new LeatError(
      "failed_precondition",
      `Cannot read ${name}: the answer is no ListBucketResult. Is the endpoint that of an ` +
        "S3-compatible store?",
    );
  }
  const contents = Array.isArray(result.Contents) ? result.Contents : [];
  const keyOf = result.EncodingType === "url" ? decodeKey : (key: string) => key;
  const keys = contents.flatMap((item) =>
    isRecord(item) && typeof item.Key === "string" ? [keyOf(item.Key)] : []
  );
  if (keys.some(({ length }) => length > KEY_CHARS_MAX)) {
    throw tooLarge(name, KEY_CHARS_MAX, "characters in a key", "KEY_CHARS_MAX");
  }
  const isTruncated = String(result.IsTruncated).toLowerCase() === "true";
  const next = result.NextContinuationToken;
  if (!isTruncated) return { keys, next: undefined };
  if (typeof next === "string" && next !== "" && next !== token) return { keys, next };
  throw new LeatError(
    "failed_precondition",
    `Cannot read ${name}: the answer says that there are more objects (IsTruncated), but has no new ` +
      "continuation token (NextContinuationToken). Does the store support ListObjectsV2 (list-type=2)?",
  );
}

/** Keys of the form that web pages send: a plus is a space. */
function decodeKey(key: string): string {
  return new URLSearchParams(`key=${key.replaceAll("&", "%26")}`).get("key")!;
}

/** What a tag begins with: "<". */
const TAG_BYTE = 0x3c;

function countOf(bytes: Uint8Array, wanted: number): number {
  let count = 0;
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) count++;
  return count;
}

function tooLarge(name: string, max: number, unit: string, limit: string): LeatError {
  return new LeatError(
    "resource_exhausted",
    `Cannot read ${name}: a page of it has more than ${max} ${unit} (${limit}). Is the endpoint that ` +
      "of an S3-compatible store?",
  );
}

/** The region that an answer names, or "". Amazon's refusals of a signature name it only in their page. */
async function regionIn(answer: Response): Promise<string> {
  const named = answer.headers.get("x-amz-bucket-region");
  if (named !== null || answer.status !== 400) return named ?? "";
  // A copy, because the refusal quotes the page.
  const copy = answer.clone().body ?? new Blob().stream();
  const decoder = new TextDecoder();
  let page = "";
  for await (const chunk of copy.values({ preventCancel: true })) {
    page += decoder.decode(chunk, { stream: true });
    if (page.length > REFUSAL_BYTES_MAX) break;
  }
  // Not awaited: it ends only when the original ends or is cancelled, too.
  copy.cancel().catch(() => {});
  const { Region } = errorOf(page);
  return typeof Region === "string" ? Region : "";
}

function errorOf(page: string): { Code?: string; Message?: string; Region?: unknown } {
  const error = parseXml(page)?.Error;
  return isRecord(error) ? error : {};
}

function parseXml(text: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = XML.parse(text);
    return isRecord(parsed) ? parsed : undefined;
  } catch {
    return undefined; // for example a proxy's error page
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
