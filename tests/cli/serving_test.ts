/** Programs that serve until they are asked to stop, or fail. */
import { serveUntilStopped } from "../../cli/cluster/serving.ts";
import { LeatError } from "../../core/error.ts";
import { assertEquals, assertRejects } from "../assert.ts";

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
