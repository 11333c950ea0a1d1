/**
 * Loaded before a Sluice under measurement (`NODE_OPTIONS=--import=…`), in its process, its children and its threads. Appends a
 * line to the file named by `SLUICE_LOOP_MONITOR` for every event loop iteration with more than a minimum of CPU time.
 *
 * A timer with a period of one millisecond fires once per loop iteration, so the time between two firings is one iteration.
 * The thread's CPU time counts, not the wall-clock time: on a busy machine a thread waits without working.
 *
 * On SIGUSR2 it collects garbage and appends the live memory.
 */
import childProcess from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { threadId, threadName } from 'node:worker_threads'

export type Stretch = {
  readonly pid: number
  readonly threadId: number
  /** Name of the thread, or of a process the last part of its program's path. */
  readonly program: string
  readonly cpuMs: number
  readonly wallMs: number
  readonly endedAtMs: number
}

/** Heap and buffers of the main thread after a collection. */
export type LiveMemory = { readonly pid: number; readonly liveBytes: number; readonly residentBytes: number }

/** Shorter iterations are not recorded. */
const STRETCH_MS_MIN = 8

const file = process.env['SLUICE_LOOP_MONITOR']
if (file !== undefined) {
  monitor(file)
  monitorChildren(file)
  if (threadId === 0) process.on('SIGUSR2', () => reportMemory(file))
}

/** Children of Sluice inherit neither variable, as they inherit no secret. */
function monitorChildren(path: string): void {
  const { fork } = childProcess
  childProcess.fork = ((module: string, args: readonly string[], options: childProcess.ForkOptions) => {
    const env = { ...options.env, NODE_OPTIONS: process.env['NODE_OPTIONS'], SLUICE_LOOP_MONITOR: path }
    return fork(module, args, { ...options, env })
  }) as typeof fork
  syncBuiltinESMExports()
}

function reportMemory(path: string): void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const { heapUsed, external, rss } = process.memoryUsage()
  const memory: LiveMemory = { pid: process.pid, liveBytes: heapUsed + external, residentBytes: rss }
  appendFileSync(path, `${JSON.stringify(memory)}\n`)
}

function monitor(path: string): void {
  const program = threadId === 0 ? ((process.argv[1] ?? '').split('/').at(-1) ?? '') : String(threadName)
  let cpu = process.threadCpuUsage()
  let wallMs = performance.now()
  setInterval(() => {
    const used = process.threadCpuUsage(cpu)
    const nowMs = performance.now()
    const cpuMs = (used.user + used.system) / 1000
    if (cpuMs >= STRETCH_MS_MIN) {
      const stretch: Stretch = {
        pid: process.pid,
        threadId,
        program,
        cpuMs: Math.round(cpuMs * 10) / 10,
        wallMs: Math.round((nowMs - wallMs) * 10) / 10,
        endedAtMs: Date.now(),
      }
      appendFileSync(path, `${JSON.stringify(stretch)}\n`)
    }
    cpu = process.threadCpuUsage()
    wallMs = performance.now()
  }, 1).unref()
}
