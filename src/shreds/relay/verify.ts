import type { Sha256, Sha256Lanes } from '../../core/sha256.ts'
import { verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import { FEC_SET_DATA_SHREDS, ROOT_BYTES, type ShredHead, SIGNATURE_BYTES } from '../../solana/shred/shred.ts'
import { BatchLeaves } from './batch-leaves.ts'
import { FEC_SETS_MAX, FecSets, SET_STATE } from './fec-sets.ts'
import { createLeaders, type Leader, type LeaderRange } from './leaders.ts'
import { PendingChecks } from './pending-checks.ts'
import type { SignatureRequest, SignatureSubmitter } from './signature-ring.ts'

export type Verdict =
  | 'signed'
  /** The leader of the slot is not known. */
  | 'unchecked'
  /** The leader did not sign the content of this packet. */
  | 'forged'
  /** The budget of failed checks is used up, so the signature of this FEC set was not checked. */
  | 'too-many-forged'
  /** The signature of the FEC set is being checked: `pendingSet` is its number. */
  | 'pending'

/**
 * Checks one signature per FEC set: once the root of a set is known to be signed, its other shreds need only hashes. A failed check says nothing about
 * the set, since any bit of the packet may be wrong, so failures are not cached but rate-limited: a flood of forgeries costs a bounded share of the
 * thread.
 *
 * Most signatures are checked by the checking thread, while packets of their set are held (pending-checks.ts).
 */
export type Verifier = {
  /**
   * Whether `hashLeaves` saves time: it computes the leaves of these cells of the arena together, and `verify` of the same packets then uses them. They are forgotten
   * with the next call.
   */
  readonly isHashingTogether: boolean
  hashLeaves(arena: Uint8Array, cells: Uint16Array, count: number, heads: readonly ShredHead[]): void
  verify(bytes: Uint8Array, at: number, head: ShredHead, nowMs: number): Verdict
  /** Whether the leader of the slot is known, so that its packets can be checked. */
  hasLeader(slot: number): boolean
  /** Whether the FEC set of this packet is signed or is being checked, so that it needs no further check. */
  isOfKnownSet(bytes: Uint8Array, at: number, head: ShredHead): boolean
  /** How many checks may fail now. */
  failuresLeft(nowMs: number): number
  /** The FEC set of the last packet with the verdict `pending`, below FEC_SETS_MAX. */
  pendingSet(): number
  /** Checks the signature of a pending set in this thread. */
  decideHere(set: number): void
  /** Takes the verdicts of the checking thread, late ones too, and checks here what has waited too long. `takeDecided` then returns the sets. */
  takeVerdicts(nowMs: number): void
  /** A set that is no longer pending, each once; -1 when there are no more. */
  takeDecided(): number
  isSigned(set: number): boolean
  /** FEC sets whose signature is being checked. */
  pending(): number
  /** Checks made in this thread although there is a checking thread, since the last call. */
  takeCheckedHere(): number
  setLeaders(ranges: readonly LeaderRange[]): void
}

export type VerifierOptions = { readonly failuresPerSecond: number }

export type VerifierDeps = {
  readonly sha256: Sha256
  /** For several packets together. */
  readonly lanes?: Sha256Lanes | undefined
  /** Without it, all signatures are checked in this thread. */
  readonly ring?: SignatureSubmitter | undefined
}

export function createVerifier({ failuresPerSecond }: VerifierOptions, deps: VerifierDeps): Verifier {
  const { sha256, ring } = deps
  const leaves = new BatchLeaves(deps)
  const sets = new FecSets(sha256, leaves)
  const { trees, states, signatures } = sets
  const leaderOf: (Leader | undefined)[] = Array.from({ length: FEC_SETS_MAX }, () => undefined)
  const pending = new PendingChecks({ ring, verify: verifySet, onDecided: decide })
  // Typed arrays, because V8 allocates a heap number at each change of a fractional number in a closure variable.
  const budget = Float64Array.of(failuresPerSecond)
  const refilledMs = Float64Array.of(0)
  const request: SignatureRequest = {
    roots: trees.roots,
    rootAt: 0,
    signatures,
    signatureAt: 0,
    key: new Uint8Array(32),
  }
  let pendingSet = -1
  let leaders = createLeaders([])
  /** The slot of the last question for a leader, usually also that of the next: -1 without one. */
  let askedSlot = -1
  let isLed = false

  function failuresLeft(nowMs: number): number {
    const refill = ((nowMs - (refilledMs[0] as number)) / 1000) * failuresPerSecond
    budget[0] = Math.min(failuresPerSecond, (budget[0] as number) + refill)
    refilledMs[0] = nowMs
    return budget[0]
  }

  function decide(set: number, isSigned: boolean): void {
    leaderOf[set] = undefined
    if (isSigned) {
      states[set] = SET_STATE.signed
      return
    }
    sets.remove(set)
    budget[0] = (budget[0] as number) - 1
  }

  function verifySet(set: number): boolean {
    const { key } = leaderOf[set] as Leader
    const root = trees.roots.subarray(set * ROOT_BYTES, (set + 1) * ROOT_BYTES)
    return verifyEd25519(root, signatures.subarray(set * SIGNATURE_BYTES, (set + 1) * SIGNATURE_BYTES), key)
  }

  function submit(set: number, leader: Leader, nowMs: number): boolean {
    request.rootAt = set * ROOT_BYTES
    request.signatureAt = set * SIGNATURE_BYTES
    request.key = leader.bytes
    return pending.submit(set, request, nowMs)
  }

  /** A pending set that this packet belongs to, or -1. */
  function findPending(slot: number, index: number, bytes: Uint8Array, at: number, head: ShredHead): number {
    let set = sets.find(slot, index, bytes, at, SET_STATE.pending)
    if (set < 0 || trees.isUnder(set, bytes, at, head)) return set
    // Another root with the same signature: at most one of them is signed.
    trees.computeRoot(bytes, at, head)
    do set = sets.findOlder(set, bytes, at, SET_STATE.pending)
    while (set >= 0 && !trees.isComputedRoot(set))
    return set
  }

  return {
    isHashingTogether: leaves.hasLanes,
    hashLeaves: (arena, cells, count, heads) => leaves.prepare(arena, cells, count, heads),
    setLeaders(ranges) {
      leaders = createLeaders(ranges)
      askedSlot = -1
    },
    verify(bytes, at, head, nowMs) {
      const { slot, fecSetIndex } = head
      const index = fecSetIndex / FEC_SET_DATA_SHREDS
      const signed = sets.find(slot, index, bytes, at, SET_STATE.signed)
      if (signed >= 0) return trees.isUnder(signed, bytes, at, head) ? 'signed' : 'forged'
      pendingSet = pending.size === 0 ? -1 : findPending(slot, index, bytes, at, head)
      if (pendingSet >= 0) return 'pending'
      const leader = leaders.of(slot)
      if (leader === undefined) return 'unchecked'
      if (failuresLeft(nowMs) < 1) return 'too-many-forged'
      const set = sets.add(slot, index, bytes, at)
      trees.beginWith(set, bytes, at, head)
      leaderOf[set] = leader
      if (submit(set, leader, nowMs)) {
        pendingSet = set
        return 'pending'
      }
      const isSigned = pending.verifyHere(set)
      decide(set, isSigned)
      return isSigned ? 'signed' : 'forged'
    },
    hasLeader(slot) {
      if (slot === askedSlot) return isLed
      askedSlot = slot
      isLed = leaders.of(slot) !== undefined
      return isLed
    },
    isOfKnownSet(bytes, at, { slot, fecSetIndex }) {
      const index = fecSetIndex / FEC_SET_DATA_SHREDS
      if (sets.find(slot, index, bytes, at, SET_STATE.signed) >= 0) return true
      return pending.size > 0 && sets.find(slot, index, bytes, at, SET_STATE.pending) >= 0
    },
    failuresLeft,
    pendingSet: () => pendingSet,
    decideHere: (set) => pending.decideHere(set),
    takeVerdicts: (nowMs) => pending.takeVerdicts(nowMs),
    takeDecided: () => pending.takeDecided(),
    isSigned: (set) => states[set] === SET_STATE.signed,
    pending: () => pending.size,
    takeCheckedHere: () => pending.takeMadeHere(),
  }
}
