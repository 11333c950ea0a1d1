import type { Clock } from '../../core/clock.ts'
import type { RedisLink, RedisOutcome } from '../../platform/db/redis.ts'
import type { QuotaMemory } from './memory.ts'
import { PERMIT_SCRIPT, type PublishedPermits, parsePermits, permitArgs } from './permit-script.ts'
import type { Heartbeat } from './redis-script.ts'

/** Subscriptions in one run of the script, and cells examined for them before the event loop gets its turn. */
const SUBSCRIPTIONS_MAX = 256
const EXAMINED_MAX = 2048
/** The shortest time between two exchanges, so that refused attempts cannot cause one each. */
const PAUSE_MS = 2
/** With each heartbeat so many subscriptions get the sum of the other processes again, from so many cells. */
const REFRESHED_MAX = 4096
const REFRESH_EXAMINED_MAX = 65_536

export type PermitExchangeOptions = {
  readonly keyPrefix: string
  readonly processId: string
  /** The permits of a process without heartbeats are released after this time. */
  readonly silenceMsMax: number
  readonly processesAssumed: number
}

export type PermitExchangeDeps = {
  readonly redis: Pick<RedisLink, 'run'>
  readonly memory: QuotaMemory
  readonly clock: Clock
  onFailed(outcome: RedisOutcome): void
}

export type PermitExchange = {
  /** Where the permits of this process are on the server. */
  readonly key: string
  /** Publishes what has changed. */
  send(): void
  /** The same, where a thread has requested it. */
  sendRequested(): void
  joined(heartbeat: Heartbeat): void
  lost(): void
}

/**
 * One set of permits for several processes. Each publishes how many it has of each subscription and gets the sum of the others, without waiting for it:
 * it admits while its own and the others' are below the limit, and may be ahead of what it has published by one chunk. With P processes, and
 * chunk = ⌈limit ÷ 2P⌉,
 *
 *     open ≤ limit + P × chunk
 *
 * However old a process's sum of the others is, it is ahead of the server by at most one chunk, and the reply to its next exchange contains everything
 * that was published before. See docs/decisions/0004-quota-leases.md.
 *
 * While the server is unreachable, a process keeps its permits and opens further ones up to limit ÷ P. The same holds on a server that has lost its
 * data, until every process has had the time to publish again.
 */
export function createPermitExchange(options: PermitExchangeOptions, deps: PermitExchangeDeps): PermitExchange {
  const { keyPrefix, processId, silenceMsMax } = options
  const { redis, memory, clock } = deps
  const { permitTable, sharing } = memory
  const keyStart = `${keyPrefix}:permits:`
  const keys = [`${keyPrefix}:quota-processes`, `${keyStart}${processId}`]
  let processes = options.processesAssumed
  let isUp = false
  let isRunning = false
  let isRequested = false
  let refreshAt = 1
  sharing.setMode('local', processes)

  async function run(): Promise<void> {
    isRunning = true
    do {
      isRequested = false
      for (let isMore = true; isMore && isUp; ) {
        const cells = permitTable.takeChanged(memory.cellsEnd, EXAMINED_MAX)
        if (cells.length === 0) break
        await publish(cells)
        isMore = cells.length >= EXAMINED_MAX
        await new Promise<void>((resolve) => clock.setTimer(PAUSE_MS, resolve).unref?.())
      }
    } while (isRequested && isUp)
    isRunning = false
  }

  async function publish(cells: readonly number[]): Promise<void> {
    const changed: (PublishedPermits & { readonly cell: number })[] = []
    for (const cell of cells) {
      const counts = memory.takePermits(cell)
      if (counts !== undefined) changed.push({ cell, id: memory.nameOf(cell), counts })
    }
    for (let from = 0; from < changed.length; from += SUBSCRIPTIONS_MAX) {
      const batch = changed.slice(from, from + SUBSCRIPTIONS_MAX)
      const outcome = await redis.run(PERMIT_SCRIPT, keys, permitArgs({ processId, silenceMsMax, keyStart }, batch))
      const others = outcome.ok ? parsePermits(outcome.reply, batch.length) : undefined
      if (others === undefined) {
        for (const { cell } of changed.slice(from)) permitTable.markChanged(cell)
        deps.onFailed(outcome)
        return
      }
      for (const [at, { cell, counts }] of batch.entries()) sharing.published(cell, counts, others[at] as number[])
    }
  }

  /** Other processes open and close permits of subscriptions for which nothing changes here. */
  function markListed(): void {
    const end = memory.cellsEnd
    let marked = 0
    for (let seen = 0; seen < Math.min(end, REFRESH_EXAMINED_MAX) && marked < REFRESHED_MAX; seen++) {
      refreshAt = refreshAt + 1 < end ? refreshAt + 1 : 1
      if (!sharing.isListed(refreshAt)) continue
      permitTable.markChanged(refreshAt)
      marked += 1
    }
  }

  function send(): void {
    isRequested = true
    if (isUp && !isRunning) void run()
  }

  return {
    key: keys[1] as string,
    send,
    sendRequested() {
      if (sharing.takeRequest()) send()
    },
    joined(heartbeat) {
      if (!isUp || heartbeat.isNew) {
        sharing.forget(memory.cellsEnd)
        permitTable.markAllChanged(memory.cellsEnd)
      } else markListed()
      isUp = true
      const isSettled = heartbeat.ageMs >= silenceMsMax
      // A server that is new knows of few processes yet.
      processes = isSettled ? heartbeat.processes : Math.max(processes, heartbeat.processes)
      sharing.setMode(isSettled ? 'shared' : 'settling', processes)
      send()
    },
    lost() {
      isUp = false
      sharing.setMode('local', processes)
    },
  }
}
