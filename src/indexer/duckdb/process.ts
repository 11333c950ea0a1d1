import { type Child, type ChildExit, startChild } from '../../platform/process/child.ts'
import type { StoreProgress } from '../store.ts'
import type { FromStoreProcess, StoreOptions, StoreRequest, StoreResponses, ToStoreProcess } from './protocol.ts'

/** The process is gone and what was asked of it may or may not have happened. */
export class StoreGone extends Error {
  override readonly name = 'StoreGone'
  /** Whether it ended by itself or was killed while it was at the request; not when it was closed, or gone before. */
  readonly wasAtWork: boolean

  constructor(message: string, { wasAtWork = false }: { readonly wasAtWork?: boolean } = {}) {
    super(message)
    this.wasAtWork = wasAtWork
  }
}

/** The database in its process, from start to end; who wants it after that starts another. */
export type StoreProcess = AsyncDisposable & {
  readonly pid: number | undefined
  /** As far as the store had come when it was opened. */
  readonly progress: StoreProgress
  /** Rejects with StoreGone when the process ends before it answers, with any other error when it says no. */
  ask<Kind extends Exclude<StoreRequest['kind'], 'open'>>(
    request: Extract<StoreRequest, { kind: Kind }>,
  ): Promise<StoreResponses[Kind]>
  residentBytes(): number | undefined
  kill(): void
  /** Resolves when the process has ended, by whatever cause. */
  readonly ended: Promise<ChildExit>
}

/** Planning a query holds one of them, and ingest must never wait for one. */
const POOL_THREADS = 24
/** The engine's own allocator (jemalloc): memory that is free goes back to the system after a second rather than ten. */
const ENGINE_MEMORY = 'dirty_decay_ms:1000,muzzy_decay_ms:0'

/** Resolves when the database is open; rejects when it cannot be opened. */
export async function startStoreProcess(options: StoreOptions): Promise<StoreProcess> {
  const child: Child = startChild(
    { name: 'child', beside: import.meta.url },
    {
      env: {
        UV_THREADPOOL_SIZE: String(POOL_THREADS),
        MALLOC_ARENA_MAX: '2',
        DUCKDB_JE_MALLOC_CONF: ENGINE_MEMORY,
      },
      nodeFlags: ['--max-semi-space-size=4'],
    },
  )
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  const ended = Promise.withResolvers<ChildExit>()
  let isGone = false
  let isClosing = false
  let seq = 0

  child.onMessage((message) => {
    const reply = message as FromStoreProcess
    const asked = waiting.get(reply.seq)
    waiting.delete(reply.seq)
    if (reply.ok) asked?.resolve(reply.response)
    else asked?.reject(new Error(reply.message))
  })
  child.onExit((exit) => {
    isGone = true
    const wasAtWork = !isClosing
    for (const asked of waiting.values())
      asked.reject(new StoreGone(`the database process ended: ${describe(exit)}`, { wasAtWork }))
    waiting.clear()
    ended.resolve(exit)
  })

  function ask(request: StoreRequest): Promise<unknown> {
    if (isGone) return Promise.reject(new StoreGone('the database process has ended'))
    const asked = Promise.withResolvers<unknown>()
    waiting.set(++seq, asked)
    child.send({ seq, request } satisfies ToStoreProcess)
    return asked.promise
  }

  async function end(): Promise<void> {
    isClosing = true
    child.kill()
    await ended.promise
  }

  let progress: StoreProgress
  try {
    progress = (await ask({ kind: 'open', options })) as StoreProgress
  } catch (cause) {
    await end()
    throw cause
  }
  return {
    pid: child.pid,
    progress,
    ask: ask as StoreProcess['ask'],
    residentBytes: () => child.residentBytes(),
    kill: () => child.kill(),
    ended: ended.promise,
    [Symbol.asyncDispose]: end,
  }
}

function describe({ code, signal }: ChildExit): string {
  return signal === null ? `exit code ${code}` : `signal ${signal}`
}
