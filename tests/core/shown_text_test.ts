/** What messages show of texts and URLs of others. */

import { assert, assertEquals } from "../assert.ts";
import fc from "../lib/properties.ts";
import {
  shellWord,
  shownClass,
  shownJson,
  shownLines,
  shownPath,
  shownText,
  shownUrls,
} from "../../core/shown_text.ts";

Deno.test("shownClass names what has no named constructor by its tag", () => {
  class Sample {}
  const shown: [object, string][] = [
    [new Sample(), "Sample"],
    [new Map(), "Map"],
    [(function* () {})(), "Generator"],
    [new (class {})(), "an object"],
    [Object.create(null), "an object"],
  ];
  for (const [value, name] of shown) assertEquals(shownClass(value), name);
});

Deno.test("shownText and shownJson escape marks of direction, and characters that take no place", () => {
  const marks = [0xad, 0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x202e, 0x2066, 0x2069, 0xfeff]
    .concat(0x1160, 0x180e, 0x2060, 0x3164, 0xfff9, 0xe0001, 0xe0041);
  for (const code of marks) {
    const mark = String.fromCodePoint(code);
    const units = mark.split("").map((unit) => unit.charCodeAt(0).toString(16).padStart(4, "0"));
    const escapes = units.map((digits) => `\\u${digits}`).join("");
    assertEquals(
      shownText(`a${mark}b`),
      code < 0x100 ? `a\\x${code.toString(16)}b` : `a${escapes}b`,
    );
    assertEquals(shownJson([`a${mark}b`]), `["a${escapes}b"]`);
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
      ["https://esm.sh/lodash@4/map.js?x=a@b", "https://esm.sh/lodash@4/map.js?…"],
      ["https://[::1]:8/a", "https://[::1]:8/a"],
      ["http://localhost:8000/std@1/x", "http://…@1/x"],
      ["https://user:pass/word@host/a", "https://…@host/a"],
      ["https://user:pass?word@host/a", "https://…"],
      ["https://user:password", "https://…"],
      ["http:///user:password@host/a?b", "http:///host/a?…"],
      ["https:user:password@host/a", "https:host/a"],
      ["http:\\\\user:password@host\\a", "http:\\\\host\\a"],
      [" ht\ntp:\t//user:password@host/a\n", "http://host/a"],
      ["https://host/a?signature=a b", "https://host/a?…"],
      ["s3://id:sec/ret@bucket/a", "s3://…@bucket/a"],
      ["s3://bucket/a@b", "s3://bucket/a@b"],
      ["https://secret:a@b@host/a", "https://host/a"],
      ["ftp://user:secret@host/a?b", "ftp://host/a?…"],
      ["s3://id:secret@bucket/literal?key", "s3://bucket/literal?key"],
      ["gs://bucket/literal#key", "gs://bucket/literal#key"],
      ["/data/what?", "/data/what?"],
      ["file:///data/what?", "file:///data/what?"],
      ["C:/data/a@b", "C:/data/a@b"],
    ] as const
  ) {
    assertEquals(shownPath(path), shown);
    assertEquals(shownPath(shown), shown);
  }
});

Deno.test("shownUrls shows each URL of a text without its secrets", () => {
  assertEquals(
    shownUrls("for url (http://a/b(c)?s=secret): from wss://u:secret@d/e?f, and no://thing."),
    "for url (http://a/b(c)?…): from wss://d/e?…, and no://thing.",
  );
  assertEquals(
    shownUrls("no 'https://a.b/c?s=it's a secret', nor \"https:u:a secret@d/e\" in http:."),
    "no 'https://a.b/c?…', nor \"https:d/e\" in http:.",
  );
});

/** Text around a secret, with all characters that steer the parser of a URL. */
const noise = fc.string({
  unit: fc.constantFrom(..."aZ09/?#@:\\&='`\"%. \t\n;,()[]é"),
  maxLength: 8,
});
const secret = fc.tuple(noise, noise).map(([before, after]) => `${before}SECRET${after}`);

/** URLs, most of them misspelt, with secrets in the password and the query. */
const secretUrl = fc.record({
  gaps: fc.array(fc.constantFrom("", "", "\t", "\r\n"), { maxLength: 8 }),
  scheme: fc.constantFrom("http:", "HTTPS:", "ws:", "wss:", "ftp:"),
  slashes: fc.stringMatching(/^[\\/]{0,3}$/),
  user: fc.constantFrom("user:", "first.last:p", "::", "a@b.c:", "user:12/"),
  password: fc.option(secret),
  host: fc.constantFrom("host", "host.com:80/a/b", "[::1]:8/a", "127.0.0.1/a@b", "host\\a"),
  mark: fc.constantFrom("?", "#", "?a=b@c&d="),
  query: secret,
}).map(({ gaps, scheme, slashes, user, password, host, mark, query }) => {
  const broken = [...scheme].map((char, index) => char + (gaps[index] ?? "")).join("");
  return `${broken}${slashes}${
    password === null ? "" : `${user}${password}@`
  }${host}${mark}${query}`;
});

Deno.test("shownPath and shownUrls tell no secret of a URL, however it is spelt", () => {
  fc.assert(
    fc.property(secretUrl, fc.constantFrom("", "'", '"'), (url, quote) => {
      const shown = shownPath(url);
      assert(!shown.includes("SECRET"), shown);
      assertEquals(shownPath(shown), shown);
      const text = shownUrls(`no ${quote}${url}${quote}, nor ${url}`, url);
      assert(!text.includes("SECRET"), text);
      const href = URL.parse(url)?.href ?? "";
      assert(!shownUrls(`(${href}) "${href}"`).includes("SECRET"), href);
    }),
    { numRuns: 20_000 },
  );
});

Deno.test("shownUrls keeps what follows a URL in JSON", () => {
  for (
    const [text, shown] of [
      [
        `{"url":"https://host.org/a?x=1"} lacks "b", or has "c"`,
        `{"url":"https://host.org/a?…"} lacks "b", or has "c"`,
      ],
      [`["https://host.org/a?x"] is no "URL" here`, `["https://host.org/a?…"] is no "URL" here`],
    ] as const
  ) {
    assertEquals(shownUrls(text), shown);
  }
});

Deno.test("shownUrls searches each part of a text once, however long a quotation is", () => {
  const shown = shownUrls(`no "https://user:a ${"long ".repeat(2_000)}secret@host.org/a" there`);
  assert(!shown.includes("secret"));
  // Searches whose time grew with the square of the length would take hours.
  for (const unit of ["/", "`ws:\u0100 ", '"http:/a ', "'ws://(", "a.a.a://// "]) {
    const text = `"https:${unit.repeat(2_000_000 / unit.length)} `;
    assert(shownUrls(text).startsWith('"https:'));
  }
});
