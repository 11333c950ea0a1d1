import { type ChildProcess, fork } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

export type ChildExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** A process of our own, forked to do what must not stop or bring down this one. Values pass by structured clone. */
export type Child = {
  readonly pid: number | undefined
  send(message: unknown): void
  onMessage(listener: (message: unknown) => void): void
  /** Called exactly once, also when it never came to life. */
  onExit(listener: (exit: ChildExit) => void): void
  kill(): void
  /** Memory it holds, as the kernel counts it; undefined when it is gone or the kernel does not tell. */
  residentBytes(): number | undefined
}

export type ChildOptions = {
  /** All it gets of an environment, beside `childEnv`: no secret of ours is inherited. */
  readonly env?: Readonly<Record<string, string>>
  readonly nodeFlags?: readonly string[]
}

/** `entry` without its ending: in the published package the files are emitted JavaScript. */
export function startChild(
  entry: { readonly name: string; readonly beside: string },
  options: ChildOptions = {},
): Child {
  const ending = entry.beside.endsWith('.ts') ? '.ts' : '.js'
  const process_ = fork(fileURLToPath(new URL(`./${entry.name}${ending}`, entry.beside)), [], {
    serialization: 'advanced',
    env: { ...childEnv(), ...options.env },
    // No flag of the parent: a debugger's port or a test runner's file list is not for the child.
    execArgv: [...(options.nodeFlags ?? [])],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  let isOver = false
  return {
    pid: process_.pid,
    send(message) {
      // A failure to write shows itself as the exit of the child.
      if (!isOver && process_.connected) process_.send(message as object, () => {})
    },
    onMessage: (listener) => void process_.on('message', listener),
    onExit(listener) {
      const report = (exit: ChildExit): void => {
        if (isOver) return
        isOver = true
        listener(exit)
      }
      process_.on('exit', (code, signal) => report({ code, signal }))
      process_.on('error', () => process_.pid === undefined && report({ code: null, signal: null }))
    },
    kill: () => void process_.kill('SIGKILL'),
    residentBytes: () => residentBytesOf(process_),
  }
}

/** Where compiled source lies, and how memory is taken from the system and given back; the launcher sets them. */
const PASSED_ON = ['NODE_COMPILE_CACHE', 'MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_']

/** What every child inherits. */
export function childEnv(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  return Object.fromEntries(PASSED_ON.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))
}

/**
 * Called in a child once its files are loaded: the next one need not compile them, nor load what strips their types, which alone keeps some 20 MB.
 * Node itself does this at the end of a process, which a child that is killed does not see.
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
