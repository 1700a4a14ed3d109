/** Text as lines. */
import { LineStream } from "../../cli/lib/line_stream.ts";
import { wrap } from "../../cli/lib/text.ts";
import { assertEquals } from "../assert.ts";

Deno.test("wrap breaks lines at spaces, but not at a non-breaking one, and keeps longer words", () => {
  assertEquals(wrap("up to 5\u00a0% more  or\nimmeasurably", 8), [
    "up to",
    "5\u00a0% more",
    "or",
    "immeasurably",
  ]);
  assertEquals(wrap("", 5), [""]);
});

Deno.test("LineStream gives whole lines, and the unterminated rest if it is told to", async () => {
  const bytes = new TextEncoder().encode("one\n\ntwö\nrest");
  for (const givesRest of [false, true]) {
    const chunks = [bytes.slice(0, 8), bytes.slice(8, 9), bytes.slice(9)];
    const lines = ReadableStream.from(chunks).pipeThrough(new LineStream({ givesRest }));
    assertEquals(await Array.fromAsync(lines), ["one", "", "twö", ...givesRest ? ["rest"] : []]);
  }
});
