/**
 * The numbers of the system calls that a confined process never needs, or only with some arguments.
 * Landlock does not cover calls that change a file's mode, owner or times, even through links.
 */

export type Architecture = typeof Deno.build.arch;

/** The number of a call on x86_64 and on aarch64; `undefined` if the architecture lacks it. */
type Numbers = readonly [x86_64: number | undefined, aarch64: number | undefined];

/** Calls from 424 on have the same number on all architectures. */
function everywhere(number: number): readonly [number, number] {
  return [number, number];
}

/** The number of the newest reviewed call, `file_setattr`. Later calls fail with ENOSYS. */
export const NEWEST_CALL = 469;

/** Calls that are denied with any arguments. */
const DENIED: Readonly<Record<string, Numbers>> = {
  // Attributes of files, which Landlock does not check.
  chmod: [90, undefined],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  fchmodat2: everywhere(452),
  chown: [92, undefined],
  fchown: [93, 55],
  lchown: [94, undefined],
  fchownat: [260, 54],
  utime: [132, undefined],
  utimes: [235, undefined],
  futimesat: [261, undefined],
  utimensat: [280, 88],
  setxattr: [188, 5],
  lsetxattr: [189, 6],
  fsetxattr: [190, 7],
  setxattrat: everywhere(463),
  removexattr: [197, 14],
  lremovexattr: [198, 15],
  fremovexattr: [199, 16],
  removexattrat: everywhere(466),
  file_setattr: everywhere(469),
  // Landlock checks it only from Linux 6.2 on. ftruncate, for open files, stays allowed.
  truncate: [76, 45],
  // Links and special files.
  symlink: [88, undefined],
  symlinkat: [266, 36],
  link: [86, undefined],
  linkat: [265, 37],
  mknod: [133, undefined],
  mknodat: [259, 33],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  // Other processes.
  fork: [57, undefined],
  vfork: [58, undefined],
  execve: [59, 221],
  ptrace: [101, 117],
  tkill: [200, 130],
  kcmp: [312, 272],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  pidfd_send_signal: everywhere(424),
  pidfd_open: everywhere(434),
  pidfd_getfd: everywhere(438),
  process_madvise: everywhere(440),
  process_mrelease: everywhere(448),
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  setpriority: [141, 140],
  ioprio_set: [251, 30],
  sched_setparam: [142, 118],
  sched_setscheduler: [144, 119],
  sched_setaffinity: [203, 122],
  sched_setattr: [314, 274],
  // Memory and queues that processes can share by name or key.
  shmget: [29, 194],
  shmctl: [31, 195],
  shmat: [30, 196],
  semget: [64, 190],
  semctl: [66, 191],
  semtimedop: [220, 192],
  semop: [65, 193],
  msgget: [68, 186],
  msgctl: [71, 187],
  msgrcv: [70, 188],
  msgsnd: [69, 189],
  mq_open: [240, 180],
  mq_unlink: [241, 181],
  // Memory that the limit of private memory does not count.
  memfd_create: [319, 279],
  memfd_secret: everywhere(447),
  // The identity of this process.
  setuid: [105, 146],
  setgid: [106, 144],
  setreuid: [113, 145],
  setregid: [114, 143],
  setgroups: [116, 159],
  setresuid: [117, 147],
  setresgid: [119, 149],
  setfsuid: [122, 151],
  setfsgid: [123, 152],
  capset: [126, 91],
  personality: [135, 92],
  // Namespaces and mounts.
  unshare: [272, 97],
  setns: [308, 268],
  chroot: [161, 51],
  pivot_root: [155, 41],
  mount: [165, 40],
  umount2: [166, 39],
  open_tree: everywhere(428),
  move_mount: everywhere(429),
  fsopen: everywhere(430),
  fsconfig: everywhere(431),
  fsmount: everywhere(432),
  fspick: everywhere(433),
  mount_setattr: everywhere(442),
  statmount: everywhere(457),
  listmount: everywhere(458),
  open_tree_attr: everywhere(467),
  // Large kernel interfaces with frequent vulnerabilities.
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: everywhere(425),
  io_uring_enter: everywhere(426),
  io_uring_register: everywhere(427),
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  modify_ldt: [154, undefined],
  // The machine.
  iopl: [172, undefined],
  ioperm: [173, undefined],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: everywhere(443),
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  syslog: [103, 116],
  vhangup: [153, 58],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  adjtimex: [159, 171],
  clock_adjtime: [305, 266],
  nfsservctl: [180, 42],
  lookup_dcookie: [212, 18],
};

/** Calls that are allowed only with some arguments. */
const BY_ARGUMENTS = {
  clone: [56, 220],
  clone3: everywhere(435),
  execveat: [322, 281],
  fcntl: [72, 25],
  ioctl: [16, 29],
  kill: [62, 129],
  mmap: [9, 222],
  open: [2, undefined],
  openat: [257, 56],
  openat2: everywhere(437),
  prctl: [157, 167],
  prlimit64: [302, 261],
  rt_sigqueueinfo: [129, 138],
  rt_tgsigqueueinfo: [297, 240],
  socket: [41, 198],
  socketpair: [53, 199],
  tgkill: [234, 131],
} as const satisfies Readonly<Record<string, Numbers>>;

interface Calls {
  readonly denied: readonly number[];
  readonly byArguments: {
    readonly [Name in keyof typeof BY_ARGUMENTS]: typeof BY_ARGUMENTS[Name][0 | 1];
  };
}

export function callsOf(architecture: Architecture): Calls {
  const at = architecture === "x86_64" ? 0 : 1;
  const byArguments = Object.entries(BY_ARGUMENTS).map(([name, numbers]) => [name, numbers[at]]);
  return {
    denied: Object.values(DENIED).flatMap((numbers) => numbers[at] ?? []),
    byArguments: Object.fromEntries(byArguments),
  };
}
