import type { KeyObject } from 'node:crypto'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { importPublicKey } from '../../solana/crypto/ed25519.ts'

/** The leaders of the slots [fromSlot, toSlot), as data that can be posted to the relay thread. */
export type LeaderRange = {
  readonly fromSlot: number
  readonly toSlot: number
  /** Base58 identities. */
  readonly identities: readonly string[]
  /** Per slot the index of its leader in `identities` plus one; 0 when unknown. Without it the first identity leads all slots. */
  readonly leaderOfSlot?: Uint32Array
}

/** Epochs known at one time: the previous, the current, the next, and one spare. */
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
      // The identity is not a valid public key: shreds of this leader stay unchecked.
    }
    keys.set(identity, key)
    return key
  }

  return {
    keyOf(slot) {
      const range = known.find(({ fromSlot, toSlot }) => slot >= fromSlot && slot < toSlot)
      if (range === undefined) return undefined
      const indexPlusOne = range.leaderOfSlot === undefined ? 1 : (range.leaderOfSlot[slot - range.fromSlot] ?? 0)
      const identity = range.identities[indexPlusOne - 1]
      return identity === undefined ? undefined : keyOfIdentity(identity)
    },
  }
}
