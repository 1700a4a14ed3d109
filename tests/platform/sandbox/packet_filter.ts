/** Runs a program of the kernel's packet filter, for tests on machines of any architecture. */

/** A system call as a filter sees it. */
export interface FilteredCall {
  readonly number: number;
  readonly architecture: number;
  readonly args?: readonly bigint[];
}

/** The result of a filter for a call: an outcome of linux/seccomp.h. */
export function filtered(
  program: Uint8Array<ArrayBuffer>,
  { number, architecture, args = [] }: FilteredCall,
): number {
  const data = new DataView(new ArrayBuffer(64));
  data.setUint32(0, number, true);
  data.setUint32(4, architecture, true);
  for (const [i, arg] of args.entries()) data.setBigUint64(16 + 8 * i, arg, true);
  const code = new DataView(program.buffer, program.byteOffset, program.byteLength);
  let accumulator = 0;
  for (let at = 0; at < program.byteLength; at += 8) {
    const value = code.getUint32(at + 4, true);
    const jump = (isSo: boolean) => at += 8 * code.getUint8(at + (isSo ? 2 : 3));
    switch (code.getUint16(at, true)) {
      case 0x20: // BPF_LD | BPF_W | BPF_ABS
        accumulator = data.getUint32(value, true);
        break;
      case 0x54: // BPF_ALU | BPF_AND | BPF_K
        accumulator = (accumulator & value) >>> 0;
        break;
      case 0x15: // BPF_JMP | BPF_JEQ | BPF_K
        jump(accumulator === value);
        break;
      case 0x25: // BPF_JMP | BPF_JGT | BPF_K
        jump(accumulator > value);
        break;
      case 0x45: // BPF_JMP | BPF_JSET | BPF_K
        jump((accumulator & value) !== 0);
        break;
      case 0x06: // BPF_RET | BPF_K
        return value;
      default:
        throw new Error(`No instruction: ${code.getUint16(at, true)}`);
    }
  }
  throw new Error("The program ends without an outcome");
}
