/** Connectors composed of others. */
import type { Connector } from "../../actors/runtime/link.ts";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { withoutRefusals } from "../../transport/connectors.ts";
import { otherVersion } from "../../transport/hello.ts";
import { assertEquals, assertRejects } from "../assert.ts";

const LOCAL = { node: "here", incarnation: "00000000000000cc" };

Deno.test("withoutRefusals takes a worker that refuses, or has another version, for unavailable", async () => {
  const denied = new LeatError("permission_denied", "not granted", {
    cause: new Deno.errors.NotCapable("net"),
  });
  const wanted: [LeatError, LeatErrorCode][] = [
    [new LeatError("unauthenticated", "wrong token"), "unavailable"],
    [new LeatError("permission_denied", "refused"), "unavailable"],
    [otherVersion("listener", 2), "unavailable"],
    [denied, "permission_denied"],
    [new LeatError("not_found", "unknown"), "not_found"],
  ];
  for (const [error, code] of wanted) {
    const far: Connector = { connect: () => Promise.reject(error) };
    const dialled = withoutRefusals(far, (node) => node === "service");
    const codeAt = async (node: string) =>
      (await assertRejects(() => dialled.connect(node, LOCAL), LeatError)).code;
    assertEquals([await codeAt("worker"), await codeAt("service")], [code, error.code]);
  }
});
