/** What messages show of texts and URLs of others. */

import { assert, assertEquals } from "../assert.ts";
import { LeatError } from "../../core/error.ts";
import { shownPath, shownUrls, withShownUrls } from "../../core/shown_text.ts";

Deno.test("shownPath leaves out a URL's user, password, query and fragment, and nothing else", () => {
  for (
    const [path, shown] of [
      ["https://user:secret@host:1/a/b?signature=secret#secret", "https://host:1/a/b?…"],
      ["HTTP://user@host/a#secret", "HTTP://host/a?…"],
      ["https://host/a@b", "https://host/a@b"],
      ["https://secret:a@b@host/a", "https://host/a"],
      ["ftp://user:secret@host/a?b", "ftp://host/a?…"],
      ["s3://id:secret@bucket/literal?key", "s3://bucket/literal?key"],
      ["gs://bucket/literal#key", "gs://bucket/literal#key"],
      ["/data/what?", "/data/what?"],
      ["file:///data/what?", "file:///data/what?"],
      ["C:/data/a@b", "C:/data/a@b"],
    ] as const
  ) assertEquals(shownPath(path), shown);
});

Deno.test("shownUrls shows each URL of a text without its secrets", () => {
  assertEquals(
    shownUrls("for url (http://a/b(c)?s=secret): from wss://u:secret@d/e?f, and no://thing."),
    "for url (http://a/b(c)?…): from wss://d/e?…, and no://thing.",
  );
});

Deno.test("withShownUrls copies an error and its causes without the secrets of URLs", () => {
  const inner = new TypeError("http://u:secret@host/ ended");
  const outer = withShownUrls(new Error("http://host/?secret failed", { cause: inner })) as Error;
  assertEquals(outer.message, "http://host/?… failed");
  assertEquals((outer.cause as Error).message, "http://host/ ended");
  assertEquals((outer.cause as Error).name, "TypeError");
  assert(!JSON.stringify(LeatError.from(outer).toWire()).includes("secret"));
  assert(!Deno.inspect(outer).includes("secret"));
});
