/** A dispatcher's state over HTTP: which error each kind of refusal is. */
import { askForState } from "../../cli/cluster/state_request.ts";
import { type LeatErrorCode, serveDispatcher } from "../../mod.ts";
import { assertEquals, assertStringIncludes } from "../assert.ts";
import { rejection } from "../actors/runtime/nodes.ts";
import { TempFolder } from "../lib/temp_folder.ts";

Deno.test("askForState names the roles that may see the state, and shows it to each of them", async () => {
  const tokenOf = (role: string) => `token-of-one-${role}-0123`;
  const roles = ["admin", "worker", "viewer", "client"];
  const lines = roles.map((role) => `one-${role} ${role} ${tokenOf(role)}\n`).join("");
  await using folder = await TempFolder.make({ tokens: lines });
  const tokens = { file: `${folder.path}/tokens` };
  await using dispatcher = await serveDispatcher({ tokens, logLevel: "off" });
  const ask = (role: string) => askForState(dispatcher.address, { token: tokenOf(role) });
  for (const role of roles.slice(0, 3)) assertEquals((await ask(role)).workers, [], role);
  const error = await rejection(ask("client"), "permission_denied");
  assertStringIncludes(error.message, "to the roles admin, worker and viewer only");
  assertStringIncludes(
    error.message,
    "give a viewer's token, or a worker's to `deno task autoscale`",
  );
});

Deno.test("askForState tells what is no dispatcher from one that does not answer", async () => {
  const answers: [status: number, body: string, code: LeatErrorCode][] = [
    [200, "<!doctype html><title>Router</title>", "failed_precondition"],
    [200, '{"ok": true}', "failed_precondition"],
    [404, "Not found", "failed_precondition"],
    [302, "", "failed_precondition"],
    [502, "<h1>Bad gateway</h1>", "unavailable"],
    [503, "", "unavailable"],
  ];
  let next = 0;
  const handler = () => {
    const [status, body] = answers[next++]!;
    return new Response(body, { status, headers: { location: "/login" } });
  };
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using server = Deno.serve(options, handler);
  const address = `ws://127.0.0.1:${server.addr.port}`;
  for (const credentials of [{}, { token: "a-token-of-a-dispatcher" }]) {
    next = 0;
    for (const [status, , code] of answers) {
      const { message } = await rejection(askForState(address, credentials), code);
      const isNone = message === `What answers at ${address} (HTTP ${status}) is no dispatcher: ` +
          "is it a worker's address?";
      assertEquals(isNone, code === "failed_precondition", message);
    }
  }
});
