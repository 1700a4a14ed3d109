/**
 * `deno task fuzz`: it finds planted faults, its earlier findings stay fixed, and every target
 * passes a few inputs.
 */
import { fuzz } from "../../tools/fuzz/campaign.ts";
import { inputsOf, judge } from "../../tools/fuzz/cases.ts";
import type { OpenTarget } from "../../tools/fuzz/target.ts";
import { TARGETS } from "../../tools/fuzz/targets.ts";
import { IMAGE_TARGETS } from "../../tools/fuzz/targets/images.ts";
import { assert, assertEquals, assertLess } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { BYTES_MAX } from "./fixture_fuzz_targets.ts";
import kept from "./fuzz_cases.json" with { type: "json" };

const FIXTURE = import.meta.resolve("./fixture_fuzz_targets.ts");
const PRODUCTION = import.meta.resolve("../../tools/fuzz/targets.ts");
const MEMORY_BYTES_MAX = 1 << 30;
/** Far longer than an input takes on a busy machine. */
const STEP_MS = 60_000;
/** Inputs of each target in addition to its seeds, and of slow targets. */
const INPUTS = 40;
const SLOW_INPUTS = 3;
const SLOW: ReadonlySet<string> = new Set(["dispatcher"]);

function planted(target: string) {
  return {
    module: FIXTURE,
    target,
    seed: 1n,
    inputs: 60,
    memoryBytesMax: MEMORY_BYTES_MAX,
    stepMs: STEP_MS,
  };
}

Deno.test("fuzz lets the event loop turn between inputs, so that memory is freed there", async () => {
  const { runs, failures } = await fuzz({ ...planted("turns"), inputs: 3_000 });
  assertEquals([runs, failures], [3_000, []]);
});

Deno.test("fuzz runs all inputs of a target that withstands them", async () => {
  const { runs, valid, failures } = await fuzz(planted("sound"));
  assertEquals([runs, valid, failures], [60, 60, []]);
});

Deno.test("fuzz reports an error of another class, once, with a small input that still fails", async () => {
  const { runs, failures: [failure, ...others] } = await fuzz(planted("error"));
  assertEquals([runs, failure!.reason, others], [60, "error", []]);
  assert(failure!.message.includes("TypeError"), failure!.message);
  assertEquals(Uint8Array.fromBase64(failure!.input).length, BYTES_MAX + 1);
});

Deno.test("fuzz reports which input ends its process, and continues after it", async () => {
  const { runs, failures } = await fuzz({ ...planted("crash"), inputs: 12, shrinkMs: 0 });
  assertEquals([runs, failures.map(({ reason }) => reason)], [12, ["crash"]]);
  assertLess(BYTES_MAX, Uint8Array.fromBase64(failures[0]!.input).length);
});

Deno.test("fuzz ends a process whose input never ends, and names the input", async () => {
  const { failures } = await fuzz({ ...planted("hang"), inputs: 2, stepMs: 3_000, shrinkMs: 0 });
  assertEquals(failures.map(({ index, reason }) => [index, reason]), [[1, "hang"]]);
  assertEquals(Uint8Array.fromBase64(failures[0]!.input).length, BYTES_MAX + 1);
});

Deno.test("fuzz reports which input takes too much memory", async () => {
  const { failures } = await fuzz({
    ...planted("memory"),
    inputs: 4,
    memoryBytesMax: 400 * 2 ** 20,
    shrinkMs: 0,
  });
  assertEquals(failures.map(({ reason }) => reason), ["memory"]);
  assertLess(BYTES_MAX, Uint8Array.fromBase64(failures[0]!.input).length);
});

/** Uses a target in this process. */
async function withTarget(
  name: string,
  use: (target: OpenTarget) => Promise<void>,
): Promise<void> {
  const target = await TARGETS[name]!.open();
  try {
    await use(target);
  } finally {
    await target.close?.();
  }
}

Deno.test("inputs that once failed are handled", async (t) => {
  for (const { target: name, why, input } of kept) {
    await t.step(`${name}: ${why}`, () =>
      withTarget(name, async (target) => {
        const verdict = await judge(target, Uint8Array.fromBase64(input));
        assert(verdict.kind !== "failed", Deno.inspect(verdict));
      }));
  }
});

Deno.test("every target accepts its seeds, and withstands their mutations", async (t) => {
  for (const name of Object.keys(TARGETS)) {
    if (Object.hasOwn(IMAGE_TARGETS, name)) continue;
    await t.step(name, () =>
      withTarget(name, async (target) => {
        const inputAt = inputsOf(target, name, 1n);
        let valid = 0;
        const inputs = target.seeds.length + (SLOW.has(name) ? SLOW_INPUTS : INPUTS);
        for (let index = 0; index < inputs; index++) {
          const verdict = await judge(target, inputAt(index));
          if (index < target.seeds.length && verdict.kind === "valid") valid++;
          assert(verdict.kind !== "failed", `input ${index}: ${Deno.inspect(verdict)}`);
        }
        assertLess(0, valid, "no seed is valid");
      }));
  }
});

Deno.test("native image decoders withstand mutated images in a separate process", async (t) => {
  for (const target of Object.keys(IMAGE_TARGETS)) {
    await t.step(target, async () => {
      const { failures } = await fuzz({
        ...{ module: PRODUCTION, target, seed: 1n, inputs: 2 * INPUTS },
        ...{ memoryBytesMax: MEMORY_BYTES_MAX, stepMs: STEP_MS },
      });
      assertEquals(failures, []);
    });
  }
});

Deno.test("deno task fuzz repeats a kept input from its file, and prints the result", async () => {
  const path = await Deno.makeTempFile();
  try {
    const { target, input } = kept[0]!;
    await Deno.writeFile(path, Uint8Array.fromBase64(input));
    await using child = startChild("fuzz", {
      command: "task",
      args: ["--target", target, "--input", path],
    });
    await child.line(/^It is refused\.$/);
    assertEquals((await child.status).code, 0);
  } finally {
    await Deno.remove(path);
  }
});
