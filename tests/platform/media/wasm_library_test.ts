/** Libraries in WebAssembly with much memory. */

import wabt from "wabt";
import { assertEquals } from "../../assert.ts";
import { WasmLibrary } from "../../../platform/media/wasm_library.ts";

Deno.test("WasmLibrary reads and writes memory from 2 GiB, whose addresses WebAssembly returns as negative", async () => {
  const { parseWat } = await wabt();
  // 32,769 pages of 64 KiB; the system provides only those that are used.
  const parsed = parseWat(
    "high.wat",
    `(module
      (memory (export "memory") 32769)
      (func (export "malloc") (param i32) (result i32) (i32.const 0x80000000))
      (func (export "free") (param i32))
      (func (export "same") (param i32) (result i32) (local.get 0)))`,
  );
  const module = new WebAssembly.Module(new Uint8Array(parsed.toBinary({}).buffer));
  parsed.destroy();
  const library = new WasmLibrary<{ same(address: number): number }>(module);
  const read = library.call(({ same }, memory) => {
    const address = memory.allocate(4);
    memory.view(address, 4).set([1, 2, 3, 4]);
    return [...memory.view(same(address), 4), ...memory.integers(address, 1)];
  });
  assertEquals(read, [1, 2, 3, 4, 0x04030201]);
});
