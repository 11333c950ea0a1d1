import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../telemetry/logger.ts'
import { delay } from './clock.ts'
import { entryUrl } from './entry.ts'

export type ChildExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** A forked process for work that must not block or crash this one. Messages pass by structured clone. Disposing kills it and waits for its exit. */
export type Child = AsyncDisposable & {
  readonly pid: number | undefined
  send(message: unknown): void
  onMessage(listener: (message: unknown) => void): void
  /** Resolves when the process has exited, also when it could not be started. */
  readonly exited: Promise<ChildExit>
  kill(): void
  /** Resident memory by /proc; undefined when the process is gone or /proc is not available. */
  residentBytes(): number | undefined
}

export type ChildOptions = {
  /** The whole environment of the child, beside `childEnv`: it inherits no secret. */
  readonly env?: Readonly<Record<string, string>>
  readonly nodeFlags?: readonly string[]
  /** Default `inherit`. */
  readonly stderr?: 'inherit' | 'ignore'
  readonly watcher?: ChildWatcher | undefined
}

/** Notified of the children of a thread, so that another thread can reap those it leaves behind. */
export type ChildWatcher = { started(pid: number): void; ended(pid: number): void }

/** Forks the file; `entry` is as in `entryUrl`. */
export function startChild(entry: URL, options: ChildOptions = {}): Child {
  const child = fork(fileURLToPath(entryUrl(entry)), [], {
    serialization: 'advanced',
    env: { ...childEnv(), ...options.env },
    // No flag of the parent: a debugger's port or a test runner's file list is not for the child.
    execArgv: [...(options.nodeFlags ?? [])],
    stdio: ['ignore', 'ignore', options.stderr ?? 'inherit', 'ipc'],
  })
  const exited = Promise.withResolvers<ChildExit>()
  if (child.pid !== undefined) options.watcher?.started(child.pid)
  child.once('exit', (code, signal) => {
    if (child.pid !== undefined) options.watcher?.ended(child.pid)
    exited.resolve({ code, signal })
  })
  child.on('error', () => {
    // Without a pid it was never started, and no exit follows. Any other error, such as a failed write, is followed by the exit.
    if (child.pid === undefined) exited.resolve({ code: null, signal: null })
  })
  return {
    pid: child.pid,
    send(message) {
      // A failed write is followed by the exit of the child.
      if (child.connected) child.send(message as object, () => {})
    },
    onMessage: (listener) => void child.on('message', listener),
    exited: exited.promise,
    kill: () => void child.kill('SIGKILL'),
    residentBytes: () => residentBytesOf(child),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited.promise
    },
  }
}

/** A killed process has ended after this time, unless the kernel holds it. */
const REAP_MS = 10_000
const CHECK_MS = 20
/** waitpid(2): return 0 where the process runs. */
const WNOHANG = 1

/**
 * Ends and reaps child processes of a thread that has died. The event loop of a thread reaps only the children that it has started, so without this
 * they would stay as zombies until the process ends.
 */
export async function reapChildren(
  pids: readonly number[],
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<void> {
  if (pids.length === 0) return
  const waitpid = await loadWaitpid()
  // Without the foreign-function interface they end by themselves, and remain in the process table.
  if (waitpid === undefined) return
  const endMs = clock.monotonicMs() + REAP_MS
  const left = new Set(pids)
  for (;;) {
    for (const pid of left) {
      // Zero: it is a child of this process and runs. Below: it is not, because the thread has reaped it.
      if (waitpid(pid) !== 0) left.delete(pid)
      else process.kill(pid, 'SIGKILL')
    }
    if (left.size === 0) return
    if (clock.monotonicMs() >= endMs)
      return log.warn({ pids: [...left] }, 'child processes of a dead thread did not end')
    await delay(clock, CHECK_MS)
  }
}

async function loadWaitpid(): Promise<((pid: number) => number) | undefined> {
  try {
    const { default: koffi } = await import('koffi')
    const waitpid = koffi.load(null).func('int waitpid(int, void *, int)')
    return (pid) => waitpid(pid, null, WNOHANG) as number
  } catch {
    return undefined
  }
}

/** Where compiled source is cached, settings of the allocator, and where Node finds its libraries; the launcher sets them. */
const INHERITED = ['NODE_COMPILE_CACHE', 'MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'LD_LIBRARY_PATH']

/** The variables that every child inherits. */
export function childEnv(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(INHERITED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
}

/**
 * Called in a child once its files are loaded. The next child then need not compile them, nor load the type stripper, which alone takes some 20 MB.
 * Node writes the cache at the end of a process, which a killed child does not reach.
 */
export function keepCompiledSource(): void {
  flushCompileCache()
}

const PAGE_BYTES = 4096

function residentBytesOf({ pid, exitCode }: ChildProcess): number | undefined {
  if (pid === undefined || exitCode !== null) return undefined
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES
  } catch {
    return undefined
  }
}
