/** The settings of an S3-compatible store: from options, and otherwise from the environment. */

import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { checkOptionalBoolean, invalidArgument, optionsOf } from "../../data/check.ts";
import { isHeader } from "./http_client.ts";

/** An S3-compatible store. Omitted fields come from the environment, if the program may read it. */
export interface S3Options {
  /**
   * The store's URL, such as `"http://127.0.0.1:9000"`. Default: `AWS_ENDPOINT_URL_S3`,
   * `AWS_ENDPOINT_URL`, or Amazon's endpoint for the region.
   */
  readonly endpoint?: string;
  /**
   * Default: `AWS_REGION`, `AWS_DEFAULT_REGION`, or `"us-east-1"`. If a bucket reports another region,
   * that one is used for the bucket.
   */
  readonly region?: string;
  /**
   * Default: `AWS_ACCESS_KEY_ID`. Without one, requests are unsigned, which suffices for public
   * buckets.
   */
  readonly accessKeyId?: string;
  /** Default: `AWS_SECRET_ACCESS_KEY`. */
  readonly secretAccessKey?: string;
  /**
   * The session token of temporary credentials, with both keys; `""` is none. Default:
   * `AWS_SESSION_TOKEN`.
   */
  readonly sessionToken?: string;
  /** Sends unsigned requests, whatever the environment says. Default false. */
  readonly anonymous?: boolean;
  /**
   * Where requests have the name of the bucket: in the path (`host/bucket/key`) or in the host
   * (`bucket.host/key`). Default: in the path if an endpoint is given, otherwise in the host. Buckets
   * with other characters than lower-case letters, digits and "-" are always in the path.
   */
  readonly addressing?: "path" | "host";
}

interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/** {@linkcode S3Options} with defaults filled in. */
export interface S3Settings {
  /** `undefined` for Amazon's endpoint, which depends on the region. */
  readonly endpoint: URL | undefined;
  readonly region: string;
  readonly credentials: S3Credentials | undefined;
  readonly addressing: "path" | "host";
}

/** Reads an environment variable: `undefined` if it is unset, or the program may not read it. */
type ReadEnv = (name: string) => string | undefined;

export const S3_VARIABLES = [
  ...["AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"],
  ...["AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
];

/** The process's environment, as far as `--allow-env` permits. Never prompts for permission. */
export function readEnv(variable: string): string | undefined {
  const { state } = Deno.permissions.querySync({ name: "env", variable });
  return state === "granted" ? Deno.env.get(variable) || undefined : undefined;
}

/** Refuses anything but an object, without showing it: in place of options, a secret may be given. */
export function requireObject(what: string, options: unknown): void {
  if (options === undefined) return;
  if (typeof options === "object" && options !== null && !Array.isArray(options)) return;
  throw new LeatError("invalid_argument", `${what} must be an object of options`);
}

/**
 * Refuses unknown names and values of another type: a misspelt key would send unsigned requests, and a
 * misspelt endpoint would send them to Amazon.
 * @param what What messages call the options. They do not show values that may be secrets.
 */
export function checkS3Options(what: string, options: S3Options | undefined): void {
  requireObject(what, options);
  const check = optionsOf<S3Options>(what, {
    endpoint: true,
    region: true,
    accessKeyId: true,
    secretAccessKey: true,
    sessionToken: true,
    anonymous: true,
    addressing: true,
  });
  const { anonymous, addressing = "path", ...texts } = check(options);
  checkOptionalBoolean(what, "anonymous", anonymous);
  if (!["path", "host"].includes(addressing)) {
    throw invalidArgument(what, "addressing", '"path" or "host"', addressing);
  }
  for (const [name, text] of Object.entries(texts)) {
    const isValid = typeof text === "string" && (text !== "" || name === "sessionToken");
    if (text === undefined || isValid) continue;
    throw new LeatError("invalid_argument", `${what}: ${name} must be a non-empty string`);
  }
}

/**
 * Fills in defaults.
 * @throws {LeatError} `invalid_argument` for a bad URL, credentials without both keys, or with line ends.
 */
export function s3Settings(options: S3Options, env: ReadEnv): S3Settings {
  const endpoint = options.endpoint ?? env("AWS_ENDPOINT_URL_S3") ?? env("AWS_ENDPOINT_URL");
  const region = options.region ?? env("AWS_REGION") ?? env("AWS_DEFAULT_REGION") ?? "us-east-1";
  return {
    endpoint: endpoint === undefined ? undefined : endpointUrl(endpoint),
    region,
    credentials: options.anonymous === true ? undefined : credentialsOf(options, env),
    addressing: options.addressing ?? (endpoint === undefined ? "host" : "path"),
  };
}

function endpointUrl(text: string): URL {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.search === "") return url;
  throw new LeatError(
    "invalid_argument",
    `The endpoint of an S3 store is a URL such as "https://host:port", not "${shownPath(text)}".`,
  );
}

/** All of them come from one source: never an id from the options with the environment's secret. */
function credentialsOf(options: S3Options, env: ReadEnv): S3Credentials | undefined {
  const token = options.sessionToken || undefined;
  const given = [options.accessKeyId, options.secretAccessKey, token]
    .some((part) => part !== undefined);
  const accessKeyId = given ? options.accessKeyId : env("AWS_ACCESS_KEY_ID");
  const secretAccessKey = given ? options.secretAccessKey : env("AWS_SECRET_ACCESS_KEY");
  const sessionToken = given ? token : env("AWS_SESSION_TOKEN");
  if (!given && accessKeyId === undefined && secretAccessKey === undefined) return undefined;
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    const missing = accessKeyId === undefined
      ? "accessKeyId (AWS_ACCESS_KEY_ID)"
      : "secretAccessKey (AWS_SECRET_ACCESS_KEY)";
    throw new LeatError(
      "invalid_argument",
      `The credentials of an S3 store lack ${missing}. Give both keys, or no credentials for public buckets.`,
    );
  }
  // The key is in the middle of a header, whose ends are trimmed.
  if (!isHeader("authorization", `=${accessKeyId}/`) || !isHeader("token", sessionToken ?? "")) {
    throw new LeatError(
      "invalid_argument",
      "accessKeyId (AWS_ACCESS_KEY_ID) or sessionToken (AWS_SESSION_TOKEN) of an S3 store cannot be sent in " +
        "a header; remove line ends and other characters that HTTP does not allow.",
    );
  }
  return {
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
  };
}
