/** Writing a report's page to a file. */
import { writePage } from "../../cli/lib/page.ts";
import { assertEquals, assertThrows } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

Deno.test("writePage replaces a file, and leaves no other file, also if it fails", async () => {
  await using folder = await TempFolder.make({ "page.html": "old", "taken/file": "" });
  writePage("new", `${folder.path}/page.html`);
  assertEquals(await Deno.readTextFile(`${folder.path}/page.html`), "new");
  assertThrows(() => writePage("new", `${folder.path}/taken`), Error);
  assertThrows(() => writePage("new", `${folder.path}/missing/page`), Deno.errors.NotFound);
  const names = await Array.fromAsync(Deno.readDir(folder.path), ({ name }) => name);
  assertEquals(names.sort(), ["page.html", "taken"]);
});
