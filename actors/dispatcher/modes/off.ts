/**
 * OFF: every worker produces the whole dataset, each in an order of its own.
 *
 * @module
 */
import { Mode } from "./mode.ts";

/** See the module. */
export class OffMode extends Mode {}
