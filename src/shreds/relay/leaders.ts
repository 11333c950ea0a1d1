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

/** The public key of a leader: imported, and as 32 bytes. */
export type Leader = { readonly key: KeyObject; readonly bytes: Uint8Array }

export type Leaders = { of(slot: number): Leader | undefined }

export function createLeaders(ranges: readonly LeaderRange[]): Leaders {
  const known = ranges.slice(-LEADER_RANGES_MAX)
  const leaders = new Map<string, Leader | undefined>()

  function leaderOf(identity: string): Leader | undefined {
    if (leaders.has(identity)) return leaders.get(identity)
    let leader: Leader | undefined
    try {
      const bytes = decodeBase58(identity)
      const key = importPublicKey(bytes)
      if (key !== undefined) leader = { key, bytes }
    } catch {
      // The identity is not a valid public key: shreds of this leader stay unchecked.
    }
    leaders.set(identity, leader)
    return leader
  }

  return {
    of(slot) {
      const range = known.find(({ fromSlot, toSlot }) => slot >= fromSlot && slot < toSlot)
      if (range === undefined) return undefined
      const indexPlusOne = range.leaderOfSlot === undefined ? 1 : (range.leaderOfSlot[slot - range.fromSlot] ?? 0)
      const identity = range.identities[indexPlusOne - 1]
      return identity === undefined ? undefined : leaderOf(identity)
    },
  }
}
