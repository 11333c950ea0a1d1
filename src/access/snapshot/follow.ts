import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { type AuditHead, CHAIN_START, hashLine } from '../audit/line.ts'
import type { AccessStore, AccessView } from '../store/store.ts'
import { SNAPSHOT_KEYS, SNAPSHOT_KINDS, Snapshot } from './snapshot.ts'

export type FollowDeps = {
  readonly log: Logger
  readonly clock: Clock
}

export type StoreFollower = AsyncDisposable & {
  current(): Snapshot
  /** Calls the listener with each new snapshot once it is the current one. There is one listener. */
  onSwap(listener: (snapshot: Snapshot) => void): void
}

/** Retry interval while the store cannot be read; the last snapshot stays in use. */
const RETRY_MS = 500

/** Loads the store into a snapshot and replaces it after each change of the store, reading only the changed records. */
export async function followStore(store: AccessStore, { log, clock }: FollowDeps): Promise<StoreFollower> {
  let notifySwap: ((snapshot: Snapshot) => void) | undefined
  let current = await loadSince(store, { snapshot: Snapshot.empty(), head: CHAIN_START, isContinued: true })
  let hasMoved = false
  let refreshing: Promise<void> | undefined
  let retry: Timer | undefined
  let failing = false
  let closed = false

  async function refresh(): Promise<void> {
    try {
      while (hasMoved && !closed) {
        hasMoved = false
        const next = await loadSince(store, current)
        if (next.head.hash === current.head.hash) continue
        if (!next.isContinued)
          log.warn({ revision: next.snapshot.revision }, 'the store was replaced by one with another history: reloaded')
        current = next
        notifySwap?.(next.snapshot)
      }
      if (failing) log.info({ revision: current.snapshot.revision }, 'the store is followed again')
      failing = false
    } catch (err) {
      if (!failing)
        log.warn(
          { err, revision: current.snapshot.revision },
          'the store cannot be read: the last snapshot stays in use',
        )
      failing = true
      hasMoved = true
      if (!closed) retry = clock.setTimer(RETRY_MS, start)
    } finally {
      refreshing = undefined
    }
  }

  function start(): void {
    refreshing ??= refresh()
  }

  const following = await store.follow(() => {
    hasMoved = true
    start()
  })
  return {
    current: () => current.snapshot,
    onSwap(listener) {
      notifySwap = listener
    },
    async [Symbol.asyncDispose]() {
      closed = true
      retry?.cancel()
      await following[Symbol.asyncDispose]()
      await refreshing
    },
  }
}

/** A snapshot, and the last line of the audit log at its revision, which identifies the history of the store up to it. */
type Loaded = { readonly snapshot: Snapshot; readonly head: AuditHead; readonly isContinued: boolean }

async function loadSince(store: AccessStore, known: Loaded): Promise<Loaded> {
  return store.read(async (view) => {
    const revision = await view.revision()
    const head = await view.auditHead()
    // A store restored from a backup, or one that lost commits in a failover, has other records under revisions that were read before.
    const isContinued = await hasLine(view, known.head)
    const base = isContinued ? known.snapshot : Snapshot.empty()
    const draft = base.draft()
    for (const kind of SNAPSHOT_KINDS) {
      for await (const page of view.packedSince(kind, SNAPSHOT_KEYS[kind] as never, base.revision))
        draft.add(kind, page)
    }
    return { snapshot: draft.finish(revision), head, isContinued }
  })
}

async function hasLine(view: AccessView, { seq, hash }: AuditHead): Promise<boolean> {
  if (seq === CHAIN_START.seq) return true
  for await (const line of view.auditLines(seq)) return hashLine(line) === hash
  return false
}
