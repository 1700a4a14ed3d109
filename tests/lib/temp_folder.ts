/**
 * Folders of a test's own, which are gone with all in them when it ends, however it does.
 *
 * @module
 */

/** What a folder begins with: contents by path, of which text is written as UTF-8. */
export type Files = Readonly<Record<string, string | Uint8Array>>;

/** See the module. */
export class TempFolder implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async make(files: Files = {}): Promise<TempFolder> {
    const folder = new TempFolder(await Deno.makeTempDir({ prefix: "leat-" }));
    for (const [name, contents] of Object.entries(files)) {
      const path = `${folder.path}/${name}`;
      await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
      const bytes = typeof contents === "string" ? new TextEncoder().encode(contents) : contents;
      await Deno.writeFile(path, bytes);
    }
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.path, { recursive: true });
  }
}

/** Runs something in an empty folder. */
export async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  await withFiles({}, run);
}

/** Runs something in a folder that holds files. */
export async function withFiles(
  files: Files,
  run: (folder: string) => Promise<void>,
): Promise<void> {
  await using folder = await TempFolder.make(files);
  await run(folder.path);
}

/** What is in a folder, sorted. */
export async function namesIn(folder: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name).sort();
}
