/** What messages show of texts and URLs of others. */

import { assert, assertEquals } from "../assert.ts";
import { LeatError } from "../../core/error.ts";
import {
  shellWord,
  shownJson,
  shownLines,
  shownPath,
  shownText,
  shownUrls,
  withShownUrls,
} from "../../core/shown_text.ts";

Deno.test("shownText and shownJson escape marks of direction, and characters that take no place", () => {
  const marks = [0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x202e, 0x2066, 0x2069, 0xfeff];
  for (const code of marks) {
    const digits = code.toString(16);
    const escape = code < 0x100 ? `\\x${digits}` : `\\u${digits.padStart(4, "0")}`;
    assertEquals(shownText(`a${String.fromCharCode(code)}b`), `a${escape}b`);
    const json = shownJson([`a${String.fromCharCode(code)}b`]);
    assertEquals(json, `["a\\u${digits.padStart(4, "0")}b"]`);
  }
  // Joiners are part of words and of emojis.
  for (const text of ["déjà", "日本", "עברית", "\u{1f468}\u200d\u{1f469}"]) {
    assertEquals(shownText(text), text);
  }
});

Deno.test("shownText escapes tabs, which shownLines keeps", () => {
  assertEquals(shownText("a\tb"), "a\\tb");
  assertEquals(shownLines("a\tb\n    c\td"), "a\tb\n    c\td");
});

Deno.test("shellWord quotes what a shell would divide or interpret", () => {
  for (const word of ["big", "node-1", "/data/x", "s3://bucket/a+b", "a=b,c:1@%"]) {
    assertEquals(shellWord(word), word);
  }
  for (const word of ["", "a b", "$HOME", "`id`", "a;b", "~", "*", '"', "ä", "a\nb"]) {
    assertEquals(shellWord(word), `'${word}'`);
  }
  assertEquals(shellWord("it's"), "'it'\\''s'");
});

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
