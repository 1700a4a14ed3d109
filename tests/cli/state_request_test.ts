/** A dispatcher's state over HTTP: which error each kind of refusal is. */
import { askForState } from "../../cli/cluster/state_request.ts";
import { serveDispatcher } from "../../mod.ts";
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
