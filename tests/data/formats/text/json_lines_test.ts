/** Lines of JSON. */
import { LeatError } from "../../../../core/error.ts";
import { parseJsonLine } from "../../../../data/formats/text/json_lines.ts";
import { assertStringIncludes, assertThrows } from "../../../assert.ts";

Deno.test("parseJsonLine escapes control characters of a line in its error", () => {
  const line = { text: '{"a":\x1b[2J}', number: 2, offset: 0 };
  const error = assertThrows(() => parseJsonLine(line, "file"), LeatError);
  assertStringIncludes(error.message, '"{"a":\\x1b[2J}"');
});
