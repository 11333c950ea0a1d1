/**
 * Loaded before a Sluice under measurement (`NODE_OPTIONS=--import=…`), in its process, its children and its threads. Appends a
 * line to the file named by `SLUICE_LOOP_MONITOR` for every stretch in which an event loop ran without a pause.
 *
 * A timer that is due each millisecond fires once in every turn of the loop, so between two firings lies one turn. The
 * CPU time of the thread counts, not the time on the wall: on a busy machine a thread waits without having any work.
 */
import { appendFileSync } from 'node:fs'
import { threadId } from 'node:worker_threads'

export type Stretch = {
  readonly pid: number
  readonly threadId: number
  /** Last part of the program's path, which names a child process. */
  readonly program: string
  readonly cpuMs: number
  readonly wallMs: number
  readonly endedAtMs: number
}

/** Shorter stretches are not worth a line. */
const STRETCH_MS_MIN = 8

const file = process.env['SLUICE_LOOP_MONITOR']
if (file !== undefined) monitor(file)

function monitor(path: string): void {
  const program = (process.argv[1] ?? '').split('/').at(-1) ?? ''
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
