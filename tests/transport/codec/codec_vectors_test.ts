/**
 * Fixes the bytes of the format: by a few messages written out by hand, by the committed vectors,
 * and by a reader in Python that knows only the documentation.
 */

import { LeatError } from "../../../core/error.ts";
import { tensor } from "../../../core/tensor.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";
import { CASES, describe, makeVectors, type Vector } from "../vectors/cases.ts";

const VECTORS = new URL("../vectors/vectors.json", import.meta.url);
const vectors: Vector[] = JSON.parse(await Deno.readTextFile(VECTORS));

/** Spaces and line ends are for readability. */
function hex(spelled: string): string {
  return spelled.replaceAll(/\s/g, "");
}

Deno.test("encodeMessage writes a small message as written out by hand", () => {
  assertEquals(
    encodeMessage({ z: 1, a: { "": [] } }).toHex(),
    // length of the envelope · map of 2: "z", 1, "a", map of 1: "", empty array
    hex("ce 00000009 82 a17a 01 a161 81 a0 90"),
  );
});

Deno.test("encodeMessage writes a tensor as written out by hand", () => {
  assertEquals(
    encodeMessage({ t: tensor([[1, -2]], { dtype: "int16" }) }).toHex(),
    hex(`ce 00000014
      81 a174 c7 0e 54 00000000 02 02 00000001 00000002
      ${"c0".repeat(64 - 5 - 25)}
      c6 00000004 0100 feff`),
  );
});

Deno.test("encodeMessage writes strings as written out by hand: offsets, then one block", () => {
  assertEquals(
    encodeMessage(tensor(["é", "a"])).toHex(),
    hex(`ce 0000000d
      c7 0a 54 00000000 0c 01 00000002
      ${"c0".repeat(64 - 5 - 18)}
      c6 0000000c 00000000 02000000 03000000
      ${"c0".repeat(128 - 5 - 76)}
      c6 00000003 c3a9 61`),
  );
});

Deno.test("encodeMessage writes the committed vectors, byte for byte", () => {
  assertEquals(makeVectors(), vectors);
});

Deno.test("decodeMessage reads the committed vectors", () => {
  assertEquals(vectors.length, CASES.length);
  for (const { name, hex, value } of vectors) {
    assertEquals(describe(decodeMessage(Uint8Array.fromHex(hex))), value, name);
  }
});

Deno.test("decodeMessage refuses every truncation of every vector", () => {
  for (const { hex } of vectors) {
    const frame = Uint8Array.fromHex(hex);
    for (let length = 0; length < frame.length; length++) {
      const error = assertThrows(
        () => decodeMessage(frame.slice(0, length)),
        LeatError,
      ) as LeatError;
      assertEquals(error.code, "data_loss", error.message);
    }
  }
});

const noPython = await whyNoPython();
if (noPython !== undefined) console.log(`The Python reader is not tried: ${noPython}`);

Deno.test({
  name: "wire_reader.py, written from docs/wire.md, reads the committed vectors",
  ignore: noPython !== undefined,
  async fn() {
    const script = `${import.meta.dirname}/../wire_reader.py`;
    const child = new Deno.Command("python3", { args: [script], stdin: "piped", stdout: "piped" })
      .spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(JSON.stringify(vectors)));
    await writer.close();
    const { success, stdout } = await child.output();
    assert(success, "wire_reader.py failed; its traceback is above");
    const results: unknown[] = JSON.parse(new TextDecoder().decode(stdout));
    for (const [i, { name, value }] of vectors.entries()) {
      assertEquals(results[i], pythonValue(value), name);
    }
  },
});

/**
 * Python has one type of integer, where the vectors tell a number from a bigint; JSON.parse rounds
 * both alike.
 */
function pythonValue(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(pythonValue);
  const { int } = value as { int?: string };
  if (int !== undefined) return Number(int);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, pythonValue(item)]));
}

async function whyNoPython(): Promise<string | undefined> {
  try {
    const command = new Deno.Command("python3", {
      args: ["-c", "import msgpack"],
      stdout: "null",
      stderr: "null",
    });
    const { success } = await command.output();
    return success ? undefined : "python3 has no msgpack package (pip install msgpack)";
  } catch (error) {
    return `python3 cannot be run (${(error as Error).name})`;
  }
}
