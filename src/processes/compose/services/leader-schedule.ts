import type { Clock, Timer } from '../../../core/clock.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import type { LeaderRange } from '../../../shreds/relay/leaders.ts'
import type { LeaderSchedule } from '../../../shreds/service.ts'
import { createCallNode } from '../../../upstreams/call-node.ts'
import type { Upstream } from '../../../upstreams/upstream.ts'

/** The leader schedule from the upstream nodes: this epoch, and the next one when it is available. Nodes of another chain replace it. */
export type FollowedLeaders = LeaderSchedule & {
  follow(upstream: Pick<Upstream, 'forward'>, deps: { readonly clock: Clock; readonly log: Logger }): Disposable
}

/** Polling intervals before and after the first schedule is known. */
const SOON_MS = 1000
const LATER_MS = 60_000
const RESPONSE_MS = 20_000
/** An epoch of a public cluster has 432,000 slots. */
const EPOCH_SLOTS_MAX = 2_000_000
/** The previous epoch, this one and the next. */
const EPOCHS_MAX = 3

export function createLeaderSchedule(): FollowedLeaders {
  const known = new Map<number, LeaderRange>()
  const listeners = new Set<() => void>()
  /** The genesis hash of the chain whose epochs are known, and another one that was seen once: a single node may be on another chain by mistake. */
  let genesisHash: string | undefined
  let seenOnce: string | undefined

  function keep(range: LeaderRange): void {
    known.set(range.fromSlot, range)
    const distanceOf = (fromSlot: number): number => Math.abs(fromSlot - range.fromSlot)
    for (const fromSlot of known.keys()) if (distanceOf(fromSlot) > 2 * EPOCH_SLOTS_MAX) known.delete(fromSlot)
    // The farthest, which are not always the lowest: nodes without a genesis hash may have changed to a chain of lower slots.
    const farthestFirst = [...known.keys()].toSorted((a, b) => distanceOf(b) - distanceOf(a))
    for (const fromSlot of farthestFirst.slice(0, -EPOCHS_MAX)) known.delete(fromSlot)
    for (const listener of listeners) listener()
  }

  /** Whether the nodes have the chain of before, another one, whose leaders are not known, or one of them has another one. */
  function compareChain(hash: unknown): 'same' | 'other' | 'doubtful' {
    if (typeof hash !== 'string') return 'same'
    const isConfirmed = hash === seenOnce
    seenOnce = hash
    genesisHash ??= hash
    if (hash === genesisHash) return 'same'
    if (!isConfirmed) return 'doubtful'
    genesisHash = hash
    known.clear()
    for (const listener of listeners) listener()
    return 'other'
  }

  return {
    ranges: () => [...known.values()],
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    follow(upstream, { clock, log }) {
      const callNode = createCallNode(upstream, clock)
      let timer: Timer | undefined
      let isClosed = false

      /** False where it has to be repeated soon. */
      async function look(): Promise<boolean> {
        const [hash, epoch] = await Promise.all([
          callNode('getGenesisHash', [], RESPONSE_MS),
          callNode('getEpochInfo', [{ commitment: 'processed' }], RESPONSE_MS),
        ])
        if (isClosed) return true
        const chain = compareChain(hash)
        if (chain === 'doubtful') return false
        if (chain === 'other') log.info({ genesisHash }, 'the nodes have another chain: its leader schedule is loaded')
        const info = epochOf(epoch)
        for (const fromSlot of info === undefined ? [] : [info.firstSlot, info.firstSlot + info.slots]) {
          if (info === undefined || known.has(fromSlot)) continue
          const range = rangeOf(await callNode('getLeaderSchedule', [fromSlot], RESPONSE_MS), fromSlot, info.slots)
          if (range === undefined || isClosed) continue
          keep(range)
          log.info({ fromSlot, toSlot: range.toSlot, leaders: range.identities.length }, 'leader schedule loaded')
        }
        return known.size > 0
      }

      async function lookAgain(): Promise<void> {
        const isDone = await look()
        if (isClosed) return
        timer = clock.setTimer(isDone ? LATER_MS : SOON_MS, () => void lookAgain())
        timer.unref?.()
      }
      void lookAgain()
      return {
        [Symbol.dispose]() {
          isClosed = true
          timer?.cancel()
        },
      }
    },
  }
}

function epochOf(response: unknown): { firstSlot: number; slots: number } | undefined {
  if (typeof response !== 'object' || response === null) return undefined
  const { absoluteSlot, slotIndex, slotsInEpoch } = response as Record<string, unknown>
  if (![absoluteSlot, slotIndex, slotsInEpoch].every(Number.isSafeInteger)) return undefined
  const slots = Number(slotsInEpoch)
  return slots > 0 && slots <= EPOCH_SLOTS_MAX
    ? { firstSlot: Number(absoluteSlot) - Number(slotIndex), slots }
    : undefined
}

/** From the response of getLeaderSchedule: slot offsets in the epoch by identity. */
function rangeOf(response: unknown, fromSlot: number, slots: number): LeaderRange | undefined {
  if (typeof response !== 'object' || response === null) return undefined
  const leaderOfSlot = new Uint32Array(slots)
  const identities = Object.keys(response)
  for (const [position, led] of Object.values(response as Record<string, unknown>).entries()) {
    if (!Array.isArray(led)) return undefined
    for (const offset of led)
      if (Number.isInteger(offset) && offset >= 0 && offset < slots) leaderOfSlot[offset] = position + 1
  }
  return { fromSlot, toSlot: fromSlot + slots, identities, leaderOfSlot }
}
