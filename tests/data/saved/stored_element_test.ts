/** Elements of stored datasets: how many plain values one may have. */
import { Dataset, LeatError, tensor } from "../../../mod.ts";
import { ELEMENT_VALUES_MAX, encodeValue } from "../../../data/elements/value_codec.ts";
import { decodeElement, encodeElement } from "../../../data/saved/stored_element.ts";
import { assertEquals, assertRejects, assertStringIncludes, assertThrows } from "../../assert.ts";
import { inFolder } from "../../lib/temp_folder.ts";

const MANY_VALUES = new Array(ELEMENT_VALUES_MAX).fill(0);

Deno.test("save refuses an element with more values than can be read back, and names the remedy", async () => {
  await inFolder(async (folder) => {
    const saving = () => Dataset.from([{ values: MANY_VALUES }]).save(folder);
    const error = await assertRejects(saving, LeatError);
    assertEquals(error.code, "failed_precondition");
    assertStringIncludes(error.message, "ELEMENT_VALUES_MAX");
    assertStringIncludes(error.message, "put numbers into tensors");
  });
});

Deno.test("an element may have more text, and longer tensors, than values", () => {
  const text = "word ".repeat(ELEMENT_VALUES_MAX);
  const element = { texts: tensor([text, text]), data: tensor(new Uint8Array(text.length)) };
  const read = decodeElement(encodeElement(element), "a file") as typeof element;
  assertEquals(read.texts.byteLength, 2 * text.length);
  assertEquals(read.data.byteLength, text.length);
});

Deno.test("a record with too many values, or without JSON, is data_loss and is not parsed", () => {
  for (const record of [encodeValue(MANY_VALUES), new Uint8Array(3), new Uint8Array(8)]) {
    const error = assertThrows(() => decodeElement(record, "a file"), LeatError) as LeatError;
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, "a file holds a record that is no element");
  }
});
