/** The remote side of `comlink_calls.ts`: a function of one number. */

import { expose } from "comlink";

expose((value: number) => value + 1);
