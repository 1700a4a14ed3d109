/** Folders of slot files must be neither left behind nor lost. */
import { removeLeftFolders, SlotFolder } from "../../../platform/process/slot_folder.ts";
import { LeatError } from "../../../core/error.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { inFolder, namesIn } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

Deno.test("SlotFolder is private, holds two empty files, and can be removed", async () => {
  await inFolder(async (parent) => {
    const folder = new SlotFolder(parent);
    assertEquals(await namesIn(folder.path), ["down", "lock", "up"]);
    if (Deno.build.os !== "windows") {
      assertEquals(Deno.statSync(folder.path).mode! & 0o777, 0o700);
      for (const path of [folder.incoming, folder.outgoing]) {
        const { mode, size } = Deno.statSync(path);
        assertEquals([mode! & 0o777, size], [0o600, 0]);
      }
    }
    folder.remove();
    folder.remove();
    assertEquals(await namesIn(parent), []);
  });
});

Deno.test("SlotFolder says that the folder for temporary files is missing, and what to do", async () => {
  await inFolder((parent) => {
    const { code, message } = assertThrows(() => new SlotFolder(`${parent}/none`), LeatError);
    assertEquals(code, "not_found");
    assertStringIncludes(message, `${parent}/none`);
    assertStringIncludes(message, "Create that folder, or set TMPDIR");
    return Promise.resolve();
  });
});

Deno.test("SlotFolder says that the folder for temporary files is read-only, and what to do", () => {
  const { makeTempDirSync } = Deno;
  Deno.makeTempDirSync = () => {
    throw Object.assign(new Error("Read-only file system (os error 30)"), { code: "EROFS" });
  };
  try {
    const { code, message } = assertThrows(() => new SlotFolder(), LeatError);
    assertEquals(code, "permission_denied");
    assertStringIncludes(
      message,
      "Read-only file system (os error 30). Create that folder, or set",
    );
  } finally {
    Deno.makeTempDirSync = makeTempDirSync;
  }
});

Deno.test("removeLeftFolders removes the folders of ended processes, and nothing else", async () => {
  await inFolder(async (parent) => {
    const needed = new SlotFolder(parent);
    const left = ["leat-slots-left/lock", "leat-slots-left/up", "other/lock", "leat-slots-odd/up"];
    for (const path of left) {
      Deno.mkdirSync(`${parent}/${path.split("/")[0]}`, { recursive: true });
      Deno.writeTextFileSync(`${parent}/${path}`, "");
    }
    Deno.mkdirSync(`${parent}/leat-slots-empty`);
    Deno.writeTextFileSync(`${parent}/leat-slots-file`, "");
    removeLeftFolders(needed.path);
    const name = needed.path.slice(parent.length + 1);
    assertEquals(
      await namesIn(parent),
      [name, "leat-slots-file", "leat-slots-odd", "other"].sort(),
    );
    assertEquals(await namesIn(needed.path), ["down", "lock", "up"]);
    needed.remove();
    removeLeftFolders(`${parent}/not there/own`);
  });
});

Deno.test("removeLeftFolders leaves the folders of other users alone, also as root", async () => {
  await inFolder(async (parent) => {
    const own = new SlotFolder(parent);
    const foreign = `${parent}/leat-slots-foreign`;
    Deno.mkdirSync(foreign, { mode: 0o700 });
    // Only root may give it away; it could also remove it.
    const isGiven = await Deno.chown(foreign, 12_345, 12_345).then(() => true, () => false);
    removeLeftFolders(own.path);
    assertEquals((await namesIn(parent)).includes("leat-slots-foreign"), isGiven);
    own.remove();
  });
});

Deno.test("a worker that is killed while a runner loads leaves no folder for long", async () => {
  await inFolder(async (parent) => {
    const program = "tests/platform/process/fixture_loading_runner.ts";
    const options = { flags: ["-A", "--no-check"], env: { TMPDIR: parent } };
    {
      await using killed = startChild(program, { ...options, args: ["stopped"] });
      await killed.line(/loading/);
      killed.kill("SIGKILL");
      await killed.status;
    }
    const [left] = await namesIn(parent);
    assert(left !== undefined);
    // The next worker of this machine.
    await using _next = startChild(program, options);
    await until(async () => (await namesIn(parent)).length === 0, 20);
  });
});
