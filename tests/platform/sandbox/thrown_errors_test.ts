/** What functions throw in confined processes. */
import { Dataset } from "../../../mod.ts";
import { assertEquals, assertStringIncludes } from "../../assert.ts";
import { type Came, Sandbox } from "./sandbox_lib.ts";

const messageOf = (came: Came | undefined) =>
  came !== undefined && "message" in came ? came.message : undefined;

Deno.test("a function that throws what throws when it is read fails its elements, not its process", async () => {
  await using sandbox = await Sandbox.open();
  const dataset = Dataset.range(4).map((x) => {
    if (x === 3) return x;
    const thrower = () => {
      throw 7;
    };
    if (x === 1) throw new Proxy({}, { get: thrower, getPrototypeOf: thrower });
    const error = new Error("given");
    Object.defineProperty(error, x === 0 ? "message" : "name", { get: thrower });
    throw error;
  });
  const came = await sandbox.elements(dataset);
  assertEquals(came.map((each) => "value" in each ? each.value : each.code), [
    ...["unknown", "unknown", "unknown"],
    3,
  ]);
});

Deno.test("the error of a process that an unhandled error ended lets that error steer no terminal", async () => {
  await using sandbox = await Sandbox.open();
  const [came] = await sandbox.elements(
    Dataset.range(1).map(() => {
      Promise.reject(new Error("boom\x1b[2J\n2026-01-01T00:00:00Z INFO forged\x9b"));
      return new Promise<number>(() => {});
    }),
  );
  const message = messageOf(came) ?? "";
  assertStringIncludes(message, "boom\\x1b[2J\n");
  assertStringIncludes(message, "INFO forged\\x9b");
  // deno-lint-ignore no-control-regex -- they are what is looked for
  assertEquals(/[\x00-\x09\x0b-\x1f\x7f-\x9f]|\n\S/.test(message), false, message);
});

Deno.test("the error of a process that an unhandled error ended quotes that error, and no line of Leat", async () => {
  await using sandbox = await Sandbox.open();
  const [came] = await sandbox.elements(
    Dataset.range(1).map(() => {
      Promise.reject(new Error("boom"));
      return new Promise<number>(() => {});
    }),
  );
  assertEquals(
    messageOf(came),
    "The runner is gone: its process ended by itself (exit code 1): error: Uncaught (in promise) " +
      "Error: boom",
  );
});
