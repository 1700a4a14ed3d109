/**
 * References to Python functions: how they are sent, and where they are refused. `python/tests/`
 * calls them.
 */
import { Dataset, LeatError, python } from "../../../../mod.ts";
import { PYTHON_CALLS, PythonFunction } from "../../../../data/udf/python_function.ts";
import { deserializeFunction, serializeFunction } from "../../../../data/udf/user_function.ts";
import { withHost } from "../../../../data/host.ts";
import { DenoHost } from "../../../../platform/deno_host.ts";
import {
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";

const augment = python("/code/augment.py", "augment");

Deno.test("python refuses a file or a name that is empty", () => {
  for (const [file, name] of [["", "f"], ["f.py", ""]] as const) {
    assertThrows(() => python(file, name), LeatError, "the path of a file and the name");
  }
});

Deno.test("a Python function is sent as its file and name, with its captures", () => {
  const wire = serializeFunction(augment, { size: 3 });
  assertEquals(wire, {
    python: "/code/augment.py",
    name: "augment",
    captures: { values: { size: 3 }, functions: [] },
  });
  const { fn, captures } = deserializeFunction(wire);
  assertEquals(fn instanceof PythonFunction && [fn.file, fn.name], ["/code/augment.py", "augment"]);
  assertEquals(captures, { size: 3 });
});

Deno.test("a Python function is in flight so many times by default, and as often as map says", () => {
  const calls = (dataset: Dataset<unknown>) => dataset.node.attributes["numParallelCalls"];
  const dataset = Dataset.range(4);
  assertEquals(calls(dataset.map(augment)), PYTHON_CALLS);
  assertEquals(calls(dataset.filter(augment)), PYTHON_CALLS);
  assertEquals(calls(dataset.map(augment, { numParallelCalls: 2 })), 2);
  assertEquals(calls(dataset.map((x) => x)), undefined);
});

Deno.test("a Python function among captures is refused, here and where it is sent", async () => {
  const dataset = Dataset.range(4).map((x) => x, { captures: { deep: [augment] } });
  const message = "captures.deep[0] is a Python function, which only an operator can call";
  await assertRejects(() => Array.fromAsync(dataset), LeatError, message);
  assertThrows(() => dataset.serialize(), LeatError, message);
});

Deno.test("a Python function is refused by a host that runs none, and in a pipeline of others", async () => {
  const dataset = Dataset.range(4).map(augment);
  const refused = async (read: () => Promise<unknown>) => {
    const error = await assertRejects(read, LeatError);
    assertEquals(error.code, "permission_denied");
    assertStringIncludes(error.message, `"augment" of /code/augment.py is not called here`);
    return error.message;
  };
  const iterator = withHost(new DenoHost({ python: false }), () => dataset.iterator());
  await refused(() => iterator.next());
  await iterator.return();
  // Its functions are called by a confined process.
  const confined = await refused(() => Array.fromAsync(Dataset.deserialize(dataset.serialize())));
  assertStringIncludes(confined, "with --allow-python FOLDER");
});

Deno.test("a Python function says which interpreter is missing or not permitted", async () => {
  const read = async (interpreter: string) => {
    const host = new DenoHost({ python: interpreter });
    const iterator = withHost(host, () => Dataset.range(1).map(augment).iterator());
    const error = await assertRejects(() => iterator.next(), LeatError);
    await iterator.return();
    return error;
  };
  const denied = await read("python-that-is-not-granted");
  assertEquals(denied.code, "permission_denied");
  assertStringIncludes(denied.message, "grant it with --allow-run=python-that-is-not-granted");
  // `sh` knows no module leat, as a Python without the package does not.
  const unable = await read("sh");
  assertEquals(unable.code, "failed_precondition");
  assertStringIncludes(unable.message, "It needs the package leat: pip install ./python");
});
