/** Which connection is dropped when too many have sent no hello. */
import { Arrival } from "../../../transport/web_socket/http/http_listener.ts";
import { type Newcomer, Newcomers } from "../../../transport/web_socket/http/newcomers.ts";
import { assert, assertEquals } from "../../assert.ts";

/** Connections whose names say which of them were dropped. */
class Arrivals {
  readonly newcomers = new Newcomers();
  readonly dropped: string[] = [];

  add(name: string, address: string, isChallenged = false): Newcomer {
    const newcomer = { address, isChallenged, drop: () => void this.dropped.push(name) };
    this.newcomers.add(newcomer);
    return newcomer;
  }

  addMany(count: number, address: (number: number) => string): void {
    for (let i = 0; i < count; i++) this.add(`${address(i)} ${i}`, address(i));
  }
}

Deno.test("Newcomers drops the oldest of an address that has too many", () => {
  const arrivals = new Arrivals();
  arrivals.add("other", "10.0.0.2");
  arrivals.addMany(130, () => "10.0.0.1");
  assertEquals(arrivals.dropped, ["10.0.0.1 0", "10.0.0.1 1"]);
  assertEquals(arrivals.newcomers.size, 129);
});

Deno.test("Newcomers drops one of the address with most if there are too many in all", () => {
  const arrivals = new Arrivals();
  arrivals.add("alone", "10.0.0.9");
  arrivals.addMany(128, () => "10.0.0.1");
  arrivals.addMany(127, () => "10.0.0.2");
  assertEquals(arrivals.dropped, []);
  arrivals.add("late", "10.0.0.8");
  assertEquals(arrivals.dropped, ["10.0.0.1 0"]);
  assertEquals(arrivals.newcomers.size, 256);
});

Deno.test("Newcomers counts an IPv6 network as one address, and IPv4 addresses one by one", () => {
  const networks = new Arrivals();
  networks.addMany(129, (i) => `2001:db8::1:${i.toString(16)}`);
  assertEquals(networks.dropped, ["2001:db8::1:0 0"]);
  const mapped = new Arrivals();
  mapped.addMany(200, (i) => `::ffff:10.0.0.${i}`);
  assertEquals(mapped.dropped, []);
});

Deno.test("Newcomers drops none that proved a token, except for those of an identity with many", () => {
  const arrivals = new Arrivals();
  for (let i = 0; i < 20; i++) {
    arrivals.newcomers.proved(arrivals.add(`many ${i}`, "10.0.0.1", true), "many");
  }
  const proved = arrivals.add("few", "10.0.0.1", true);
  arrivals.newcomers.proved(proved, "few");
  arrivals.newcomers.shrink(100);
  for (let i = 0; i < 5; i++) arrivals.add(`late ${i}`, "10.0.0.1", true);
  assertEquals(arrivals.dropped, ["many 16", "many 17", "many 18", "many 19", "late 0"]);
});

Deno.test("Newcomers no longer counts introduced and closed connections", () => {
  const arrivals = new Arrivals();
  for (let i = 0; i < 1_000; i++) {
    arrivals.newcomers.delete(arrivals.add(String(i), "10.0.0.1"));
  }
  assertEquals([arrivals.newcomers.size, arrivals.dropped.length], [0, 0]);
});

Deno.test("Newcomers lowers its limit after a shortage of files, and restores it afterwards", () => {
  const arrivals = new Arrivals();
  arrivals.addMany(50, (i) => `10.0.0.${i % 5}`);
  arrivals.newcomers.shrink(24);
  assertEquals([arrivals.newcomers.size, arrivals.dropped.length], [26, 24]);
  arrivals.add("late", "10.0.0.1");
  assertEquals(arrivals.newcomers.size, 26);
  arrivals.newcomers.shrink(1_000);
  assert(arrivals.newcomers.size > 0, "somebody can always come in");
  arrivals.newcomers.grow();
  arrivals.addMany(100, () => "10.0.0.7");
  assert(arrivals.newcomers.size > 100);
});

Deno.test("Newcomers drops challenged connections after all others, oldest first", () => {
  const arrivals = new Arrivals();
  arrivals.add("first", "10.0.0.1", true);
  arrivals.add("second", "10.0.0.1", true);
  arrivals.addMany(126, () => "10.0.0.1");
  arrivals.addMany(126, () => "10.0.0.1");
  assertEquals(arrivals.dropped, Array.from({ length: 126 }, (_, i) => `10.0.0.1 ${i}`));
  for (let i = 0; i < 126; i++) arrivals.add(`challenged ${i}`, "10.0.0.1", true);
  assertEquals(arrivals.dropped.includes("first"), false);
  arrivals.add("third", "10.0.0.1", true);
  assertEquals(arrivals.dropped.at(-1), "first");
});

Deno.test("Arrival that has proved its token is not dropped for newcomers", () => {
  const newcomers = new Newcomers();
  let isDropped = false;
  const proved = new Arrival("10.0.0.1", () => isDropped = true, newcomers);
  proved.proved({ name: "one", role: "worker" });
  for (let i = 0; i < 1_000; i++) new Arrival("10.0.0.1", () => {}, newcomers);
  newcomers.shrink(1_000);
  assertEquals(isDropped, false);
});
