/** Programs that serve until they are asked to stop, or fail. */
import { asSettingsError, serveUntilStopped } from "../../cli/cluster/serving.ts";
import { UsageError } from "../../cli/lib/args.ts";
import { LeatError } from "../../core/error.ts";
import { serveWorker } from "../../mod.ts";
import { otherVersion } from "../../transport/hello.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";

Deno.test("serveUntilStopped says why it stops before it closes the server, also after a failure", async () => {
  const never = new Promise<never>(() => {});
  const failure = new LeatError("internal", "a function never yields\nsee above");
  const steps: string[] = [];
  const stopped = (first: Promise<string>, failed: Promise<LeatError>) => {
    const close = () => Promise.resolve(void steps.push("close"));
    return serveUntilStopped({ failed, close }, { first }, (why) => void steps.push(why));
  };
  await stopped(Promise.resolve("SIGTERM"), never);
  assertEquals(steps.splice(0), ["SIGTERM", "close"]);
  const error = await assertRejects(() => stopped(never, Promise.resolve(failure)));
  assertEquals(error, failure);
  assertEquals(steps, ["failed: a function never yields\\nsee above", "close"]);
});

Deno.test("asSettingsError names the address of another worker as a wrong setting, no other version", async () => {
  const config = { token: "sesame", logLevel: "off" } as const;
  const other = await serveWorker({ ...config, dispatcher: "ws://127.0.0.1:9" });
  const worker = await serveWorker({ ...config, dispatcher: other.address });
  const wrong = asSettingsError(await worker.failed);
  await worker.close();
  await other.close();
  assert(wrong instanceof UsageError);
  assertStringIncludes(wrong.message, "give the dispatcher's address");
  const version = otherVersion("listener", 2);
  assertEquals(asSettingsError(version), version);
});
