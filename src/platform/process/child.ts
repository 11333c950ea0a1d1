import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
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
}

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
  child.once('exit', (code, signal) => exited.resolve({ code, signal }))
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
