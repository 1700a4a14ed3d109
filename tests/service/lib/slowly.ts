/** The slow function of `fixture_slow.ts`, for pipelines: workers import its module. */
import { udf } from "../../../mod.ts";
import type * as slow from "./fixture_slow.ts";

export const slowly = udf<typeof slow.slowly>(import.meta.resolve("./fixture_slow.ts"), "slowly");
