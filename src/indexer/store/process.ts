import { type ChildExit, type ChildWatcher, startChild } from '../../platform/process/child.ts'
import type { FromStoreProcess, StoreOptions, StoreRequest, StoreResponses, ToStoreProcess } from './protocol.ts'
import type { StoreProgress } from './store.ts'

/** The process has ended; a pending request may or may not have taken effect. */
export class StoreGone extends Error {
  override readonly name = 'StoreGone'
  /** Whether the process crashed or was killed during the request; false when it was closed, or had ended before. */
  readonly wasAtWork: boolean

  constructor(message: string, { wasAtWork = false }: { readonly wasAtWork?: boolean } = {}) {
    super(message)
    this.wasAtWork = wasAtWork
  }
}

/** One database process, from its start to its end. A restart makes another. */
export type StoreProcess = AsyncDisposable & {
  readonly pid: number | undefined
  /** Progress of the store when it was opened. */
  readonly progress: StoreProgress
  /** Rejects with StoreGone when the process ends before it responds, and with another error when the request fails. */
  ask<Kind extends Exclude<StoreRequest['kind'], 'open'>>(
    request: Extract<StoreRequest, { kind: Kind }>,
  ): Promise<StoreResponses[Kind]>
  residentBytes(): number | undefined
  kill(): void
  /** Resolves when the process has ended, for any reason. */
  readonly ended: Promise<ChildExit>
}

/** Planning a query takes one of these threads, and ingest must never wait for one. */
const POOL_THREADS = 24
/** The engine's own allocator (jemalloc) returns free memory to the system after one second rather than ten. */
const ENGINE_MEMORY = 'dirty_decay_ms:1000,muzzy_decay_ms:0'

/** Resolves when the database is open; rejects when it cannot be opened, or when `signal` aborts before it is. */
export async function startStoreProcess(
  options: StoreOptions,
  watcher?: ChildWatcher,
  signal?: AbortSignal,
): Promise<StoreProcess> {
  const child = startChild(new URL('./child.ts', import.meta.url), {
    env: { UV_THREADPOOL_SIZE: String(POOL_THREADS), MALLOC_ARENA_MAX: '2', DUCKDB_JE_MALLOC_CONF: ENGINE_MEMORY },
    nodeFlags: ['--max-semi-space-size=2'],
    watcher,
  })
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  let isGone = false
  let isClosing = false
  let seq = 0

  child.onMessage((message) => {
    const reply = message as FromStoreProcess
    const request = pending.get(reply.seq)
    pending.delete(reply.seq)
    if (reply.ok) request?.resolve(reply.response)
    else request?.reject(new Error(reply.message))
  })
  const ended = child.exited.then((exit) => {
    isGone = true
    const error = new StoreGone(`the database process ended: ${describe(exit)}`, { wasAtWork: !isClosing })
    for (const request of pending.values()) request.reject(error)
    pending.clear()
    return exit
  })

  function ask(request: StoreRequest): Promise<unknown> {
    if (isGone) return Promise.reject(new StoreGone('the database process has ended'))
    const response = Promise.withResolvers<unknown>()
    pending.set(++seq, response)
    child.send({ seq, request } satisfies ToStoreProcess)
    return response.promise
  }

  async function close(): Promise<void> {
    isClosing = true
    child.kill()
    await ended
  }

  signal?.addEventListener('abort', child.kill, { once: true })
  try {
    if (signal?.aborted === true) throw new StoreGone('the database process is not needed any more')
    const progress = (await ask({ kind: 'open', options })) as StoreProgress
    signal?.removeEventListener('abort', child.kill)
    return {
      pid: child.pid,
      progress,
      ask: ask as StoreProcess['ask'],
      residentBytes: child.residentBytes,
      kill: child.kill,
      ended,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

function describe({ code, signal }: ChildExit): string {
  return signal === null ? `exit code ${code}` : `signal ${signal}`
}
