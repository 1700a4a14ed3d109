/** Elements of stored datasets: how much text and plain values one may have. */
import { Dataset, LeatError, tensor } from "../../../mod.ts";
import {
  decodeElement,
  ELEMENT_JSON_BYTES_MAX,
  encodeElement,
} from "../../../data/saved/stored_element.ts";
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "../../assert.ts";
import { inFolder } from "../../lib/temp_folder.ts";

const LONG_TEXT = "x".repeat(ELEMENT_JSON_BYTES_MAX);

Deno.test("save refuses an element with more text than can be read back, and names the remedy", async () => {
  await inFolder(async (folder) => {
    const saving = () => Dataset.from([{ text: LONG_TEXT }]).save(folder);
    const error = await assertRejects(saving, LeatError);
    assertEquals(error.code, "failed_precondition");
    assertStringIncludes(error.message, "ELEMENT_JSON_BYTES_MAX");
    assertStringIncludes(error.message, "put it into tensors");
  });
});

Deno.test("an element of tensors may be larger than the limit of text", () => {
  const data = tensor(new Uint8Array(ELEMENT_JSON_BYTES_MAX + 1));
  const read = decodeElement(encodeElement({ data }), "a file") as { data: { byteLength: number } };
  assertEquals(read.data.byteLength, ELEMENT_JSON_BYTES_MAX + 1);
});

Deno.test("a record with a long JSON, or none, is data_loss and is not parsed", () => {
  const json = new TextEncoder().encode(JSON.stringify(LONG_TEXT));
  const long = new Uint8Array(4 + json.length);
  new DataView(long.buffer).setUint32(0, json.length, true);
  long.set(json, 4);
  for (const record of [long, new Uint8Array(3), new Uint8Array(8)]) {
    const error = assertThrows(() => decodeElement(record, "a file"), LeatError) as LeatError;
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, "a file holds a record that is no element");
  }
});
