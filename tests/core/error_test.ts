/** Errors: their codes, what foreign errors become, and their way over the wire. */

import {
  causesOf,
  innermostCause,
  LEAT_ERROR_CODES,
  LeatError,
  WIRE_ERROR_DEPTH_MAX,
  WIRE_MESSAGE_LENGTH_MAX,
  type WireError,
  withShownUrls,
} from "../../core/error.ts";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertStrictEquals,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";
import { circularError } from "../lib/circular_error.ts";

Deno.test("LeatError.from gives names their codes, keeps the cause, and keeps a LeatError as it is", async () => {
  const thrown: [unknown, string][] = [
    [new DOMException("stop", "AbortError"), "cancelled"],
    [new DOMException("late", "TimeoutError"), "deadline_exceeded"],
    [new Deno.errors.NotFound("file"), "not_found"],
    [new Deno.errors.PermissionDenied("file"), "permission_denied"],
    [new Deno.errors.NotCapable("read"), "permission_denied"],
    [new Deno.errors.ConnectionRefused("port"), "unavailable"],
    [new TypeError("x"), "unknown"],
    [new RangeError("Invalid array length"), "unknown"],
    ["text", "unknown"],
    [undefined, "unknown"],
    [Object.create(null), "unknown"],
  ];
  for (const [error, code] of thrown) {
    const made = LeatError.from(error);
    assertEquals(made.code, code);
    assertStrictEquals(made.cause, error);
  }
  assertEquals(LeatError.from(new TypeError("x"), "internal").code, "internal");
  assertEquals(LeatError.from(new Deno.errors.NotFound(), "internal").code, "not_found");
  const own = new LeatError("aborted", "m");
  assertStrictEquals(LeatError.from(own, "internal"), own);
  const real = await Deno.readFile("./no such file").catch((error) => error);
  assertEquals(LeatError.from(real).code, "not_found");
});

Deno.test("LeatError.from says that memory was refused, and what to do", () => {
  for (
    const allocate of [
      () => new ArrayBuffer(2 ** 50),
      () => new SharedArrayBuffer(2 ** 50),
      () => new Uint8Array(2 ** 53),
      () => "long".repeat(2 ** 29),
      // An error of another thread, as comlink passes it on.
      () => {
        throw Object.assign(new Error("Array buffer allocation failed"), { name: "RangeError" });
      },
    ]
  ) {
    const error = LeatError.from(assertThrows(allocate));
    assertEquals(error.code, "resource_exhausted", error.message);
    assertStringIncludes(error.message, "more memory");
    assertEquals(error.toWire().cause!.code, "resource_exhausted");
  }
  assertEquals(LeatError.from(assertThrows(() => new Uint8Array(-1))).code, "unknown");
});

Deno.test("LeatError.from says that calls nest too deep, with the fallback code of its caller", () => {
  const endless = (): number => 1 + endless();
  const thrown = assertThrows(endless, RangeError);
  const error = LeatError.from(thrown);
  assertEquals(error.code, "invalid_argument");
  assertStringIncludes(error.message, "a function calls itself without end");
  assertEquals(error.toWire().cause!.code, "invalid_argument");
  assertEquals(LeatError.from(thrown, "data_loss").code, "data_loss");
});

Deno.test("LeatError.from shows what it knows of an object that is no error", () => {
  const thrown: [unknown, string][] = [
    [{ code: 5, message: "the disk is full" }, "the disk is full"],
    [{ status: 500, body: {} }, "an object of {status, body}"],
    [{ toString: () => "its own" }, "its own"],
  ];
  for (const [value, message] of thrown) {
    assertEquals(LeatError.from(value).message, message);
    assertEquals(LeatError.from(value).toWire().cause!.message, message);
  }
});

Deno.test("LeatError has details and cause only if they were given", () => {
  const bare = new LeatError("internal", "m");
  assert(!("details" in bare) && !("cause" in bare));
  assertEquals(bare.name, "LeatError");
  const full = new LeatError("internal", "m", { cause: 1, details: { a: 1 } });
  assertEquals([full.cause, full.details], [1, { a: 1 }]);
});

Deno.test("toWire and fromWire keep code, message, details and causes", () => {
  const cause = new LeatError("data_loss", "inner", { details: { at: 5n } });
  const sent = new LeatError("unavailable", "outer", { cause, details: { list: [1, null] } });
  const wire = structuredClone(sent.toWire());
  const received = LeatError.fromWire(wire);
  assertInstanceOf(received, LeatError);
  assertEquals([received.code, received.message], ["unavailable", "outer"]);
  assertEquals(received.details, { list: [1, null] });
  const inner = received.cause as LeatError;
  assertEquals([inner.code, inner.message, inner.details], ["data_loss", "inner", { at: 5n }]);
});

Deno.test("toWire serialises foreign causes and odd details", () => {
  const details = { f: () => 1, m: new Map(), deep: { d: new Date(0) }, half: "\ud83d" };
  const wire = new LeatError("internal", "half \ud83d", { cause: new TypeError("bad"), details })
    .toWire();
  assertEquals(wire.cause?.message, "TypeError: bad");
  assertEquals(wire.details?.["m"], "[object Map]");
  assertEquals(typeof (wire.details?.["deep"] as Record<string, unknown>)["d"], "string");
  assertEquals([wire.message, wire.details?.["half"]], ["half \ufffd", "\ufffd"]);
  structuredClone(wire);
});

Deno.test("toWire makes no long text of details", () => {
  const text = "x".repeat(2 * WIRE_MESSAGE_LENGTH_MAX);
  const details = { bytes: new Uint8Array(100_000), text, lists: [new Map(), new Date(0), text] };
  const wire = new LeatError("internal", "m", { details }).toWire();
  assertEquals(wire.details?.["bytes"], "[object Uint8Array]");
  assert(JSON.stringify(wire).length < 3 * WIRE_MESSAGE_LENGTH_MAX);
});

Deno.test("toWire and fromWire cut endless causes and details", () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const error = new LeatError("internal", "m", { details: circular });
  error.cause = error;
  let depth = 0;
  for (let wire: WireError | undefined = error.toWire(); wire; wire = wire.cause) depth++;
  assertEquals(depth, WIRE_ERROR_DEPTH_MAX + 1);
  const endless: WireError = { code: "internal", message: "m" };
  endless.cause = endless;
  depth = 0;
  for (let at: unknown = LeatError.fromWire(endless); at; at = (at as Error).cause) depth++;
  assertEquals(depth, WIRE_ERROR_DEPTH_MAX + 1);
});

Deno.test("toWire sends no stack of the program that sends an error", () => {
  const error = new LeatError("internal", "m", { cause: new TypeError("inner") });
  assert(error.stack!.includes(import.meta.url));
  const wire = JSON.stringify(error.toWire());
  assertEquals(wire.includes("error_test"), false, wire);
  // A stack that somebody else wrote is not taken, either.
  const forged = { ...error.toWire(), stack: "forged" } as WireError;
  assertEquals(LeatError.fromWire(forged).stack!.includes("forged"), false);
});

/** Values that a function may throw so that whoever reads them throws, too. */
function hostileValues(): unknown[] {
  const thrower = () => {
    throw new Error("a getter");
  };
  const withGetter = (field: string) =>
    Object.defineProperty(new RangeError("given"), field, { get: thrower });
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const imitation = Object.setPrototypeOf({}, LeatError.prototype);
  const damaged = new LeatError("internal", "given", {
    details: {
      get a() {
        return thrower();
      },
    },
  });
  return [
    ...["message", "name", "cause", "stack"].map(withGetter),
    ...[{}, 1, null, "text"].map((message) =>
      Object.defineProperty(new Error(), "message", { value: message })
    ),
    ...[imitation, damaged, revoked.proxy, Object.create(null), null, undefined, Symbol("s")],
    new Proxy(new Error("given"), { get: thrower }),
    new Proxy(new Error("given"), { getPrototypeOf: thrower }),
    { toString: thrower },
  ];
}

Deno.test("LeatError.from and toWire accept errors that throw when they are read", () => {
  for (const value of hostileValues()) {
    const wire = LeatError.from(value).toWire();
    assertEquals(typeof wire.message, "string");
    assert(LEAT_ERROR_CODES.includes(wire.code), `${wire.code}`);
    structuredClone(wire);
  }
});

Deno.test("instanceof LeatError and causesOf accept values that throw when they are asked", () => {
  for (const value of hostileValues()) {
    assertEquals(typeof (value instanceof LeatError), "boolean");
    const error = new LeatError("internal", "m", { cause: value });
    assertStrictEquals(causesOf(error)[0], error);
  }
  class Special extends LeatError {}
  const general: unknown = new LeatError("internal", "m");
  assertEquals([general instanceof LeatError, general instanceof Special], [true, false]);
});

Deno.test("toWire cuts long messages", () => {
  const { message } = new LeatError("internal", "x".repeat(1_000_000)).toWire();
  assertEquals(message, `${"x".repeat(WIRE_MESSAGE_LENGTH_MAX)}…`);
});

Deno.test("fromWire lets no message steer a terminal, or begin a line of its own", () => {
  const text = "bad \x1b]0;title\x07\u202e\r\nINFO all is well\n    more\x1b[2J";
  const shown = "bad \\x1b]0;title\\x07\\u202e\n    INFO all is well\n    more\\x1b[2J";
  const sent = new LeatError("internal", text, { cause: new LeatError("internal", text) }).toWire();
  const error = LeatError.fromWire(sent);
  assertEquals([error.message, (error.cause as Error).message], [shown, shown]);
  assertEquals(LeatError.fromWire(error.toWire()).message, shown);
});

Deno.test("fromWire accepts any input", () => {
  for (const wire of [null, 7, "x", {}, { code: "nonsense", message: 5 }, []]) {
    const error = LeatError.fromWire(wire as unknown as WireError);
    assertEquals([error.code, error.message.includes("[object")], ["unknown", false]);
  }
});

Deno.test("LEAT_ERROR_CODES are the sixteen canonical ones", () => {
  assertEquals(new Set(LEAT_ERROR_CODES).size, 16);
});

Deno.test("innermostCause follows the causes that are errors", () => {
  const inner = new Error("the system's", { cause: "a text" });
  const outer = new LeatError("unavailable", "outer", {
    cause: new Error("middle", { cause: inner }),
  });
  assertStrictEquals(innermostCause(outer), inner);
  assertStrictEquals(innermostCause(inner), inner);
  assertEquals(innermostCause("no error"), "no error");
});

Deno.test("causesOf and innermostCause end at an error that is its own cause", () => {
  const error = circularError("boom");
  assertEquals(causesOf(error).length, WIRE_ERROR_DEPTH_MAX + 1);
  assertStrictEquals(innermostCause(error), error);
  assertEquals(causesOf("no error"), []);
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

Deno.test("withShownUrls ends at an error that is its own cause", () => {
  const shown = withShownUrls(circularError("http://host/?secret failed"));
  assertEquals(LeatError.from(shown).message, "http://host/?… failed");
});

Deno.test("withShownUrls copies an error with fields that throw when they are read", () => {
  const error = new TypeError("odd");
  for (const field of ["name", "message", "cause"]) {
    Object.defineProperty(error, field, { get: () => assert(false, "read") });
  }
  assertInstanceOf(withShownUrls(error), Error);
});
