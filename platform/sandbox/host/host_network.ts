/**
 * The hosts that a runner's host process may connect to: of its roots and granted services. Deno
 * denies all others, whatever a fault in it or in a native library requests.
 */
import { LeatError } from "../../../core/error.ts";
import { readEnv, type S3Options, s3Settings } from "../../storage/s3_settings.ts";
import { GOOGLE_ENDPOINT, type StorageOptions } from "../../storage/storage.ts";
import { hostOf, type ReachedByHost } from "../grants.ts";

/** Amazon's host names hold a bucket and a region, and a bucket may redirect to another region. */
const AMAZON_HOSTS = ["*.amazonaws.com:443", "*.amazonaws.com.cn:443"];

/** The hosts, as values of Deno's `--allow-net`. */
export function hostsOfHost(
  { far, net }: ReachedByHost,
  storage: StorageOptions = {},
): string[] {
  return [...new Set([...net, ...far.flatMap((root) => hostsOf(root, storage))])];
}

function hostsOf(root: string, { s3, gs }: StorageOptions): string[] {
  const url = URL.parse(root);
  switch (url?.protocol) {
    case "http:":
    case "https:":
      return [hostOf(root)];
    case "s3:":
      return storeHosts(s3Endpoint(s3), url.host);
    case "gs:":
      return storeHosts(new URL(gs?.endpoint ?? GOOGLE_ENDPOINT), url.host);
    default:
      return [];
  }
}

/** Requests name the bucket in their path or host. */
function storeHosts(endpoint: URL | undefined, bucket: string): string[] {
  if (endpoint === undefined) return AMAZON_HOSTS;
  const host = hostOf(endpoint.href);
  return endpoint.hostname.startsWith("[") ? [host] : [host, `${bucket}.${host}`];
}

function s3Endpoint(options: S3Options = {}): URL | undefined {
  try {
    return s3Settings(options, readEnv).endpoint;
  } catch (error) {
    // The user of these settings reports that they are wrong.
    if (error instanceof LeatError) return undefined;
    throw error;
  }
}
