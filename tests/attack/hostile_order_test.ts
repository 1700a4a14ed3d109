/**
 * Workers that answer a DETERMINISTIC reader with positions that it has not requested. It may hold
 * early elements up to its window, and no worker may make it hold more.
 */
import { LeatError } from "../../core/error.ts";
import { EARLY_ITEMS_MAX } from "../../actors/client/readers/ordered_reader.ts";
import type { ElementAnswer, GetElementRequest } from "../../actors/worker/protocol.ts";
import { assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { element, ELEMENT_BYTES, ReaderBench } from "../actors/client/readers/reader_bench.ts";

/** A reader that keeps what it gets makes more requests. */
const ASKED_MAX = 2 * EARLY_ITEMS_MAX;

/** Answers that would fill a trainer if it kept them all. */
const ATTACKS: Record<string, (request: GetElementRequest, asked: number) => ElementAnswer> = {
  "elements of ever later splits": (_request, asked) => element(asked + 1, 0),
  "later elements of the next split": (_request, asked) => element(0, asked + 1),
  "errors of ever later splits": (_request, asked) => ({
    kind: "error",
    error: { code: "internal", message: "x".repeat(ELEMENT_BYTES) },
    place: { sequence: asked + 1, split: 0, index: 0 },
  }),
};

Deno.test("no worker fills a trainer with elements that it has not requested", async () => {
  for (const [what, answer] of Object.entries(ATTACKS)) {
    await using bench = new ReaderBench({ total: 1e6, bufferBytesMax: 10 * ELEMENT_BYTES });
    let asked = 0;
    bench.addTask((request) => {
      if (asked === ASKED_MAX) return { kind: "error", error: { code: "internal", message: "" } };
      return answer(request, asked++);
    });
    const error = await assertRejects(async () => await bench.feed.take(), LeatError);
    assertEquals(error.code, "data_loss", what);
    assertStringIncludes(error.message, "broke the protocol");
  }
});
