/** A program that has closed its cluster ends by itself. */
import { assertEquals } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { CARRIERS } from "../lib/carriers.ts";

for (const carrier of CARRIERS) {
  Deno.test(`a program that has closed its cluster exits by itself (${carrier})`, async () => {
    await using child = startChild("tests/service/lib/fixture_trainer.ts", {
      args: [carrier],
      flags: ["-P=cluster"],
    });
    const { code } = await child.status;
    assertEquals(code, 0, child.stderr.text);
    assertEquals(child.stdout.text.includes("read 400 and closed"), true);
  });
}
