/** Files behind URLs: a real web server on loopback, with every relevant failure. */

import {
  assert,
  assertEquals,
  assertLess,
  assertRejects,
  assertStringIncludes,
} from "../../assert.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { ByteReader } from "../../../data/formats/byte_reader.ts";
import type { OpenFile } from "../../../data/host.ts";
import {
  FarFile,
  FIRST_RANGE_BYTES,
  JUMP_RANGE_BYTES,
  KEPT_BYTES_MAX,
} from "../../../platform/storage/far_file.ts";
import { FarObject, WHOLE_OBJECT_BYTES_MAX } from "../../../platform/storage/far_object.ts";
import { HttpClient, refusalOf } from "../../../platform/storage/http_client.ts";
import type { RetryTiming } from "../../../platform/storage/retries.ts";
import { StorageFiles, type StorageOptions } from "../../../platform/storage/storage.ts";
import { turn } from "../../data/lib/collect.ts";
import { freePort } from "../../lib/free_port.ts";
import { PATIENCE_MS } from "../../lib/until.ts";
import { noise, RangeServer, silence } from "./range_server.ts";

const MIB = 1024 * 1024;

/** Waits that pass at once, recorded. */
class Waits implements RetryTiming {
  readonly ms: number[] = [];

  sleep(ms: number): Promise<void> {
    this.ms.push(ms);
    return Promise.resolve();
  }

  random(): number {
    return 1;
  }
}

/** A slow machine is no silent server: no further request is counted unless a test wants it. */
function filesOf(requests: StorageOptions["requests"] = {}, timing: RetryTiming = new Waits()) {
  return new StorageFiles({ requests: { timeoutMs: PATIENCE_MS, ...requests } }, timing);
}

/** `count` bytes from `offset` on, in as many reads as needed. */
async function readAt(file: OpenFile, offset: number, count: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count;) {
    const read = await file.read(bytes.subarray(at), offset + at);
    if (read === 0) return bytes.slice(0, at);
    at += read;
  }
  return bytes;
}

async function readAll(file: OpenFile): Promise<Uint8Array> {
  return await readAt(file, 0, file.sizeBytes);
}

async function failure(work: () => Promise<unknown>, code: LeatErrorCode): Promise<string> {
  const error = await assertRejects(work, LeatError);
  assertEquals(error.code, code, error.message);
  return error.message;
}

Deno.test("a far file read in order uses few ranges without overlap, and equals its bytes", async () => {
  const contents = noise(20 * MIB + 17);
  await using server = new RangeServer(contents);
  const file = await filesOf().open(`${server.origin}/file`);
  assertEquals(file.sizeBytes, contents.length);
  const reader = new ByteReader("file", file);
  const bytes = new Uint8Array(contents.length);
  assertEquals(await reader.takeInto(bytes), contents.length);
  assert(Buffer.compare(bytes, contents) === 0);
  reader.close();
  const starts = [0, 1, 3, 7, 15];
  const stops = [1, 3, 7, 15, 20 + 17 / MIB];
  const ranges = starts.map((start, i) => `bytes=${start * MIB}-${stops[i]! * MIB - 1}`);
  assertEquals(server.ranges.sort(), ranges.sort()); // two are on their way at once
});

Deno.test("a small far file needs one request", async () => {
  await using server = new RangeServer(noise(1000));
  const files = filesOf();
  const file = await files.open(`${server.origin}/file`);
  assertEquals(await readAll(file), server.contents);
  assertEquals(await readAt(file, 900, 100), server.contents.slice(900));
  assertEquals(await file.read(new Uint8Array(1), 1000), 0);
  file.close();
  assertEquals(server.ranges.length, 1);
});

Deno.test("FarFile has the tag that the server gives its contents", async () => {
  await using server = new RangeServer(noise(10));
  const file = await filesOf().open(`${server.origin}/file`);
  assertEquals(file.tag, server.etag);
  file.close();
});

Deno.test("an empty far file has no bytes", async () => {
  await using server = new RangeServer(noise(0));
  const file = await filesOf().open(`${server.origin}/file`);
  assertEquals([file.sizeBytes, await file.read(new Uint8Array(8), 0)], [0, 0]);
  file.close();
});

Deno.test("reading a far file's footer and the part before it needs one request", async () => {
  await using server = new RangeServer(noise(5 * MIB));
  const file = await filesOf().open(`${server.origin}/file`);
  const size = file.sizeBytes;
  assertEquals(await readAt(file, size - 8, 8), server.contents.slice(-8));
  assertEquals(await readAt(file, size - 5000, 4992), server.contents.slice(-5000, -8));
  file.close();
  assertEquals(server.ranges.slice(1), [`bytes=${size - JUMP_RANGE_BYTES}-${size - 1}`]);
});

Deno.test("concurrent reads of a far file get their own bytes", async () => {
  const contents = noise(12 * MIB);
  await using server = new RangeServer(contents);
  const file = await filesOf().open(`${server.origin}/file`);
  const offsets = [11 * MIB, 2 * MIB, 7 * MIB + 5, 0, 4 * MIB, 9 * MIB];
  const parts = await Promise.all(offsets.map((offset) => readAt(file, offset, 400_000)));
  for (const [i, offset] of offsets.entries()) {
    assert(Buffer.compare(parts[i]!, contents.subarray(offset, offset + 400_000)) === 0);
  }
  file.close();
});

Deno.test("a transient failure is retried with growing waits", async () => {
  await using server = new RangeServer(noise(1000));
  server.fault = (_, number) => number <= 3 ? new Response("busy", { status: 503 }) : undefined;
  const waits = new Waits();
  const file = await filesOf({}, waits).open(`${server.origin}/file`);
  assertEquals(await readAll(file), server.contents);
  file.close();
  assertEquals(waits.ms, [200, 400, 800]);
});

Deno.test("a retry waits as long as the server asks for", async () => {
  await using server = new RangeServer(noise(1000));
  const headers = { "retry-after": "3" };
  server.fault = (_, number) =>
    number === 1 ? new Response("", { status: 429, headers }) : undefined;
  const waits = new Waits();
  (await filesOf({}, waits).open(`${server.origin}/file`)).close();
  assertEquals(waits.ms, [3000]);
});

Deno.test("a retry waits until the date that the server asks for, by the server's clock", async () => {
  await using server = new RangeServer(noise(1000));
  const date = "Wed, 21 Oct 2015 07:28:00 GMT";
  const dates = ["Wed, 21 Oct 2015 07:28:09 GMT", "Wed, 21 Oct 2015 07:27:00 GMT", "soon"];
  server.fault = (_, number) => {
    const requested = dates[number - 1];
    if (requested === undefined) return undefined;
    return new Response("", { status: 503, headers: { date, "retry-after": requested } });
  };
  const waits = new Waits();
  (await filesOf({ backoffMs: 1 }, waits).open(`${server.origin}/file`)).close();
  assertEquals(waits.ms, [9000, 2, 4]);
});

Deno.test("a server that keeps failing is abandoned", async () => {
  await using server = new RangeServer(noise(1000));
  server.fault = () => new Response("out of order", { status: 500 });
  const open = () => filesOf({ attemptsMax: 4 }).open(`${server.origin}/file`);
  const message = await failure(open, "unavailable");
  assertStringIncludes(message, "500 (out of order)");
  assertStringIncludes(message, "after 4 attempts");
  assertEquals(server.ranges.length, 4);
});

Deno.test("a request for a broken body continues where it broke", async () => {
  await using server = new RangeServer(noise(600_000));
  server.fault = (request, number) => number <= 4 ? server.cut(request, 100_000) : undefined;
  // More cuts than attempts: an attempt with progress is no failure.
  const file = await filesOf({ attemptsMax: 2 }).open(`${server.origin}/file`);
  assertEquals(await readAll(file), server.contents);
  file.close();
  const starts = server.ranges.map((range) => Number(/=(\d+)/.exec(range)![1]));
  assertEquals(starts, [0, 100_000, 200_000, 300_000, 400_000]);
});

Deno.test("a server that stalls, before or within a body, gets another request", async () => {
  await using server = new RangeServer(noise(600_000));
  server.fault = (request, number) => {
    if (number === 1) return silence(request);
    return number === 2 ? server.cut(request, 100_000, "silence") : undefined;
  };
  // A paused machine is as silent as a server: that costs attempts.
  const file = await filesOf({ timeoutMs: 200, attemptsMax: 100 }).open(`${server.origin}/file`);
  assertEquals(await readAll(file), server.contents);
  file.close();
  assert(server.ranges.length >= 3);
});

Deno.test("a far file fails if a later answer without length and ETag has another number of bytes", async () => {
  for (const size of [4 * MIB - 1, 4 * MIB + 1]) {
    await using server = new RangeServer(noise(4 * MIB));
    server.fault = (request, number) => {
      if (number > 1) return new Response(new Blob([noise(size)]).stream());
      const { body, status, headers } = server.answer(request);
      headers.delete("etag");
      return new Response(body, { status, headers });
    };
    const file = await filesOf().open(`${server.origin}/file`);
    const message = await failure(() => readAt(file, 3 * MIB, 8), "failed_precondition");
    assertStringIncludes(message, `now ${size} bytes`);
    file.close();
  }
});

Deno.test("a far file that changes while it is read fails", async () => {
  const changes: ((server: RangeServer) => void)[] = [
    (server) => server.etag = '"second"',
    (server) => server.contents = noise(5 * MIB),
    (server) => server.contents = noise(10),
  ];
  for (const change of changes) {
    await using server = new RangeServer(noise(4 * MIB));
    const file = await filesOf().open(`${server.origin}/file`);
    change(server);
    const message = await failure(() => readAt(file, 3 * MIB, 8), "failed_precondition");
    assertStringIncludes(message, "has changed since it was opened");
    file.close();
  }
});

Deno.test("a server that ignores ranges is read whole", async () => {
  const contents = noise(3 * MIB);
  const streamed = () => new Response(new Blob([contents]).stream());
  for (const answer of [() => new Response(contents), streamed]) {
    await using server = new RangeServer(contents);
    server.fault = answer;
    const file = await filesOf().open(`${server.origin}/file`);
    assertEquals(file.sizeBytes, contents.length);
    assert(Buffer.compare(await readAll(file), contents) === 0);
    assertEquals(await readAt(file, MIB, 10), contents.slice(MIB, MIB + 10));
    file.close();
    assertEquals(server.ranges.length, 1);
  }
});

/** Serves one answer of chunks of one byte, which `Deno.serve` would join. */
async function serveBytewise(listener: Deno.Listener, count: number): Promise<void> {
  using connection = await listener.accept();
  await connection.read(new Uint8Array(4_096));
  const answer = ReadableStream.from([
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    "1\r\na\r\n".repeat(count),
    "0\r\n\r\n",
  ]);
  await answer.pipeThrough(new TextEncoderStream()).pipeTo(connection.writable);
}

Deno.test("a far file that arrives byte by byte takes memory for its bytes, not for each arrival", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const served = serveBytewise(listener, 20_000);
  const before = Deno.memoryUsage().external;
  const file = await filesOf().open(`http://127.0.0.1:${listener.addr.port}/file`);
  // For each arrival that is kept, Deno keeps a buffer of 64 KiB: 1,250 MiB.
  assertLess(Deno.memoryUsage().external - before, 500 * MIB);
  assertEquals(new TextDecoder().decode(await readAll(file)), "a".repeat(20_000));
  file.close();
  await served;
});

Deno.test("FarFile keeps no more of an object than a range, if later answers have all of it", async () => {
  const contents = noise(3 * MIB);
  const headers = { etag: '"first"' };
  const streamed = () => new Response(new Blob([contents]).stream(), { headers });
  for (const answer of [() => new Response(contents, { headers }), streamed]) {
    await using server = new RangeServer(contents);
    server.fault = (_, number) => number === 1 ? undefined : answer();
    const file = await filesOf().open(`${server.origin}/file`);
    // If the second answer was kept whole, the others would not be requested.
    const offsets = [1.25, 1.75, 2.25, 2.75].map((at) => at * MIB);
    for (const offset of offsets) {
      assertEquals(await readAt(file, offset, 10), contents.slice(offset, offset + 10));
    }
    file.close();
    assertEquals(server.ranges.length, 1 + offsets.length);
  }
});

Deno.test("a retry skips the bytes it has if the server ignores ranges", async () => {
  await using server = new RangeServer(noise(300_000));
  server.fault = (_, number) => {
    const part = number === 1 ? server.contents.slice(0, 120_000) : server.contents;
    return new Response(new Blob([part]).stream(), { headers: { "content-length": "300000" } });
  };
  const file = await filesOf().open(`${server.origin}/file`);
  assert(Buffer.compare(await readAll(file), server.contents) === 0);
  file.close();
  assertEquals(server.ranges.length, 2);
});

Deno.test("FarFile requests a whole object once for each failure, and keeps what has arrived", async () => {
  await using server = new RangeServer(noise(3 * MIB));
  const headers = { "content-length": String(3 * MIB) };
  server.fault = (_, number) => {
    const part = server.contents.slice(0, Math.min(number, 3) * MIB);
    return new Response(new Blob([part]).stream(), { headers });
  };
  const file = await filesOf({ attemptsMax: 1 }).open(`${server.origin}/file`);
  for (const missing of [MIB, 2 * MIB]) {
    await failure(() => readAt(file, missing, 1), "unavailable");
    assertEquals(await readAt(file, missing - 1, 1), server.contents.slice(missing - 1, missing));
  }
  assert(Buffer.compare(await readAll(file), server.contents) === 0);
  file.close();
  assertEquals(server.ranges, [
    "bytes=0-1048575",
    "bytes=1048576-3145727",
    "bytes=2097152-3145727",
  ]);
});

Deno.test("a server that ignores ranges of a file too large for memory is refused", async () => {
  await using server = new RangeServer(noise(10));
  const headers = { "content-length": String(WHOLE_OBJECT_BYTES_MAX + 1) };
  server.fault = () => new Response(new Blob([noise(10)]).stream(), { headers });
  const open = () => filesOf().open(`${server.origin}/file`);
  assertStringIncludes(await failure(open, "failed_precondition"), "ignores ranges");
});

Deno.test("a server's refusal becomes an error with its code, at once, without secrets", async () => {
  const cases: [status: number, code: LeatErrorCode][] = [
    [400, "failed_precondition"],
    [401, "permission_denied"],
    [403, "permission_denied"],
    [404, "not_found"],
    [410, "not_found"],
    [501, "unimplemented"],
  ];
  for (const [status, code] of cases) {
    await using server = new RangeServer(noise(10));
    server.fault = () => new Response("no", { status });
    const url = `${server.origin}/file?signature=secret`.replace("//", "//user:secret@");
    const message = await failure(() => filesOf().open(url), code);
    assertStringIncludes(message, `${server.origin}/file`);
    assert(!message.includes("secret"), message);
    assertEquals(server.ranges.length, 1);
  }
});

Deno.test("a server's refusal does not tell the headers that it was sent", async () => {
  await using server = new RangeServer(noise(10));
  server.fault = ({ headers }) =>
    new Response(`No: ${headers.get("authorization")}, ${headers.get("x-key")}`, { status: 403 });
  for (
    const authorization of [
      "Bearer secret-token",
      "AWS4-HMAC-SHA256 Credential=secret-id/20260101/here/s3, Signature=secret-signature",
    ]
  ) {
    const headers = { [server.origin]: { authorization, "x-key": "secret-key" } };
    const files = new StorageFiles({ http: { headers } }, new Waits());
    const message = await failure(() => files.open(`${server.origin}/file`), "permission_denied");
    assertStringIncludes(message, "the server answered 403 (No: …");
    assert(!message.includes("secret"), message);
  }
});

/** Answers every request with these bytes, which may be no HTTP, and closes the connection. */
function rawServer(answer: string): { origin: string } & AsyncDisposable {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const serving = (async () => {
    for await (const connection of listener) {
      await connection.read(new Uint8Array(4096));
      await connection.write(new TextEncoder().encode(answer));
      connection.close();
    }
  })();
  return {
    origin: `http://127.0.0.1:${listener.addr.port}`,
    [Symbol.asyncDispose]: () => {
      listener.close();
      return serving;
    },
  };
}

/** What a program prints of the error of opening a URL, and what it sends to others. */
async function told(url: string): Promise<string> {
  const error = await assertRejects(() => filesOf({ attemptsMax: 1 }).open(url), LeatError);
  return `${Deno.inspect(error)} ${JSON.stringify(error.toWire())}`;
}

Deno.test("an error tells no secret of a URL, also not of a redirect's target", async () => {
  await using malformed = rawServer("HTTP/1.1 200 OK\r\nno header\r\n\r\n");
  const refusing = closedOrigin();
  await using server = new RangeServer(noise(10));
  const secret = (origin: string) =>
    `${origin}/file(1)?sig=verysecret&t=verysecret`.replace("//", "//user:verysecret@");
  for (const target of [malformed.origin, refusing]) {
    const direct = await told(secret(target));
    assertStringIncludes(direct, `${target}/file(1)?…`);
    assert(!direct.includes("verysecret"), direct);
    server.fault = () => new Response(null, { status: 302, headers: { location: secret(target) } });
    const redirected = await told(`${server.origin}/file`);
    assert(!redirected.includes("verysecret"), redirected);
  }
  // A page that repeats what was asked for.
  server.fault = ({ url }) => new Response(`no ${url} \x1b[2J`, { status: 404 });
  const repeated = await told(secret(server.origin));
  assert(!repeated.includes("verysecret") && !repeated.includes("\x1b"), repeated);
  // With escapes of HTML, JSON or URLs.
  for (const [plus, slash] of [["+", "/"], ["&#43;", "&#x2F;"], ["+", "\\/"], ["%2b", "%2f"]]) {
    server.fault = () => new Response(`no very${plus}SECRET1${slash}secret2`, { status: 403 });
    const escaped = await told(`${server.origin}/file?sig=very%2BSECRET1%2Fsecret2`);
    assertStringIncludes(escaped, "(no ");
    assert(!/secret[12]/i.test(escaped), escaped);
  }
});

Deno.test("a server that sends another range is refused", async () => {
  await using server = new RangeServer(noise(10));
  const huge = 10n ** 20n;
  for (const range of ["5-9/10", `0-${huge}/${huge}`, `0-9/${huge}`, `0-${2 ** 40}/${2 ** 41}`]) {
    const headers = { "content-range": `bytes ${range}` };
    server.fault = () => new Response(noise(5), { status: 206, headers });
    const open = () => filesOf().open(`${server.origin}/file`);
    assertStringIncludes(await failure(open, "failed_precondition"), `bytes ${range}`);
  }
});

Deno.test("a host that cannot be reached is unavailable", async () => {
  const origin = closedOrigin();
  const open = () => filesOf({ attemptsMax: 2 }).open(`${origin}/file?signature=secret`);
  const message = await failure(open, "unavailable");
  assertStringIncludes(message, `${origin}/file`);
  assert(!message.includes("secret"), message);
});

Deno.test("close() ends a far file's requests at once", async () => {
  await using server = new RangeServer(noise(4 * MIB));
  const ended = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  server.fault = (request, number) => {
    if (number === 1) return undefined;
    asked.resolve();
    return silence(request).finally(() => ended.resolve());
  };
  const file = await filesOf().open(`${server.origin}/file`);
  const reading = file.read(new Uint8Array(8), 3 * MIB) as Promise<number>;
  const told = failure(() => reading, "cancelled");
  await asked.promise;
  file.close();
  file.close();
  await told;
  await ended.promise;
  const error = await assertRejects(async () => await file.read(new Uint8Array(8), 0), LeatError);
  assertEquals(error.code, "failed_precondition");
});

Deno.test("a read after a failure sends another request", async () => {
  await using server = new RangeServer(noise(4 * MIB));
  const file = await filesOf({ attemptsMax: 1 }).open(`${server.origin}/file`);
  server.fault = () => new Response("", { status: 500 });
  await failure(() => readAt(file, 3 * MIB, 8), "unavailable");
  server.fault = () => undefined;
  assertEquals(await readAt(file, 3 * MIB, 8), server.contents.slice(3 * MIB, 3 * MIB + 8));
  file.close();
});

Deno.test("a read of a range that failed when it was read ahead sends another request", async () => {
  await using server = new RangeServer(noise(3 * MIB));
  server.fault = (_, number) => number === 2 ? new Response("busy", { status: 503 }) : undefined;
  const refused = Promise.withResolvers<void>();
  const name = `${server.origin}/file`;
  const object = new FarObject(new HttpClient({ attemptsMax: 1, timeoutMs: PATIENCE_MS }), {
    name,
    request: (range) => ({ name, url: name, headers: { range } }),
    refusal: async (request, answer) => {
      const error = refusalOf(request, answer, await answer.reason());
      refused.resolve();
      return error;
    },
  });
  const file = await FarFile.open(object);
  await readAt(file, 0, 8); // and the next range is requested
  await refused.promise;
  await turn(); // its window has the error
  const wanted = server.contents.slice(FIRST_RANGE_BYTES, FIRST_RANGE_BYTES + 8);
  assertEquals(await readAt(file, FIRST_RANGE_BYTES, 8), wanted);
  assertEquals(server.ranges.length, 3);
  file.close();
});

Deno.test("a range that the reader has left is cancelled", async () => {
  await using server = new RangeServer(noise(30 * MIB));
  const asked = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  server.fault = (request, number) => {
    if (number !== 2) return undefined;
    asked.resolve();
    return silence(request).finally(() => ended.resolve());
  };
  const file = await filesOf({ timeoutMs: 1e9 }).open(`${server.origin}/file`);
  await readAt(file, 0, 8); // and the next range is asked for
  await asked.promise;
  for (const offset of [4, 13, 22]) await readAt(file, offset * MIB, 8 * MIB);
  await ended.promise;
  file.close();
});

Deno.test("FarFile requests bytes once if places are read in turn, whatever their number", async () => {
  const contents = noise(24 * MIB);
  for (const places of [2, 6, 16]) {
    await using server = new RangeServer(contents);
    const file = await filesOf().open(`${server.origin}/file`);
    const length = contents.length / places;
    for (let at = 0; at < length; at += MIB / 16) {
      for (let place = places - 1; place >= 0; place--) {
        const offset = place * length + at;
        const bytes = await readAt(file, offset, MIB / 16);
        assert(Buffer.compare(bytes, contents.subarray(offset, offset + bytes.length)) === 0);
      }
    }
    file.close();
    assertLess(server.requestedBytes, 1.5 * contents.length, `${places} places`);
    assertLess(server.ranges.length, 150, `${places} places`);
  }
});

Deno.test("FarFile drops the least recently used range beyond KEPT_BYTES_MAX", async () => {
  await using server = new RangeServer(noise(40 * MIB));
  const file = await filesOf().open(`${server.origin}/file`);
  const read = async (offset: number) => {
    const before = server.ranges.length;
    await readAt(file, offset * MIB, KEPT_BYTES_MAX / 4);
    return server.ranges.length - before;
  };
  const requests: number[] = [];
  for (const offset of [5, 10, 15, 20, 10, 25, 10, 5]) requests.push(await read(offset));
  file.close();
  assertEquals(requests, [1, 1, 1, 1, 0, 1, 0, 1]);
});

Deno.test("FarFile requests what it is told to expect, once and nothing else", async () => {
  await using server = new RangeServer(noise(40 * MIB));
  const file = await filesOf().open(`${server.origin}/file`, undefined, 1024);
  const step = 700_000;
  const parts = [[3 * MIB, 13 * MIB + 5], [20 * MIB, 21 * MIB]] as const;
  for (const [start, stop] of parts) file.expect!(start, stop);
  for (const [start, stop] of parts) {
    for (let at = start; at < stop; at += step) {
      const wanted = server.contents.subarray(at, Math.min(at + step, stop));
      assert(Buffer.compare(await readAt(file, at, wanted.length), wanted) === 0);
    }
  }
  assertEquals(server.requestedBytes, 1024 + 11 * MIB + 5);
  await readAt(file, 21 * MIB, 8); // the rest of a line, for example
  assertEquals(server.ranges.at(-1), `bytes=${21 * MIB}-${21 * MIB + JUMP_RANGE_BYTES - 1}`);
  file.close();
});

Deno.test("FarFile requests no bytes near the end that it has", async () => {
  await using server = new RangeServer(noise(2 * MIB));
  const file = await filesOf().open(`${server.origin}/file`, undefined, 1024);
  await readAt(file, 1_700_000, 8);
  await readAt(file, 2 * MIB - 8, 8);
  file.close();
  const stop = 1_700_000 + JUMP_RANGE_BYTES;
  assertEquals(server.ranges.at(-1), `bytes=${stop}-${2 * MIB - 1}`);
});

Deno.test("FarFile covers every read, whatever its ranges are next to", async () => {
  const contents = noise(2 * MIB);
  await using server = new RangeServer(contents);
  const file = await filesOf().open(`${server.origin}/file`, undefined, 1024);
  for (let i = 0; i < 300; i++) {
    // Primes: offsets and lengths in no order.
    const offset = (i * 1_299_709) % contents.length;
    const wanted = contents.subarray(offset, offset + (i * 7_919) % 100_000);
    assert(Buffer.compare(await readAt(file, offset, wanted.length), wanted) === 0, `${offset}`);
  }
  file.close();
  assertLess(server.requestedBytes, 2 * contents.length);
});

Deno.test("FarFile reads nothing ahead of reads that are far apart", async () => {
  await using server = new RangeServer(noise(8 * MIB));
  const file = await filesOf().open(`${server.origin}/file`);
  await readAt(file, 0, 8); // and the next range is asked for
  for (const offset of [1.5, 2, 2.5]) await readAt(file, offset * MIB, 8);
  file.close();
  assertEquals(server.ranges.length, 2);
});

Deno.test("FarFile reads ahead of a reader in order that leaves out much", async () => {
  await using server = new RangeServer(noise(24 * MIB));
  const file = await filesOf().open(`${server.origin}/file`);
  for (let offset = 0; offset < 24 * MIB; offset += 300_000) await readAt(file, offset, 512);
  file.close();
  // 1, 2, 4, 8 and 8 MiB, and the rest.
  assertEquals(server.ranges.length, 6);
});

Deno.test("a far file closed while bytes arrive releases them", async () => {
  await using server = new RangeServer(noise(20 * MIB));
  const file = await filesOf().open(`${server.origin}/file`);
  await file.read(new Uint8Array(10), 0);
  file.close();
});

Deno.test("open() ends once its signal is aborted: before, within a request, within a wait", async () => {
  await using server = new RangeServer(noise(10));
  const patient = new StorageFiles({
    requests: { timeoutMs: PATIENCE_MS, backoffMs: 1e9, backoffMsMax: 1e9 },
  });
  const open = (signal: AbortSignal) => () => patient.open(`${server.origin}/file`, signal);
  const amidRequest = new AbortController();
  server.fault = (request) => {
    amidRequest.abort();
    return silence(request);
  };
  await failure(open(amidRequest.signal), "cancelled");
  const amidWait = new AbortController();
  server.fault = () => {
    setTimeout(() => amidWait.abort(), 0);
    return new Response("busy", { status: 503 });
  };
  await failure(open(amidWait.signal), "cancelled");
  assertEquals(server.ranges.length, 2);
  await failure(open(AbortSignal.abort()), "cancelled");
});

Deno.test("headers go only to their origin, and redirects are followed", async () => {
  await using far = new RangeServer(noise(10));
  await using near = new RangeServer(noise(0));
  const seen: unknown[] = [];
  const see = ({ url, headers }: Request) => {
    const { pathname } = new URL(url);
    seen.push([pathname, headers.get("authorization"), headers.get("x-api-key")]);
    return pathname;
  };
  near.fault = (request) => {
    const target = see(request) === "/file" ? "/moved?again" : `${far.origin}/file`;
    return new Response("moved", { status: 307, headers: { location: target } });
  };
  far.fault = (request) => {
    see(request);
    return undefined;
  };
  const headers = { [near.origin]: { authorization: "Bearer token", "x-api-key": "key" } };
  const requests = { timeoutMs: PATIENCE_MS };
  const file = await new StorageFiles({ http: { headers }, requests }).open(`${near.origin}/file`);
  assertEquals(await readAll(file), far.contents);
  file.close();
  const own = ["Bearer token", "key"];
  assertEquals(seen, [["/file", ...own], ["/moved", ...own], ["/file", null, null]]);
});

Deno.test("a redirect keeps the user and password of a URL, within its origin", async () => {
  await using far = new RangeServer(noise(10));
  await using near = new RangeServer(noise(10));
  const seen: (string | null)[] = [];
  let target = "";
  near.fault = ({ url, headers }) => {
    seen.push(headers.get("authorization"));
    if (!url.endsWith("/file")) return undefined;
    return new Response("moved", { status: 302, headers: { location: target } });
  };
  far.fault = ({ headers }) => {
    seen.push(headers.get("authorization"));
    return undefined;
  };
  const basic = (user: string) => `Basic ${btoa(user)}`;
  const user = basic("user:pass word");
  const other = near.origin.replace("//", "//other:word@");
  const cases = [
    ["/moved", user],
    [`${near.origin}/moved`, user],
    [`${other}/moved`, basic("other:word")],
    [`${far.origin}/moved`, null],
  ] as const;
  for (const [location, expected] of cases) {
    target = location;
    const url = `${near.origin}/file`.replace("//", "//user:pass%20word@");
    (await filesOf({ attemptsMax: 1 }).open(url)).close();
    assertEquals(seen.splice(0), [user, expected], location);
  }
});

Deno.test("redirects that lead nowhere are errors without a retry", async () => {
  await using server = new RangeServer(noise(10));
  const to = (location?: string) => {
    const headers = new Headers(location === undefined ? {} : { location });
    server.fault = () => new Response("moved", { status: 302, headers });
    return failure(() => filesOf().open(`${server.origin}/file`), "failed_precondition");
  };
  for (const location of ["file:///etc/hostname", "data:,text", "http://[x"]) {
    assertStringIncludes(await to(location), "redirects to a URL that is neither http: nor https:");
  }
  assertStringIncludes(await to(), "the server answered 302 (moved)");
  assertEquals(server.ranges.length, 4);
  assertStringIncludes(await to("/file"), "more than 20 redirects");
  assertEquals(server.ranges.length, 25);
});

Deno.test({
  name: "a missing network permission is reported with host and flag",
  permissions: { net: false },
  fn: async () => {
    const open = () => filesOf().open("https://data.example:8443/file");
    const message = await failure(open, "permission_denied");
    assertStringIncludes(message, "--allow-net=data.example:8443");
  },
});

Deno.test("waits between attempts without a limit are no longer than a timer can be", async () => {
  await using server = new RangeServer(noise(10));
  server.fault = (_, number) => number < 4 ? new Response("busy", { status: 503 }) : undefined;
  const waits = new Waits();
  const requests = { backoffMs: 2 ** 30, backoffMsMax: Infinity };
  (await filesOf(requests, waits).open(`${server.origin}/file`)).close();
  assertEquals(waits.ms, [2 ** 30, 2 ** 31 - 1, 2 ** 31 - 1]);
});

Deno.test("requests accept only valid numbers", async () => {
  const wrong = [
    ...[{ attemptsMax: 0 }, { attemptsMax: 1.5 }, { timeoutMs: 0 }, { backoffMs: -1 }],
    // Timers would fire at once.
    ...[{ timeoutMs: 2 ** 31 }, { timeoutMs: Infinity }],
    ...[{ backoffMs: 2 ** 31 }, { backoffMs: NaN }, { backoffMsMax: -1 }, { backoffMsMax: NaN }],
  ];
  for (const requests of wrong) {
    // deno-lint-ignore require-await -- what throws is to reject
    await failure(async () => new StorageFiles({ requests }), "invalid_argument");
  }
});

Deno.test({
  name: "storage gives an undefined option its default",
  permissions: { net: false },
  fn: async () => {
    const absent = undefined as never;
    const requests = { attemptsMax: absent, backoffMs: absent, backoffMsMax: absent };
    const gs = { endpoint: absent, region: absent, anonymous: true };
    const open = () => new StorageFiles({ requests, gs }).open("gs://bucket/key");
    const message = await failure(open, "permission_denied");
    assertStringIncludes(message, "--allow-net=storage.googleapis.com");
  },
});

Deno.test("the first request is of firstBytes, at most FIRST_RANGE_BYTES", async () => {
  await using server = new RangeServer(noise(10));
  for (const firstBytes of [undefined, 100, Number.MAX_SAFE_INTEGER]) {
    (await filesOf().open(`${server.origin}/file`, undefined, firstBytes)).close();
  }
  const most = `bytes=0-${FIRST_RANGE_BYTES - 1}`;
  assertEquals(server.ranges, [most, "bytes=0-99", most]);
});

/** A server that does not run. Deno's `fetch` refuses the port that never has a listener. */
function closedOrigin(): string {
  return `http://127.0.0.1:${freePort()}`;
}
