import { setPriority } from 'node:os'
import { messageOf } from '../../core/error.ts'

/** How the kernel schedules a thread (sched(7)): `raised` is a smaller nice value, `realtime` is SCHED_FIFO, before all threads without it. */
export const THREAD_PRIORITIES = ['normal', 'raised', 'realtime'] as const
export type ThreadPriority = (typeof THREAD_PRIORITIES)[number]

export type ThreadSchedule = {
  readonly priority: ThreadPriority
  /** The processor that the thread stays on. */
  readonly core?: number | undefined
}

/** What is in effect, and why that is less than what was asked for. */
export type GrantedSchedule = {
  readonly priority: ThreadPriority
  readonly core: number | null
  readonly refused: readonly string[]
}

const RAISED_NICE = -10
const SCHED_FIFO = 1
/** Threads that this one starts do not inherit the policy. */
const SCHED_RESET_ON_FORK = 0x4000_0000
/** cpu_set_t of glibc: 1024 bits. */
const CPU_SET_BYTES = 128
const EPERM = 1

/** Schedules the calling thread. `rank` orders the threads of one priority: the relay runs before the thread that checks signatures for it. */
export async function scheduleThisThread(schedule: ThreadSchedule, rank: 1 | 2): Promise<GrantedSchedule> {
  const refused: string[] = []
  let { priority } = schedule
  let core: number | null = null
  const attempt = async (what: string, change: () => Promise<void> | void): Promise<boolean> => {
    try {
      await change()
      return true
    } catch (error) {
      refused.push(`${what}: ${messageOf(error)}`)
      return false
    }
  }
  if (priority === 'realtime' && !(await attempt('priority realtime', () => setFifo(rank)))) priority = 'raised'
  // On Linux 0 is the calling thread, not the process.
  if (priority === 'raised' && !(await attempt('priority raised', () => setPriority(0, RAISED_NICE + 2 - rank)))) {
    priority = 'normal'
  }
  const { core: wanted } = schedule
  if (wanted !== undefined && (await attempt(`core ${wanted}`, () => setCore(wanted)))) core = wanted
  return { priority, core, refused }
}

async function setFifo(rank: number): Promise<void> {
  const { libc, koffi } = await loadLibc()
  const call = libc.func('int sched_setscheduler(int, int, void *)')
  if (call(0, SCHED_FIFO | SCHED_RESET_ON_FORK, Int32Array.of(rank)) < 0) throw refusal(koffi.errno())
}

async function setCore(core: number): Promise<void> {
  const { libc, koffi } = await loadLibc()
  const call = libc.func('int sched_setaffinity(int, size_t, void *)')
  const cores = new Uint8Array(CPU_SET_BYTES)
  cores[core >> 3] = 1 << (core & 7)
  if (call(0, CPU_SET_BYTES, cores) < 0) throw refusal(koffi.errno())
}

async function loadLibc() {
  if (process.platform !== 'linux') throw new Error(`not possible on ${process.platform}`)
  const { default: koffi } = await import('koffi')
  return { koffi, libc: koffi.load(null) }
}

function refusal(errno: number): Error {
  return new Error(errno === EPERM ? 'not permitted' : `error ${errno} of the kernel`)
}
