import type { Clock, Timer } from '../../core/clock.ts'
import { parseAddressPort } from '../../platform/net/ip-range.ts'
import { objectToAddress } from '../../platform/net/pinned-address.ts'
import type { AskNode } from './node-call.ts'

export type Leader = { readonly identity: string; readonly ip: string; readonly port: number }

/** Who produces the coming blocks, and where their transaction ports are. */
export type Leaders = Disposable & {
  /** The leader of now and those after it, each once, as far as their address is known. */
  next(count: number): readonly Leader[]
  readonly known: number
}

export type LeadersDeps = {
  readonly ask: AskNode
  /** The newest slot that any node has shown. */
  slot(): number
  readonly clock: Clock
  readonly allowPrivate: boolean
}

const LOOK_MS = 400
const ASK_MS = 5000
/** Slots asked for at once, and how many have to be known ahead. A node answers up to 5000. */
const SLOTS_ASKED = 1000
const SLOTS_AHEAD = 200
const CONTACTS_EVERY_MS = 60_000
const RETRY_MS = 2000
const CONTACTS_MAX = 20_000
/** A leader has four slots in a row, so this many slots hold at least 32 leaders. */
const SEARCH_SLOTS = 256

/** Keeps a stretch of the schedule and the cluster's addresses at hand, asked of an upstream node. */
export function startLeaders({ ask, slot, clock, allowPrivate }: LeadersDeps): Leaders {
  let firstSlot = 0
  let schedule: readonly string[] = []
  let contacts = new Map<string, Leader>()
  let scheduleDueMs = 0
  let contactsDueMs = 0
  let isClosed = false
  let isAsking = false
  /** Asked for with every transaction, and the same for a whole slot. */
  let found = { slot: -1, byCount: new Map<number, readonly Leader[]>() }

  function find(fromSlot: number, count: number): readonly Leader[] {
    const next = new Map<string, Leader>()
    const from = Math.max(0, fromSlot - firstSlot)
    for (let at = from; at < Math.min(schedule.length, from + SEARCH_SLOTS) && next.size < count; at++) {
      const leader = contacts.get(schedule[at] as string)
      if (leader !== undefined) next.set(leader.identity, leader)
    }
    return [...next.values()]
  }

  async function look(): Promise<void> {
    const nowMs = clock.monotonicMs()
    const now = slot()
    if (now === 0 || isAsking) return
    isAsking = true
    try {
      if (nowMs >= contactsDueMs) {
        contactsDueMs = nowMs + RETRY_MS
        const reported = readContacts(await ask('getClusterNodes', [], ASK_MS), allowPrivate)
        if (reported !== undefined) {
          contacts = reported
          found = { slot: -1, byCount: new Map() }
          contactsDueMs = nowMs + CONTACTS_EVERY_MS
        }
      }
      const isShort = now < firstSlot || now + SLOTS_AHEAD > firstSlot + schedule.length
      // Without an address there is nobody to send to, and no need to know when.
      if (isShort && contacts.size > 0 && nowMs >= scheduleDueMs) {
        scheduleDueMs = nowMs + RETRY_MS
        const response = await ask('getSlotLeaders', [now, SLOTS_ASKED], ASK_MS)
        if (Array.isArray(response) && response.every((one) => typeof one === 'string')) {
          firstSlot = now
          schedule = response as string[]
          found = { slot: -1, byCount: new Map() }
        }
      }
    } finally {
      isAsking = false
    }
  }

  const timer: Timer = clock.setRepeating(LOOK_MS, () => {
    if (!isClosed) void look()
  })
  timer.unref?.()

  return {
    next(count) {
      const now = slot()
      if (found.slot !== now) found = { slot: now, byCount: new Map() }
      const known = found.byCount.get(count) ?? find(now, count)
      found.byCount.set(count, known)
      return known
    },
    get known() {
      return contacts.size
    },
    [Symbol.dispose]() {
      isClosed = true
      timer.cancel()
    },
  }
}

/** Nodes with a QUIC port for transactions, at addresses that may be connected to. */
function readContacts(response: unknown, allowPrivate: boolean): Map<string, Leader> | undefined {
  if (!Array.isArray(response)) return undefined
  const found = new Map<string, Leader>()
  for (const node of response.slice(0, CONTACTS_MAX)) {
    const { pubkey, tpuQuic } = (node ?? {}) as { pubkey?: unknown; tpuQuic?: unknown }
    if (typeof pubkey !== 'string' || typeof tpuQuic !== 'string') continue
    const position = parseAddressPort(tpuQuic)
    // The list comes from a node: it must not lead us into the operator's own network.
    if (position === undefined || objectToAddress(position.ip, allowPrivate) !== undefined) continue
    found.set(pubkey, { identity: pubkey, ...position })
  }
  return found
}
