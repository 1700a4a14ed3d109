/** Texts of others that errors quote: none steers the terminal of who shows the error. */
import { encodeDocument, readDocument } from "../../data/saved/document.ts";
import { installedHost } from "../../data/host.ts";
import { Dataset, LeatError } from "../../mod.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { readHello } from "../../transport/hello.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../assert.ts";
import { withFiles } from "../lib/temp_folder.ts";

const STEERING = "x\x1b[2J\n2026-01-01T00:00:00Z INFO forged\x9b\x85\u2028\u202e\x7f";

/** Checks the messages of an error and of its causes. */
function assertPlain(error: unknown): void {
  for (let each = error; each instanceof Error; each = each.cause) {
    // deno-lint-ignore no-control-regex -- they are what is looked for
    const found = /[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]|\n\S/.exec(each.message);
    assertEquals(found, null, JSON.stringify(each.message));
  }
}

Deno.test("the error of a foreign pipeline with an unknown operator steers no terminal", () => {
  const graph = { format: "leat-dataset-1", root: { kind: STEERING, attributes: {}, inputs: [] } };
  const bytes = new TextEncoder().encode(JSON.stringify(graph));
  assertPlain(assertThrows(() => Dataset.deserialize(bytes), LeatError, "forged"));
});

Deno.test("the error of a damaged document of others steers no terminal, and is short", async () => {
  await withFiles({ DONE: encodeDocument("f", {}) }, async (folder) => {
    const check = () => {
      throw new Error(`it has ${STEERING} ${"long ".repeat(100_000)}`);
    };
    const reading = () => readDocument(installedHost(), `${folder}/DONE`, "f", "Remedy.", check);
    const error = await assertRejects(reading, LeatError, "forged");
    assertPlain(error);
    assert(error.message.length < 3_000, `${error.message.length} characters`);
  });
});

Deno.test("a hello of another version steers no terminal", () => {
  const hello = encodeMessage({ kind: "hello", version: STEERING });
  assertPlain(assertThrows(() => readHello(hello, "listener"), LeatError, "speaks version"));
});
