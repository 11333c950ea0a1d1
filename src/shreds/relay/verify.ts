import { verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import { createFecSetProofs, type FecSetProofs, rootOfPacket } from '../../solana/shred/fec-set-proofs.ts'
import { FEC_SET_DATA_SHREDS, type ShredHead, SIGNATURE_BYTES } from '../../solana/shred/shred.ts'
import { createLeaders, type LeaderRange } from './leaders.ts'

export type Verdict =
  | 'signed'
  /** The leader of the slot is not known. */
  | 'unchecked'
  /** The leader did not sign the content of this packet. */
  | 'forged'
  /** The budget of failed checks is used up, so the signature of this FEC set was not checked. */
  | 'too-many-forged'

export type Verifier = {
  check(bytes: Uint8Array, at: number, head: ShredHead, nowMs: number): Verdict
  setLeaders(ranges: readonly LeaderRange[]): void
  /** FEC sets in the cache of proven ones. */
  provenSets(): number
}

export type VerifierOptions = {
  readonly failuresPerSecond: number
  /** Slots that can be current at one time: FEC sets further away from the last proven one are removed from the cache. */
  readonly slots: number
}

type ProvenSet = {
  readonly slot: number
  readonly set: number
  readonly signature: Uint8Array
  readonly proofs: FecSetProofs
}

/** Cache of FEC sets with a verified signature: about thirty slots of full blocks, about 15 MB. The oldest are removed first. */
const PROVEN_SETS_MAX = 4096
/** A slot has at most 1024 FEC sets (32,768 shreds of a kind), so slot and set fit one number. */
const SETS_OF_SLOT = 1024

/**
 * Checks one signature per FEC set: once the root of a set is proven, its other shreds need only hashes. A failed check says nothing about the
 * set, since any bit of the packet may be wrong, so failures are not cached but rate-limited: a flood of forgeries costs a bounded share of the
 * thread.
 */
export function createVerifier({ failuresPerSecond, slots }: VerifierOptions): Verifier {
  const proven = new Map<number, ProvenSet[]>()
  const order: number[] = []
  let leaders = createLeaders([])
  let failuresLeft = failuresPerSecond
  let refilledMs = 0

  function remember(key: number, set: ProvenSet): void {
    const others = proven.get(key)
    if (others === undefined) proven.set(key, [set])
    else others.push(set)
    order.push(key)
    let outdated = order.length > PROVEN_SETS_MAX ? PROVEN_SETS_MAX / 4 : 0
    while (Math.abs(slotOf(order[outdated] as number) - set.slot) >= slots) outdated += 1
    if (outdated === 0) return
    for (const old of order.splice(0, outdated)) proven.delete(old)
  }

  function mayFail(nowMs: number): boolean {
    failuresLeft = Math.min(failuresPerSecond, failuresLeft + ((nowMs - refilledMs) / 1000) * failuresPerSecond)
    refilledMs = nowMs
    return failuresLeft >= 1
  }

  return {
    setLeaders(ranges) {
      leaders = createLeaders(ranges)
    },
    check(bytes, at, head, nowMs) {
      const { slot, fecSetIndex } = head
      const set = fecSetIndex / FEC_SET_DATA_SHREDS
      const key = slot * SETS_OF_SLOT + set
      const found = proven
        .get(key)
        ?.find((each) => each.slot === slot && each.set === set && isSigned(each.signature, bytes, at))
      if (found !== undefined) return found.proofs.isUnder(bytes, at, head) ? 'signed' : 'forged'
      const leader = leaders.keyOf(slot)
      if (leader === undefined) return 'unchecked'
      if (!mayFail(nowMs)) return 'too-many-forged'
      const signature = bytes.slice(at, at + SIGNATURE_BYTES)
      const root = rootOfPacket(bytes, at, head)
      if (!verifyEd25519(root, signature, leader)) {
        failuresLeft -= 1
        return 'forged'
      }
      const proofs = createFecSetProofs(root)
      proofs.isUnder(bytes, at, head)
      remember(key, { slot, set, signature, proofs })
      return 'signed'
    },
    provenSets: () => order.length,
  }
}

function slotOf(key: number): number {
  return Math.floor(key / SETS_OF_SLOT)
}

function isSigned(signature: Uint8Array, bytes: Uint8Array, at: number): boolean {
  for (let i = 0; i < SIGNATURE_BYTES; i++) if (signature[i] !== bytes[at + i]) return false
  return true
}
