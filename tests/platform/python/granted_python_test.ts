/** Which Python files confined pipelines may call. */

import { LeatError } from "../../../core/error.ts";
import { GrantedPython } from "../../../platform/python/granted_python.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

/** The code of the error for a file that does not exist: a file that is not granted is not looked for. */
async function codeFor(file: string, root: string): Promise<string> {
  const granted = new GrantedPython([{ path: root, realPath: root }], 1000);
  const pool = granted.open();
  const call = { file, name: "f", calls: new Uint8Array() };
  const { code } = await assertRejects(() => pool.run(call), LeatError);
  pool.close();
  return code;
}

Deno.test("GrantedPython calls files below a granted folder, which may be the root of all", async () => {
  assertEquals(await codeFor("/granted/missing.py", "/granted"), "not_found");
  assertEquals(await codeFor("/granted-not/missing.py", "/granted"), "permission_denied");
  assertEquals(await codeFor("/granted/../missing.py", "/granted"), "permission_denied");
  assertEquals(await codeFor("/granted/missing.py", "/"), "not_found");
});
