import type { KeyObject } from 'node:crypto'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { importPublicKey } from '../../solana/crypto/ed25519.ts'

/** Who leads the slots [fromSlot, toSlot), as data that can be sent to the relaying thread. */
export type LeaderRange = {
  readonly fromSlot: number
  readonly toSlot: number
  /** Base58 identities. */
  readonly identities: readonly string[]
  /** Place of each slot's leader among the identities, plus one; 0 for nobody. Without it the first leads all slots. */
  readonly leaderOfSlot?: Uint32Array
}

/** Epochs known at one time: the last, this one, the next, and one to spare. */
const LEADER_RANGES_MAX = 4

export type Leaders = { keyOf(slot: number): KeyObject | undefined }

export function createLeaders(ranges: readonly LeaderRange[]): Leaders {
  const known = ranges.slice(-LEADER_RANGES_MAX)
  const keys = new Map<string, KeyObject | undefined>()

  function keyOfIdentity(identity: string): KeyObject | undefined {
    if (keys.has(identity)) return keys.get(identity)
    let key: KeyObject | undefined
    try {
      key = importPublicKey(decodeBase58(identity))
    } catch {
      // A schedule with an identity that is no key: nothing of that leader can be checked.
    }
    keys.set(identity, key)
    return key
  }

  return {
    keyOf(slot) {
      const range = known.find(({ fromSlot, toSlot }) => slot >= fromSlot && slot < toSlot)
      if (range === undefined) return undefined
      const position = range.leaderOfSlot === undefined ? 1 : (range.leaderOfSlot[slot - range.fromSlot] ?? 0)
      const identity = range.identities[position - 1]
      return identity === undefined ? undefined : keyOfIdentity(identity)
    },
  }
}
