/** Calls a Python function, and prints the error: `fixture_python_call.ts`. */
import { PythonProcesses } from "../../platform/python/python_processes.ts";

const pool = new PythonProcesses("python3").open();
const calls = new Uint8Array();
await pool.run({ file: "any.py", name: "any", calls }).catch(({ message }) => console.log(message));
pool.close();
