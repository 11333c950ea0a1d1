import type { Clock, Timer } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { AccessStore } from '../store/store.ts'
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
  let current = await loadSince(store, Snapshot.empty())
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
        if (next.revision === current.revision) continue
        if (next.revision < current.revision)
          log.warn({ revision: next.revision }, 'the revision of the store went back: reloaded')
        current = next
        notifySwap?.(next)
      }
      if (failing) log.info({ revision: current.revision }, 'the store is followed again')
      failing = false
    } catch (err) {
      if (!failing)
        log.warn({ err, revision: current.revision }, 'the store cannot be read: the last snapshot stays in use')
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
    current: () => current,
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

async function loadSince(store: AccessStore, known: Snapshot): Promise<Snapshot> {
  return store.read(async (view) => {
    const revision = await view.revision()
    // A store restored from a backup has other records under revisions that were read before.
    const base = revision < known.revision ? Snapshot.empty() : known
    const draft = base.draft()
    for (const kind of SNAPSHOT_KINDS) {
      for await (const page of view.packedSince(kind, SNAPSHOT_KEYS[kind] as never, base.revision))
        draft.add(kind, page)
    }
    return draft.finish(revision)
  })
}
