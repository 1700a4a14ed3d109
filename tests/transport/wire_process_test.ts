/** The carrier between processes with a program in another language at its other end. */
import { ActorSystem } from "../../actors/runtime/system.ts";
import { SAME_PROCESS } from "../../actors/runtime/identity.ts";
import { tensor } from "../../core/tensor.ts";
import { Payload } from "../../transport/payload.ts";
import { openProcessLink } from "../../transport/process/link.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { streamReader, streamWriter } from "../../platform/process/pipes.ts";
import { readableSlots, writableSlots } from "../../platform/process/slot_files.ts";
import { SlotFolder } from "../../platform/process/slot_folder.ts";
import { assert, assertEquals, assertInstanceOf } from "../assert.ts";

const PROGRAM = `${import.meta.dirname}/wire_process.py`;

interface Echo {
  echo(value: unknown): unknown;
}

Deno.test("wire_process.py, written from docs/wire.md, is an actor of another process", async () => {
  const folder = new SlotFolder();
  const { incoming, outgoing } = folder;
  const child = new Deno.Command("python3", {
    args: [PROGRAM, outgoing, incoming, "python", "00000000000000cc"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const system = new ActorSystem({ node: "starter", world: new DenoWorld({ logLevel: "off" }) });
  const streams = {
    incoming: streamReader(child.stdout),
    outgoing: streamWriter(child.stdin),
    incomingSlots: readableSlots(incoming),
    outgoingSlots: writableSlots(outgoing),
  };
  const link = await openProcessLink(streams, system.id, "listener", { identity: SAME_PROCESS });
  folder.remove();
  assertEquals(link.remote, { node: "python", incarnation: "00000000000000cc" });
  system.attach(link);
  const echo = { node: "python", path: "/echo" } as const;
  const ask = (value: unknown) =>
    system.ask<Echo, "echo">(echo, "echo", value, { timeoutMs: 120_000 });
  const values = ["é𝄞", 7, -1, 0.5, null, [true, { deep: [] }], 2n ** 40n, "x".repeat(50_000)];
  for (const value of values) {
    // Python has one type of integer.
    const expected = typeof value === "bigint" ? Number(value) : value;
    assertEquals(await ask(value), expected);
  }
  assertEquals(await ask({ t: tensor([[1, 2], [3, 4]]) }), { t: tensor([[1, 2], [3, 4]]) });
  // Several at once, so that both slots are in use in both directions.
  const sizes = [100_000, 70_000, 5_000_000, 1, 1_000_000, 300_000];
  const blocks = sizes.map((size, i) => new Uint8Array(size).fill(i + 1));
  const echoed = await Promise.all(blocks.map((block) => ask(new Payload(block.slice()))));
  for (const [i, payload] of echoed.entries()) {
    assertInstanceOf(payload, Payload);
    assertEquals(payload.byteLength, sizes[i]);
    assert(payload.bytes.every((byte) => byte === i + 1));
  }
  await system.stop();
  assertEquals((await child.status).code, 0);
});
