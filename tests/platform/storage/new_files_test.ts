/** Unfinished files: complete or absent, one writer at a time. */

import { fileURLToPath } from "node:url";
import { LeatError } from "../../../core/error.ts";
import { DenoNewFiles, PARTIAL_SUFFIX } from "../../../platform/storage/new_files.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { link } from "../sandbox/sandbox_lib.ts";
import { inFolder, namesIn } from "../../lib/temp_folder.ts";

const files = new DenoNewFiles();
const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("DenoNewFiles.create creates a file that exists once it is committed", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a/b/file`;
    const file = await files.create(path);
    file.append(bytes("one "));
    file.append(bytes("two"));
    await assertRejects(() => Deno.stat(path), Deno.errors.NotFound);
    await file.commit();
    assertEquals(await Deno.readTextFile(path), "one two");
    const again = await files.create(path);
    again.append(bytes("three"));
    assertEquals(await Deno.readTextFile(path), "one two");
    await again.commit();
    assertEquals(again.abandon(), false);
    assertEquals(await Deno.readTextFile(path), "three");
    assertEquals(await namesIn(`${folder}/a/b`), ["file"]);
  });
});

Deno.test("DenoNewFiles syncs the folder of each name that it creates, before commit resolves", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/a/b/file`;
    const synced: [folder: string, names: string[]][] = [];
    const files = new DenoNewFiles(async (folder) => {
      synced.push([folder, await namesIn(folder)]);
    });
    const file = await files.create(path);
    assertEquals(synced.splice(0), [[`${folder}/a`, ["b"]], [folder, ["a"]]]);
    await file.commit();
    assertEquals(synced, [[`${folder}/a/b`, ["file"]]]);
  });
});

Deno.test("DenoNewFiles removes the folders of abandoned files, and no others", async () => {
  await inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/mine`);
    const lock = await files.create(`${folder}/mine/new/deep/DONE`);
    const part = await files.create(`${folder}/mine/new/deep/part`);
    await part.commit();
    assertEquals(lock.abandon(), true);
    assertEquals(await namesIn(`${folder}/mine/new/deep`), ["part"]);
    files.remove(`${folder}/mine/new/deep/part`);
    assertEquals(await namesIn(`${folder}/mine`), []);
    await (await files.create(`${folder}/mine/new/file`)).commit();
    files.remove(`${folder}/mine/new/file`);
    assertEquals(await namesIn(`${folder}/mine/new`), []); // it was done, and is somebody's now
    (await files.create(`${folder}/mine/new/file`)).abandon();
    assertEquals(await namesIn(`${folder}/mine`), ["new"]);
    (await files.create(`${folder}/mine/other/file`)).abandon();
    assertEquals(await namesIn(`${folder}/mine`), ["new"]);
    (await files.create(`${folder}/mine/file`)).abandon();
    assertEquals(await namesIn(folder), ["mine"]);
  });
});

Deno.test("DenoNewFiles removes a folder that was created for a file below it, once none is left", async () => {
  await inFolder(async (folder) => {
    const below = await files.create(`${folder}/new/sub/file`);
    const above = await files.create(`${folder}/new/file`);
    above.abandon();
    below.abandon();
    assertEquals(await namesIn(folder), []);
    const again = await files.create(`${folder}/new/sub/file`);
    await (await files.create(`${folder}/new/file`)).commit();
    again.abandon();
    assertEquals(await namesIn(`${folder}/new`), ["file"]);
  });
});

Deno.test("DenoNewFiles.create restores its folder after another writer removed it", async () => {
  await inFolder(async (folder) => {
    const others = new DenoNewFiles();
    const races = Array.from({ length: 20 }, async (_, i) => {
      const file = await (i % 2 === 0 ? files : others).create(`${folder}/race/${i}`);
      if (i > 0) return void file.abandon();
      file.append(bytes("kept"));
      await file.commit();
    });
    await Promise.all(races);
    assertEquals(await namesIn(`${folder}/race`), ["0"]);
  });
});

Deno.test("DenoNewFiles.create refuses a second writer, naming the lock, until the first gives up", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/file`;
    const file = await files.create(path);
    file.append(bytes("first"));
    const error = await assertRejects(() => files.create(path), LeatError);
    assertEquals(error.code, "already_exists");
    assert(error.message.includes(path + PARTIAL_SUFFIX));
    assertEquals([file.abandon(), file.abandon()], [true, false]);
    assertEquals(await namesIn(folder), []);
    const second = await files.create(path);
    second.append(bytes("second"));
    await second.commit();
    assertEquals(await Deno.readTextFile(path), "second");
    assertEquals((await assertRejects(() => file.commit(), LeatError)).code, "failed_precondition");
  });
});

Deno.test("DenoNewFiles.create takes over the file of a dead process, and never of a living one", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/file`;
    const script = `
      import { DenoNewFiles } from "${new URL(
      "../../../platform/storage/new_files.ts",
      import.meta.url,
    )}";
      const file = await new DenoNewFiles().create(Deno.args[0]);
      file.append(new TextEncoder().encode("half a fi"));
      console.log("locked");
      await new Promise(() => setInterval(() => {}, 1000));`;
    await Deno.writeTextFile(`${folder}/writer.ts`, script);
    const config = fileURLToPath(new URL("../../../deno.json", import.meta.url));
    const writer = new Deno.Command("deno", {
      args: ["run", "--no-check", "--config", config, "--allow-read", `--allow-write=${folder}`]
        .concat(`${folder}/writer.ts`, path),
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const reader = writer.stdout.getReader();
    assertEquals((await reader.read()).done, false);
    assertEquals((await assertRejects(() => files.create(path), LeatError)).code, "already_exists");
    writer.kill("SIGKILL");
    await writer.status;
    await reader.cancel();
    assertEquals(await Deno.readTextFile(path + PARTIAL_SUFFIX), "half a fi");
    const file = await files.create(path);
    file.append(bytes("whole"));
    await file.commit();
    assertEquals(await Deno.readTextFile(path), "whole");
  });
});

Deno.test("DenoNewFiles.create never takes over a file that was just completed", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/file`;
    for (let round = 0; round < 60; round++) {
      const file = await files.create(path);
      file.append(bytes("whole"));
      const creations = Array.from({ length: 6 }, () => files.create(path));
      const [, ...others] = await Promise.allSettled([file.commit(), ...creations]);
      assertEquals(await Deno.readTextFile(path), "whole");
      for (const other of others) if (other.status === "fulfilled") other.value.abandon();
      await Deno.remove(path);
    }
  });
});

Deno.test("DenoNewFiles.create empties no file that a link in place of the unfinished one leads to", async () => {
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/victim`, "precious");
    await link(`${folder}/victim`, `${folder}/DONE${PARTIAL_SUFFIX}`);
    const error = await assertRejects(() => files.create(`${folder}/DONE`), LeatError);
    assertEquals(error.code, "failed_precondition");
    assertEquals(await Deno.readTextFile(`${folder}/victim`), "precious");
  });
});

Deno.test("DenoNewFiles refuses a path with NUL as an invalid argument", async () => {
  for (const path of ["/tmp/a\0b/file", "/tmp/a\0b"]) {
    const error = await assertRejects(() => files.create(path), LeatError);
    assertEquals(error.code, "invalid_argument", error.message);
  }
});

Deno.test("DenoNewFiles names the path that it cannot write", async () => {
  const far = await assertRejects(() => files.create("s3://bucket/key"), LeatError);
  assertEquals(far.code, "unimplemented");
  const denied = await assertRejects(() => files.create("/proc-not-allowed/file"), LeatError);
  assertEquals(denied.code, "permission_denied");
  assert(denied.message.includes("--allow-write"));
});

Deno.test("DenoNewFiles.remove removes a file, and ignores a missing one", async () => {
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    files.remove(`${folder}/file`);
    files.remove(`file://${folder}/file`);
    assertEquals(await namesIn(folder), []);
  });
});

Deno.test("DenoNewFiles takes ? and # in a file: URL as part of the name, as reading does", async () => {
  await inFolder(async (folder) => {
    for (const name of ["file", "file?a#b"]) await Deno.writeTextFile(`${folder}/${name}`, "");
    files.remove(`file://${folder}/file?a#b`);
    assertEquals(await namesIn(folder), ["file"]);
  });
});

Deno.test("DenoNewFiles.create creates nothing where a dangling link leads", async () => {
  await inFolder(async (folder) => {
    await link(`${folder}/elsewhere`, `${folder}/DONE${PARTIAL_SUFFIX}`);
    const error = await assertRejects(() => files.create(`${folder}/DONE`), LeatError);
    assertEquals(error.code, "failed_precondition");
    assertEquals(await namesIn(folder), [`DONE${PARTIAL_SUFFIX}`]);
  });
});

Deno.test("DenoNewFiles.create says that a folder's path has a dangling link, not a writer", async () => {
  await inFolder(async (folder) => {
    await link(`${folder}/elsewhere`, `${folder}/dangling`);
    const error = await assertRejects(() => files.create(`${folder}/dangling/a/DONE`), LeatError);
    assertEquals(error.code, "failed_precondition");
    assertStringIncludes(
      error.message,
      `${folder}/dangling/a: a part of this path is a file, or a link`,
    );
    assertEquals(await namesIn(folder), ["dangling"]);
  });
});

Deno.test({
  name: "DenoNewFiles.create opens nothing but a file in place of the unfinished one",
  ignore: Deno.build.os === "windows",
  fn: () =>
    inFolder(async (folder) => {
      const [pipe, below] = ["pipe", "folder"].map((name) => `${folder}/${name}${PARTIAL_SUFFIX}`);
      await new Deno.Command("sh", { args: ["-c", 'mkfifo "$0"', pipe!] }).output();
      await Deno.mkdir(below!);
      // Without a reader, opening the pipe would wait for ever.
      using _reader = Deno.openSync(pipe!, { read: true, write: true });
      for (const [name, what] of [["pipe", "a pipe"], ["folder", "a folder"]] as const) {
        const error = await assertRejects(() => files.create(`${folder}/${name}`), LeatError);
        assertEquals(error.code, "failed_precondition");
        assertStringIncludes(error.message, `${folder}/${name}${PARTIAL_SUFFIX}: it is ${what}`);
      }
    }),
});
