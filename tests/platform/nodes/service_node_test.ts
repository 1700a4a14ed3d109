/** Service nodes: what is left of one that cannot start, and which incarnation one dials. */
import { LeatError } from "../../../core/error.ts";
import { ServiceNode } from "../../../platform/nodes/service_node.ts";
import { assertEquals, assertRejects, assertThrows } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";

const QUIET = { logLevel: "off" } as const;

Deno.test("ServiceNode stops checking its file of tokens if it cannot listen", async () => {
  await using folder = await TempFolder.make({ tokens: "team client a-token-of-16-characters\n" });
  const tokens = { file: `${folder.path}/tokens` };
  const first = new ServiceNode(QUIET);
  // The sanitizer of timers fails the test if the second node's timer is left.
  const listen = () => new ServiceNode({ ...QUIET, port: first.port, tokens });
  assertEquals(assertThrows(listen, LeatError).code, "already_exists");
  await first.stop();
});

Deno.test("ServiceNode.dial answers failed_precondition for an incarnation that only begins with the node's", async () => {
  const node = new ServiceNode(QUIET);
  const { incarnation } = node.system.id;
  const actor = { node: node.address, path: "/node" };
  await node.dial({ ...actor, incarnation: `${incarnation}-1` });
  const other = { ...actor, incarnation: `${incarnation}0-1` };
  const error = await assertRejects(() => node.dial(other), LeatError) as LeatError;
  assertEquals(error.code, "failed_precondition");
  await node.stop();
});
