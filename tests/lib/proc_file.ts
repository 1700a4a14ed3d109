/**
 * Reads a file of a process below `/proc`; empty if the process has ended. Deno opens these files only
 * with all permissions, so a shell does it.
 */
export async function procFile(pid: number, name: string): Promise<string> {
  const { stdout } = await new Deno.Command("sh", {
    args: ["-c", 'cat "$1"', "sh", `/proc/${pid}/${name}`],
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout);
}
