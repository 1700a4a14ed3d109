/** Why a server cannot listen. */
import { cannotListen } from "../../../transport/web_socket/listen_error.ts";
import { assertStringIncludes } from "../../assert.ts";

Deno.test("cannotListen names the permission as Deno takes it, also for an IPv6 address", () => {
  const denied = new Deno.errors.NotCapable("Requires net access");
  for (const [hostname, flag] of [["::1", "[::1]:5050"], ["10.0.0.5", "10.0.0.5:5050"]] as const) {
    const { message } = cannotListen(denied, hostname, 5050);
    assertStringIncludes(message, `grant --allow-net=${flag},`);
  }
});
