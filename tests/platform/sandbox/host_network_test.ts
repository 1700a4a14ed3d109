/** The hosts that the host of a confined runner may connect to. */
import { LeatError } from "../../../core/error.ts";
import { hostsOfHost } from "../../../platform/sandbox/host/host_processes.ts";
import { coversHost, HostReadings } from "../../../platform/sandbox/host/host_readings.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

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

Deno.test("coversHost takes names, wildcards, ranges and ports as Deno takes --allow-net", async () => {
  const hosts: [hostname: string, port: string][] = [
    ...["a.cluster.local", "b.a.cluster.local", "cluster.local", "xcluster.local", "dispatcher"]
      .map((name): [string, string] => [name, "5050"]),
    ...["10.0.0.5", "10.1.0.5", "11.0.0.5", "[::1]", "[::2]"]
      .map((name): [string, string] => [name, "5050"]),
    ["dispatcher", "80"],
    ["dispatcher", "443"],
  ];
  const grants = ["*.cluster.local", "*.Cluster.local:5050", "*.cluster.local:80", "10.0.0.0/8"]
    .concat("10.0.0.0/16", "10.0.0.5", "10.0.0.5:80", "Dispatcher", "DISPATCHER:5050")
    .concat("dispatcher:080", "[::1]", "[0:0::1]:5050", "[::1]:80");
  const granted = `console.log(JSON.stringify(${JSON.stringify(hosts)}.map(([name, port]) =>
    Deno.permissions.querySync({ name: "net", host: name + ":" + port }).state === "granted")))`;
  for (const grant of grants) {
    const args = ["run", "--no-config", "--no-prompt", `--allow-net=${grant}`, "-"];
    const deno = new Deno.Command("deno", { args, stdin: "piped", stdout: "piped" }).spawn();
    const writer = deno.stdin.getWriter();
    await writer.write(new TextEncoder().encode(granted));
    await writer.close();
    const { stdout } = await deno.output();
    const covered = hosts.map(([name, port]) => coversHost(grant, name, port));
    assertEquals(covered, JSON.parse(new TextDecoder().decode(stdout)), grant);
  }
});

Deno.test("HostReadings dials services that a range covers, and no others", () => {
  const readings = new HostReadings(["127.0.0.0/8"], undefined);
  const read = (service: string) =>
    readings.read({
      service,
      options: { dataset: { datasetId: "d" }, parameters: {}, repetition: 0 },
    });
  readings.stop(read("ws://127.0.0.1:1"));
  assertThrows(() => read("ws://128.0.0.1:1"), LeatError, 'Requires net access to "128.0.0.1:1"');
});
