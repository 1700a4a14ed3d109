/** The storage that a path leads to. */

import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { Dataset } from "../../../data/mod.ts";
import { openIterator } from "../../../data/dataset_iterator.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { ConfinedHost } from "../../../platform/sandbox/host/confined_host.ts";
import { DenoNewFiles } from "../../../platform/storage/new_files.ts";
import { StorageFiles } from "../../../platform/storage/storage.ts";
import { RangeServer } from "./range_server.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

async function failure(work: () => Promise<unknown>, code: LeatErrorCode): Promise<string> {
  const error = await assertRejects(work, LeatError);
  assertEquals(error.code, code, error.message);
  return error.message;
}

Deno.test("plain paths and file: URLs lead to this machine", async () => {
  await using temporary = await TempFolder.make();
  const folder = temporary.path;
  for (const name of ["a b.txt", "é.txt", "100%.txt"]) {
    await Deno.writeTextFile(`${folder}/${name}`, name);
  }
  const files = new StorageFiles();
  const urls = await files.list(`file://${folder}/*.txt`);
  assertEquals(
    urls,
    ["100%25.txt", "a%20b.txt", "%C3%A9.txt"].map((name) => `file://${folder}/${name}`).sort(),
  );
  const paths = await files.list(`${folder}/*.txt`);
  assertEquals(paths.length, 3);
  for (const path of [...urls, ...paths]) {
    const file = await files.open(path);
    assertEquals(await file.read(new Uint8Array(100), 0), file.sizeBytes);
    file.close();
  }
  assertEquals(await files.list(`file://${folder}/{a,é}*.txt`), [urls[0], urls[2]]);
  await failure(() => files.open(`file://${folder}/100%.txt`), "invalid_argument");
  await failure(() => files.open(`file://${folder}/none`), "not_found");
});

Deno.test("StorageFiles.list of a file: URL gives names that begin as the pattern does, and can be opened", async () => {
  const names = { "my data/{x/50%.txt": "", "my data/{x/deep er/é#?.txt": "" };
  await using folder = await TempFolder.make(names);
  const files = new StorageFiles();
  const path = `${folder.path}/my data`;
  for (const start of ["file://", "file:", "FILE:///.", "file://localhost"]) {
    for (const root of [`${start}${path}`, `${start}${path.replace(" ", "%20")}/`]) {
      const urls = await files.list(`${root}/\\{x/**/*.txt`);
      assertEquals(urls, ["50%25.txt", "deep%20er/%C3%A9%23%3F.txt"].map((x) => `${root}/{x/${x}`));
      for (const url of urls) {
        (await files.open(url)).close();
        assertEquals(await files.list(url.replace("{", "\\{")), [url]);
      }
    }
  }
});

Deno.test("StorageFiles.list takes no percent-encoded character of a file: URL for a wildcard", async () => {
  const names = ["[x]", "x", "a*", "ab", "a\\b", "{a,b}"];
  await using folder = await TempFolder.make(Object.fromEntries(names.map((name) => [name, ""])));
  const files = new StorageFiles();
  for (const name of names) {
    const encoded = encodeURIComponent(name).replace("*", "%2A");
    assertEquals(await files.list(`file://${folder.path}/${encoded}`), [
      `file://${folder.path}/${encoded}`,
    ]);
    const listed = `file://${folder.path}/${encodeURI(name)}`;
    assertEquals(await files.list(`file://${folder.path}/{${encoded},none*}`), [listed]);
  }
});

Deno.test("a file: URL with one slash is written, read and listed as the same file", async () => {
  await using folder = await TempFolder.make();
  const url = `file:${folder.path}/file`;
  const file = await new DenoNewFiles().create(url);
  file.append(new Uint8Array(7));
  await file.commit();
  const opened = await new StorageFiles().open(url);
  assertEquals(opened.sizeBytes, 7);
  opened.close();
  assertEquals(await new StorageFiles().list(`file:${folder.path}/*`), [url]);
  for (
    const work of [
      () => new StorageFiles().open("file:data"),
      () => new StorageFiles().list("file:*"),
      () => new DenoNewFiles().create("file:data"),
    ]
  ) {
    assertStringIncludes(await failure(work, "invalid_argument"), "write file:///path");
  }
});

Deno.test("a file: URL of another host is refused with the way to write it", async () => {
  const url = "file://127.0.0.1/etc/hostname";
  const files = new StorageFiles();
  const unasked = () => Promise.reject(new Error("nothing is asked for a local file"));
  const confined = new ConfinedHost(unasked, unasked, undefined as never, ["/etc"], 0);
  const works = [
    () => files.open(url),
    () => files.list(url),
    () => new DenoNewFiles().create(url),
    () => confined.files.open(url),
  ];
  for (const work of works) {
    const message = await failure(work, "invalid_argument");
    assertStringIncludes(message, `${url} names no file of this machine`);
    assertStringIncludes(message, "write file:///path, without a host");
  }
});

Deno.test("an unknown scheme is refused with the known ones", async () => {
  for (
    const work of [
      (path: string) => new StorageFiles().open(path),
      (path: string) => new StorageFiles().list(path),
    ]
  ) {
    const message = await failure(() => work("hdfs://host/file"), "unimplemented");
    assertStringIncludes(message, "hdfs://host/file");
    assertStringIncludes(message, "s3:");
  }
});

Deno.test("a misspelt URL is refused, not read or written as a local file, and tells no secret", async () => {
  for (const url of ["https:user:SECRET@host/a", "ht\ttps://user:SECRET@host/a", "http:a?SECRET"]) {
    for (
      const work of [
        () => new StorageFiles().open(url),
        () => new StorageFiles().list(url),
        () => new DenoNewFiles().create(url),
      ]
    ) {
      const message = await failure(work, "invalid_argument");
      assertStringIncludes(message, "scheme://host/path");
      assert(!message.includes("SECRET"), message);
    }
  }
  await failure(() => new StorageFiles().open("./https:user:name@host"), "not_found");
});

Deno.test("http: URLs cannot be listed by pattern", async () => {
  await using server = new RangeServer(new TextEncoder().encode("one\ntwo"));
  server.fault = (request) =>
    request.url.endsWith("none") ? new Response("", { status: 404 }) : undefined;
  const files = new StorageFiles();
  for (const pattern of ["*.txt", "a/**", "{a,b}.txt", "[ab].txt"]) {
    const message = await failure(() => files.list(`${server.origin}/${pattern}`), "unimplemented");
    assertStringIncludes(message, "one by one");
  }
  const url = `${server.origin}/a.txt?version=*`;
  assertEquals(await files.list(url), [url]);
  assertEquals(await files.list(`${server.origin}/none`), []);
  await failure(() => files.open("http://[x"), "invalid_argument");
});

Deno.test("datasets read compressed files by URL", async () => {
  const gzip = new Blob(["first\nsecond\n"]).stream().pipeThrough(new CompressionStream("gzip"));
  await using server = new RangeServer(new Uint8Array(await new Response(gzip).arrayBuffer()));
  const lines = Dataset.textLines(`${server.origin}/lines.txt.gz`, { compression: "gzip" });
  await using iterator = openIterator(lines.node, { host: new DenoHost() });
  assertEquals(await Array.fromAsync(iterator), ["first", "second"]);
});

Deno.test("StorageFiles sends no header whose value is undefined", async () => {
  await using server = new RangeServer(new TextEncoder().encode("one"));
  const sent: (string | null)[] = [];
  server.fault = ({ headers }) => {
    sent.push(headers.get("authorization"), headers.get("x-key"));
    return undefined;
  };
  // As a program without type checks may give it.
  const named = { authorization: undefined, "x-key": "key" } as unknown as Record<string, string>;
  const files = new StorageFiles({ http: { headers: { [server.origin]: named } } });
  (await files.open(`${server.origin}/a.txt`)).close();
  assertEquals(sent, [null, "key"]);
});

Deno.test("DenoHost refuses misspelt and malformed options of its storage, without their texts", () => {
  const text = "sesame";
  const headersOf = (origin: string, authorization: unknown) => ({
    storage: { http: { headers: { [origin]: { authorization } } } },
  });
  const refused: readonly [options: object, message: string][] = [
    [{ storge: {} }, 'DenoHost: there is no option "storge"'],
    [{ storage: text }, "storage must be an object of options"],
    [{ storage: { s3: text } }, "storage.s3 must be an object of options"],
    [{ storage: { gs: [text] } }, "storage.gs must be an object of options"],
    [{ storage: { http: text } }, "storage.http must be an object of options"],
    [{ storage: { S3: {} } }, 'storage: there is no option "S3"'],
    [{ storage: { s3: { accesKeyId: text } } }, 'storage.s3: there is no option "accesKeyId"'],
    [{ storage: { s3: { endPoint: text } } }, 'storage.s3: there is no option "endPoint"'],
    [{ storage: { s3: { addressing: "paths" } } }, 'addressing must be "path" or "host"'],
    [{ storage: { s3: { anonymous: "no" } } }, "storage.s3: anonymous must be a boolean"],
    [{ storage: { s3: { secretAccessKey: [text] } } }, "secretAccessKey must be a non-empty"],
    [{ storage: { gs: { region: 3 } } }, "storage.gs: region must be a non-empty string"],
    [{ storage: { http: { header: text } } }, 'storage.http: there is no option "header"'],
    [{ storage: { http: { headers: { "http://a": text } } } }, "headers must be an object"],
    [
      headersOf("a", "b"),
      'storage.http: headers are given per origin, such as "https://host", not for "a"',
    ],
    [headersOf("ftp://a", "b"), 'not for "ftp://a"'],
    [headersOf("http://a/path", "b"), 'not for "http://a/path"'],
    [headersOf(`http://a/?${text}`, "b"), "headers are given per origin"],
    [headersOf(`http://${text}@a`, "b"), "headers are given per origin"],
    [headersOf("http://a", `${text}\nb`), 'headers of http://a: "authorization" must have'],
    [
      { storage: { http: { headers: { "http://a": { Range: text } } } } },
      'headers of http://a must not have "Range"',
    ],
    [headersOf("http://a", [text]), 'headers of http://a: "authorization" must have'],
    [
      { storage: { http: { headers: { "http://a": {}, "http://A:80/": {} } } } },
      "headers of http://a are given twice; join them",
    ],
    [{ storage: { requests: { attempsMax: 1 } } }, 'there is no option "attempsMax"'],
  ];
  for (const [options, message] of refused) {
    const error = assertThrows(() => new DenoHost(options), LeatError, message);
    assertEquals(error.code, "invalid_argument");
    assert(!error.message.includes(text), error.message);
  }
});
