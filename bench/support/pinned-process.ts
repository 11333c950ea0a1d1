import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** A process pinned to a core, or to a list of cores such as `0,1`. */
export type PinnedProcess = AsyncDisposable & {
  readonly child: ChildProcess
  /** CPU time of the process and its children so far, in microseconds. */
  cpuMicros(): number
  rssBytes(): number
  /** The first line it prints. */
  firstLine(): Promise<string>
}

export type PinnedOptions = {
  readonly stdin?: 'ignore' | 'pipe'
  /** Added to that of the bench, for load that gives way to what is measured. */
  readonly niceness?: number
}

/** Linux counts CPU time in ticks of 10 ms. */
const TICK_MICROS = 10_000
const PAGE_BYTES = 4096

export function startPinned(
  core: number | string,
  command: string,
  args: readonly string[],
  { stdin = 'ignore', niceness = 0 }: PinnedOptions = {},
): PinnedProcess {
  const words = ['-c', String(core), 'nice', '-n', String(niceness), command, ...args]
  const child = spawn('taskset', words, { stdio: [stdin, 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const family = () => [child.pid as number, ...childrenOf(child.pid as number)]
  return {
    child,
    cpuMicros: () => family().reduce((sum, pid) => sum + ticksOf(pid) * TICK_MICROS, 0),
    rssBytes: () => family().reduce((sum, pid) => sum + Number(statFields(pid)[21] ?? 0) * PAGE_BYTES, 0),
    async firstLine() {
      for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) return line
      throw new Error(`${command} ended without output`)
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
      await exited
      clearTimeout(timer)
    },
  }
}

/** Pins the bench itself, and children that are not pinned, to this core. */
export function pinSelf(core: number): void {
  spawnSync('taskset', ['-a', '-p', '-c', String(core), String(process.pid)], { stdio: 'ignore' })
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    )
  } catch {
    return []
  }
}

/** The fields of /proc/PID/stat after the name, which may contain spaces; proc(5) numbers them from 3. */
function statFields(pid: number): string[] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

function ticksOf(pid: number): number {
  const fields = statFields(pid)
  return Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
}
