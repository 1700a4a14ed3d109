/** The name by which other hosts reach this one. */
import { advertisedHost, type HostInterface } from "../../../platform/nodes/advertised_host.ts";
import { assertEquals } from "../../assert.ts";

const LOOPBACK: HostInterface = { name: "lo", family: "IPv4", address: "127.0.0.1" };
const LOOPBACK_6: HostInterface = { name: "lo", family: "IPv6", address: "::1" };
const LINK_LOCAL: HostInterface = { name: "eth0", family: "IPv6", address: "fe80::1" };
const UNCONFIGURED: HostInterface = { name: "eth1", family: "IPv4", address: "169.254.7.7" };
const BRIDGE: HostInterface = { name: "docker0", family: "IPv4", address: "172.17.0.1" };
const GLOBAL_6: HostInterface = { name: "eth0", family: "IPv6", address: "2001:db8::5" };
const ETHERNET: HostInterface = { name: "eth0", family: "IPv4", address: "10.0.0.5" };

Deno.test("advertisedHost returns the chosen interface", () => {
  assertEquals(advertisedHost("127.0.0.1", [ETHERNET]), "127.0.0.1");
  assertEquals(advertisedHost("trainer.example", [ETHERNET]), "trainer.example");
  assertEquals(advertisedHost("2001:db8::7", []), "[2001:db8::7]");
});

Deno.test("advertisedHost for all interfaces prefers IPv4, then real ones, never loopback", () => {
  const all = [LOOPBACK, LOOPBACK_6, LINK_LOCAL, UNCONFIGURED, BRIDGE, GLOBAL_6, ETHERNET];
  assertEquals(advertisedHost("0.0.0.0", all), "10.0.0.5");
  assertEquals(advertisedHost("::", all), "10.0.0.5");
  assertEquals(advertisedHost("::", all.slice(0, -1)), "[2001:db8::5]");
  assertEquals(advertisedHost("0.0.0.0", all.slice(0, -2)), "172.17.0.1");
  assertEquals(advertisedHost("0.0.0.0", all.slice(0, -3)), "127.0.0.1");
  assertEquals(advertisedHost("0.0.0.0", []), "127.0.0.1");
});

Deno.test("advertisedHost names no IPv6 address of a server that listens on 0.0.0.0", () => {
  assertEquals(advertisedHost("0.0.0.0", [GLOBAL_6, BRIDGE]), "172.17.0.1");
  assertEquals(advertisedHost("0.0.0.0", [GLOBAL_6]), "127.0.0.1");
});

Deno.test("advertisedHost works without permission to read the interfaces", async () => {
  const module = new URL("../../../platform/nodes/advertised_host.ts", import.meta.url).href;
  const program = `import { advertisedHost } from "${module}";
    console.log(advertisedHost("0.0.0.0"));`;
  const child = new Deno.Command("deno", {
    args: ["run", "--quiet", "--no-prompt", "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const stdin = child.stdin.getWriter();
  await stdin.write(new TextEncoder().encode(program));
  await stdin.close();
  const { stdout } = await child.output();
  assertEquals(new TextDecoder().decode(stdout), "127.0.0.1\n");
});
