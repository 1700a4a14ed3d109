/** Finds another Deno on its PATH, in the folder that it is given, than the one that it may run. */
import { ChildProcess } from "../../../platform/process/child_process.ts";
import { LeatError } from "../../../core/error.ts";

Deno.env.set("PATH", Deno.args[0]!);
try {
  new ChildProcess({ name: "runner", program: import.meta.url });
} catch (error) {
  const { code, message } = LeatError.from(error);
  console.log(code, message);
}
