/** Addresses as users write them, and as servers advertise them. */

import { LeatError } from "../../../core/error.ts";
import {
  advertisedAddress,
  isNodeAddress,
  serviceAddress,
} from "../../../platform/nodes/service_address.ts";
import { assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";

Deno.test("serviceAddress keeps scheme, host and port, and refuses other texts", () => {
  for (
    const [text, address] of [
      ["ws://10.0.0.5:5050", "ws://10.0.0.5:5050"],
      ["ws://10.0.0.5:5050/", "ws://10.0.0.5:5050"],
      ["wss://leat.example", "wss://leat.example"],
      ["ws://[2001:db8::7]:5050", "ws://[2001:db8::7]:5050"],
    ]
  ) assertEquals(serviceAddress(text!, "service"), address);
  for (
    const text of [
      "",
      "10.0.0.5:5050",
      "http://x:1",
      "ws://",
      "ws://x:99999",
      "ws://x:0",
      "ws://x/path",
    ]
  ) {
    const error = assertThrows(() => serviceAddress(text, "service"), LeatError, "service must be");
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, `"${text}"`);
  }
});

Deno.test("advertisedAddress prefers a given host, or host and port, to the listening address", () => {
  const listening = { scheme: "ws", hostname: "127.0.0.1", port: 5_051 } as const;
  assertEquals(advertisedAddress(listening), "ws://127.0.0.1:5051");
  assertEquals(advertisedAddress(listening, "gpu-7"), "ws://gpu-7:5051");
  assertEquals(advertisedAddress(listening, "gate.example:80"), "ws://gate.example:80");
  assertEquals(advertisedAddress(listening, "[2001:db8::7]:1"), "ws://[2001:db8::7]:1");
  for (
    const advertise of [
      "",
      "a b",
      "ws://x:1",
      "x:",
      "x:99999",
      "0.0.0.0",
      "2001:db8::7",
      "u@x",
      "x?y",
      "x#y",
      "é",
    ]
  ) {
    assertThrows(() => advertisedAddress(listening, advertise), LeatError, `"${advertise}"`);
  }
});

Deno.test("isNodeAddress accepts what advertisedAddress returns, and refuses what nobody dials", () => {
  const listening = { scheme: "ws", hostname: "127.0.0.1", port: 5_051 } as const;
  for (const advertise of [undefined, "GPU-7", "gate.example:80", "[2001:db8::7]:1"]) {
    const address = advertisedAddress(listening, advertise);
    assertEquals([address, isNodeAddress(address)], [address, true]);
  }
  const refused = ["", "client-x", "WS://x:1", "file:///x", "http://x:1", "ws://x:0", "ws://x:1/"];
  refused.push("ws://u@x:1", "ws://x:1?y", "ws://x:1#y", "ws://x:1\n", "ws:\\\\x:1", "ws://é:1");
  assertEquals(refused.filter(isNodeAddress), []);
});

Deno.test("advertisedAddress refuses port 0, and accepts a host before its port is known", () => {
  const listening = { scheme: "ws", hostname: "127.0.0.1", port: 0 } as const;
  for (const [advertise, host] of [["gpu-7:0", "(gpu-7)"], ["[::1]:00000", "([::1])"]]) {
    const address = () => advertisedAddress(listening, advertise);
    const { code, message } = assertThrows(address, LeatError);
    assertEquals(code, "invalid_argument");
    for (const part of [`"${advertise}"`, "port 0", host!]) assertStringIncludes(message, part);
  }
  // Checked before listening, when the free port is not known yet.
  assertEquals(advertisedAddress(listening, "gpu-7"), "ws://gpu-7:0");
});
