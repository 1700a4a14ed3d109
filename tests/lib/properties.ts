/**
 * fast-check with one seed, so that a test that passes here passes everywhere. Other cases:
 * `deno test -P --no-check tests/ -- --property-seed 7`.
 */
import fc from "fast-check";

const OPTION = "--property-seed";
const at = Deno.args.indexOf(OPTION);
const seed = at < 0 ? 1 : Number(Deno.args[at + 1]);
if (!Number.isInteger(seed)) throw new Error(`${OPTION} needs an integer: ${Deno.args[at + 1]}`);

fc.configureGlobal({ seed });

export default fc;
