import type { Clock, Timer } from '../../core/clock.ts'
import { parseAddressPort } from '../../platform/net/ip-range.ts'
import { objectToAddress } from '../../platform/net/pinned-address.ts'
import type { CallNode } from '../../upstreams/call-node.ts'
import { type Contacts, type Leader, readContacts } from './contacts.ts'

/** The upcoming leaders and their TPU QUIC addresses. */
export type Leaders = Disposable & {
  /** The current leader and the following ones, without those whose address is unknown. Of leaders with the same address, that of a relay, the first. */
  next(count: number): readonly Leader[]
  /** Nodes with an address, which may not be allowed. */
  readonly known: number
}

export type LeadersDeps = {
  readonly callNode: CallNode
  /** The newest slot that any node has reported. */
  slot(): number
  /** The length of a slot. */
  readonly slotMs: () => number
  readonly clock: Clock
  readonly allowPrivate: boolean
}

const POLL_MS = 400
const CALL_MS = 5000
/** The slots of this time are requested at once, and those of the second are always known ahead. */
const REQUESTED_MS = 400_000
const AHEAD_MS = 80_000
/** A node returns no more. It returns an error beyond the next epoch: on an error half as many are requested, and twice as many after a success. */
const REQUESTED_SLOTS_MAX = 5000
/** The shortest epoch. */
const REQUESTED_SLOTS_MIN = 32
const CONTACTS_EVERY_MS = 60_000
const RETRY_MS = 2000
/** Slots that a leader has in a row (agave: NUM_CONSECUTIVE_LEADER_SLOTS). */
const LEADER_SLOTS = 4
/** A leader has four slots in a row, so this many slots hold at least 32 leaders. */
const SEARCH_SLOTS = 256
/** Four leaders: nodes that report no slot for longer may be on a chain that has stopped. */
const UNREPORTED_SLOTS_MAX = 16

/** Polls a part of the leader schedule and the addresses of the cluster from an upstream node. */
export function startLeaders({ callNode, slot, slotMs, clock, allowPrivate }: LeadersDeps): Leaders {
  let firstSlot = 0
  let schedule: readonly string[] = []
  let requestedMax = REQUESTED_SLOTS_MAX
  let contacts: Contacts | undefined
  let scheduleDueMs = 0
  let contactsDueMs = 0
  let isClosed = false
  let isAsking = false
  let reported = { slot: 0, atMs: 0 }
  /** Cache of `next`, which is called for every transaction and changes once per slot. */
  let found = { slot: -1, byCount: new Map<number, readonly Leader[]>() }

  const known = () => contacts?.size ?? 0

  /** Slots pass by time, also while a leader is absent or the nodes are late to report; without that, past leaders would be sent to. */
  function currentSlot(): number {
    const newest = slot()
    const nowMs = clock.monotonicMs()
    if (newest !== reported.slot) reported = { slot: newest, atMs: nowMs }
    return newest + Math.min(UNREPORTED_SLOTS_MAX, Math.floor((nowMs - reported.atMs) / slotMs()))
  }

  /** The list comes from a node: it must not direct connections into the operator's own network. */
  function addressOf(text: string): { ip: string; port: number } | undefined {
    const address = parseAddressPort(text)
    return address === undefined || objectToAddress(address.ip, allowPrivate) !== undefined ? undefined : address
  }

  function find(fromSlot: number, count: number): readonly Leader[] {
    const identities = new Set<string>()
    const next = new Map<string, Leader>()
    const from = Math.max(0, fromSlot - firstSlot)
    for (let at = from; at < Math.min(schedule.length, from + SEARCH_SLOTS) && identities.size < count; at++) {
      const leader = contacts?.find(schedule[at] as string)
      if (leader === undefined) continue
      identities.add(leader.identity)
      if (!next.has(leader.address)) next.set(leader.address, leader)
    }
    return [...next.values()]
  }

  async function poll(): Promise<void> {
    const nowMs = clock.monotonicMs()
    const now = slot()
    if (now === 0 || isAsking) return
    isAsking = true
    try {
      if (nowMs >= contactsDueMs) {
        contactsDueMs = nowMs + RETRY_MS
        const reported = readContacts(await callNode('getClusterNodes', [], CALL_MS), addressOf)
        if (reported !== undefined) {
          contacts = reported
          found = { slot: -1, byCount: new Map() }
          contactsDueMs = nowMs + CONTACTS_EVERY_MS
        }
      }
      const requested = Math.min(requestedMax, Math.ceil(REQUESTED_MS / slotMs()))
      const ahead = Math.min(schedule.length / 2, AHEAD_MS / slotMs())
      const isShort = now < firstSlot || now + ahead > firstSlot + schedule.length
      // Without addresses the schedule is not needed.
      if (isShort && known() > 0 && nowMs >= scheduleDueMs) {
        scheduleDueMs = nowMs + RETRY_MS
        const response = await callNode('getSlotLeaders', [now, requested], CALL_MS)
        const isSchedule = Array.isArray(response) && response.every((one) => typeof one === 'string')
        requestedMax = isSchedule
          ? Math.min(REQUESTED_SLOTS_MAX, 2 * requested)
          : Math.max(REQUESTED_SLOTS_MIN, Math.floor(requested / 2))
        // After failures less is requested than is known already.
        const isShorter = now >= firstSlot && isSchedule && now + response.length < firstSlot + schedule.length
        if (isSchedule && !isShorter) {
          firstSlot = now
          schedule = response as string[]
          found = { slot: -1, byCount: new Map() }
        }
      }
    } finally {
      isAsking = false
    }
  }

  const timer: Timer = clock.setRepeating(POLL_MS, () => {
    if (!isClosed) void poll()
  })
  timer.unref?.()

  return {
    next(count) {
      const now = currentSlot()
      if (found.slot !== now) found = { slot: now, byCount: new Map() }
      const leaders = found.byCount.get(count) ?? find(now, count)
      found.byCount.set(count, leaders)
      return leaders
    },
    get known() {
      return known()
    },
    [Symbol.dispose]() {
      isClosed = true
      timer.cancel()
    },
  }
}

/** How many leaders have their slots in this time. */
export function leadersWithin(timeMs: number, slotMs: number): number {
  return Math.ceil(timeMs / (LEADER_SLOTS * slotMs))
}
