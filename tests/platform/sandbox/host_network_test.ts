/** The hosts that the host of a confined runner may connect to. */
import { hostsOfHost } from "../../../platform/sandbox/host/host_processes.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("hostsOfHost names the hosts of far roots and of granted services, and no others", () => {
  const of = (far: string[], ...rest: Parameters<typeof hostsOfHost>[1][]) =>
    hostsOfHost({ far, net: [] }, ...rest);
  assertEquals(of(["https://h/data", "http://h/x", "https://[::1]:8443/"]), [
    ...["h:443", "h:80", "[::1]:8443"],
  ]);
  assertEquals(of(["s3://bucket/shards"]), ["*.amazonaws.com:443", "*.amazonaws.com.cn:443"]);
  assertEquals(of(["s3://bucket/shards"], { s3: { endpoint: "http://minio:9000/base" } }), [
    ...["minio:9000", "bucket.minio:9000"],
  ]);
  assertEquals(of(["s3://bucket/a"], { s3: { endpoint: "http://[::1]:9000" } }), ["[::1]:9000"]);
  assertEquals(of(["gs://bucket/shards"]), [
    ...["storage.googleapis.com:443", "bucket.storage.googleapis.com:443"],
  ]);
  assertEquals(hostsOfHost({ far: [], net: ["10.0.0.5:5050", "h"] }), ["10.0.0.5:5050", "h"]);
  assertEquals(of([]), []);
});
