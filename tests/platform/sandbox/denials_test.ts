/** What the message of a denied permission advises. */
import { LeatError } from "../../../core/error.ts";
import { explainDenial } from "../../../platform/sandbox/denials.ts";
import { DenoNewFiles } from "../../../platform/storage/new_files.ts";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../../assert.ts";

Deno.test("explainDenial advises a root that can be granted, also at the top of a host or a bucket", () => {
  const roots = {
    "/etc/hostname": "/etc",
    "/etc": "/etc",
    "http://host.example/a/b.txt": "http://host.example/a",
    "http://host.example/b.txt": "http://host.example",
    "http://127.0.0.1:4300.evil.test/": "http://127.0.0.1:4300.evil.test",
    "https://host.example/?…": "https://host.example",
    "https://host.example": "https://host.example",
    "s3://bucket": "s3://bucket",
    "s3://bucket/shards/a": "s3://bucket/shards",
  };
  for (const [path, root] of Object.entries(roots)) {
    const { message } = explainDenial({
      code: "permission_denied",
      message: `Requires read access to "${path}"`,
    });
    assertStringIncludes(message, `--data-root=${root})`);
  }
});

Deno.test("explainDenial advises the folder that could not be listed, not the one above it", () => {
  for (const [pattern, path] of [["/sets/a/*.arrow", "/sets/a"], ["/sets/a/b", "/sets/a/b"]]) {
    const { message } = explainDenial({
      code: "permission_denied",
      message: `Cannot list ${pattern}: Requires read access to "${path}"`,
    });
    assertStringIncludes(message, "--data-root=/sets/a)");
  }
});

Deno.test({
  name: "explainDenial names only --allow-write for a file that may not be written",
  // The first denied permission is then that of reading.
  permissions: { read: false, write: false },
  async fn() {
    const refusal = await assertRejects(
      () => new DenoNewFiles().create("/sets/a.b/SAVING"),
      LeatError,
    );
    const error = new LeatError(refusal.code, `Cannot save: ${refusal.message}`, {
      cause: refusal.cause,
    });
    assertEquals(
      explainDenial(error.toWire()).message,
      'Cannot save: Cannot write /sets/a.b/SAVING: it needs write access to "/sets/a.b/SAVING", ' +
        "which this worker does not grant (its operator can, with --allow-write=/sets/a.b)",
    );
  },
});

Deno.test("explainDenial never advises to grant the root of the machine", () => {
  for (const kind of ["read", "write"]) {
    const { message } = explainDenial({
      code: "permission_denied",
      message: `Cannot list /*.txt: Requires ${kind} access to "/"`,
    });
    assertMatch(message, /its operator can grant folders below it, with --[a-z-]+\)/);
  }
});

Deno.test("explainDenial advises an absolute path for a relative one, which a root on the worker would not help", () => {
  for (const kind of ["read", "write"]) {
    const { message } = explainDenial({
      code: "permission_denied",
      message: `Requires ${kind} access to "data/x.txt"`,
    });
    assertStringIncludes(
      message,
      "the folder that the worker was started in: give an absolute path",
    );
  }
});

Deno.test("explainDenial looks for the position of an import once in each line", () => {
  const lines = "\n ".repeat(1_000_000);
  const { message } = explainDenial({
    code: "permission_denied",
    message: `Requires net access${lines}x\n    at file:///a.ts:1:1`,
  });
  assertMatch(message, / x$/);
});

Deno.test("explainDenial says that a package is bundled into the module, whatever Deno says", () => {
  const sentences = {
    'Failed loading https://r/x for package "left-pad". --cached-only is specified.':
      'the package "left-pad"',
    "Could not find constraint '@std/assert' in the list of packages.": 'the package "@std/assert"',
    'The lockfile is out of date. Run `deno install`.\n    33 | +  "npm:left-pad@*": "1.3.0",':
      "a package of npm or JSR",
  };
  for (const [sentence, what] of Object.entries(sentences)) {
    const { code, message } = explainDenial({ code: "unknown", message: `map: ${sentence}` });
    const remedy =
      "which a worker does not fetch for a function: bundle it into the function's module";
    assertEquals([code, message], ["permission_denied", `map: it needs ${what}, ${remedy}`]);
  }
});
