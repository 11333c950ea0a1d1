import type { Sha256 } from '../../core/sha256.ts'
import { verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import { FEC_SET_DATA_SHREDS, ROOT_BYTES, type ShredHead, SIGNATURE_BYTES } from '../../solana/shred/shred.ts'
import { CHECKS_MAX, type CheckAsker, type CheckRequest } from './checks.ts'
import { FEC_SETS_MAX, FecSets, SET_STATE } from './fec-sets.ts'
import { createLeaders, type Leader, type LeaderRange } from './leaders.ts'

export type Verdict =
  | 'signed'
  /** The leader of the slot is not known. */
  | 'unchecked'
  /** The leader did not sign the content of this packet. */
  | 'forged'
  /** The budget of failed checks is used up, so the signature of this FEC set was not checked. */
  | 'too-many-forged'
  /** The signature of the FEC set is being checked: `waitsFor` is its number. */
  | 'waiting'

/**
 * Checks one signature per FEC set: once the root of a set is proven, its other shreds need only hashes. A failed check says nothing about the set, since
 * any bit of the packet may be wrong, so failures are not cached but rate-limited: a flood of forgeries costs a bounded share of the thread.
 *
 * Signatures are checked by the checking thread (checks.ts). Where it does not run, or has not set a verdict for CHECK_LATE_MS, they are checked here:
 * slower, but no shred is lost and none passes unchecked.
 */
export type Verifier = {
  check(bytes: Uint8Array, at: number, head: ShredHead, nowMs: number): Verdict
  /** The FEC set of the last packet with the verdict `waiting`, below FEC_SETS_MAX. */
  waitsFor(): number
  /** Checks the signature of a set that waits in this thread. */
  decideHere(set: number): void
  /** Takes the verdicts of the checking thread, and checks here what has waited too long. `nextDecided` then returns the sets. */
  takeVerdicts(nowMs: number): void
  /** A set that no longer waits, each once; -1 when there are no more. */
  nextDecided(): number
  isProven(set: number): boolean
  /** FEC sets that wait. */
  waiting(): number
  /** Checks made in this thread although there is a checking thread, since the last call. */
  takeCheckedHere(): number
  setLeaders(ranges: readonly LeaderRange[]): void
}

export type VerifierOptions = { readonly failuresPerSecond: number }

export type VerifierDeps = {
  readonly sha256: Sha256
  /** Without it, all signatures are checked in this thread. */
  readonly checks?: CheckAsker | undefined
}

/** A check takes about 0.3 ms. After this time the checking thread counts as stopped until it sets its next verdict. */
export const CHECK_LATE_MS = 5
/** Late checks made here at a time, so that proven shreds do not wait for many. */
const LATE_CHECKS_MAX = 4

export function createVerifier({ failuresPerSecond }: VerifierOptions, { sha256, checks }: VerifierDeps): Verifier {
  const sets = new FecSets(sha256)
  const { trees, states, signatures } = sets
  // By number of the check: its set, and when it was passed on.
  const setOf = new Int32Array(CHECKS_MAX).fill(-1)
  const askedMs = new Float64Array(CHECKS_MAX)
  /** The number of the check of each set that waits. */
  const numberOf = new Int32Array(FEC_SETS_MAX)
  /** The oldest check that may have no verdict yet, and how many there are from it on; numbers are in order and begin again after the last. */
  const open = { first: 0, count: 0 }
  const leaderOf: (Leader | undefined)[] = Array.from({ length: FEC_SETS_MAX }, () => undefined)
  const decided = new Int32Array(FEC_SETS_MAX)
  // Typed arrays, because V8 allocates a heap number at each change of a fractional number in a closure variable.
  const budget = Float64Array.of(failuresPerSecond)
  const refilledMs = Float64Array.of(0)
  const request: CheckRequest = { roots: trees.roots, rootAt: 0, signatures, signatureAt: 0, key: new Uint8Array(32) }
  let decidedCount = 0
  let waiting = 0
  let waitsFor = -1
  let isStopped = false
  let checkedHere = 0
  let leaders = createLeaders([])

  function mayFail(nowMs: number): boolean {
    const refill = ((nowMs - (refilledMs[0] as number)) / 1000) * failuresPerSecond
    budget[0] = Math.min(failuresPerSecond, (budget[0] as number) + refill)
    refilledMs[0] = nowMs
    return budget[0] >= 1
  }

  function decide(set: number, isGood: boolean): void {
    leaderOf[set] = undefined
    if (isGood) {
      states[set] = SET_STATE.proven
      return
    }
    sets.remove(set)
    budget[0] = (budget[0] as number) - 1
  }

  /** Ends the wait of a set. */
  function settle(set: number, isGood: boolean): void {
    waiting -= 1
    decide(set, isGood)
    decided[decidedCount++] = set
  }

  function verifyHere(set: number): boolean {
    const { key } = leaderOf[set] as Leader
    const root = trees.roots.subarray(set * ROOT_BYTES, (set + 1) * ROOT_BYTES)
    return verifyEd25519(root, signatures.subarray(set * SIGNATURE_BYTES, (set + 1) * SIGNATURE_BYTES), key)
  }

  function decideHere(set: number): void {
    if (states[set] !== SET_STATE.waiting) return
    checkedHere += 1
    // The verdict that comes later is not for this set any more.
    close(numberOf[set] as number)
    settle(set, verifyHere(set))
  }

  function pass(set: number, nowMs: number): boolean {
    if (checks === undefined || isStopped || !checks.isAlive()) return false
    request.rootAt = set * ROOT_BYTES
    request.signatureAt = set * SIGNATURE_BYTES
    request.key = (leaderOf[set] as Leader).bytes
    const number = checks.ask(request)
    if (number < 0) return false
    setOf[number] = set
    numberOf[set] = number
    askedMs[number] = nowMs
    if (open.count === 0) open.first = number
    open.count += 1
    waiting += 1
    return true
  }

  /** The check of this number has its verdict, or was made here. */
  function close(number: number): number {
    const set = setOf[number] as number
    setOf[number] = -1
    return set
  }

  function checkLate(nowMs: number, asker: CheckAsker): void {
    const isDead = !asker.isAlive()
    for (let made = 0; made < LATE_CHECKS_MAX && open.count > 0; ) {
      const number = open.first
      if (setOf[number] !== -1) {
        if (!isDead && nowMs - (askedMs[number] as number) < CHECK_LATE_MS) return
        isStopped = true
        made += 1
        decideHere(setOf[number] as number)
      }
      open.first = (number + 1) % CHECKS_MAX
      open.count -= 1
    }
  }

  /** A set that waits and that this packet belongs to, or -1. */
  function findWaiting(slot: number, index: number, bytes: Uint8Array, at: number, head: ShredHead): number {
    let set = sets.find(slot, index, bytes, at, SET_STATE.waiting)
    if (set < 0 || trees.isUnder(set, bytes, at, head)) return set
    // Another root with the same signature: at most one of them is signed.
    trees.computeRoot(bytes, at, head)
    do set = sets.findOlder(set, bytes, at, SET_STATE.waiting)
    while (set >= 0 && !trees.isComputedRoot(set))
    return set
  }

  return {
    setLeaders(ranges) {
      leaders = createLeaders(ranges)
    },
    check(bytes, at, head, nowMs) {
      const { slot, fecSetIndex } = head
      const index = fecSetIndex / FEC_SET_DATA_SHREDS
      const proven = sets.find(slot, index, bytes, at, SET_STATE.proven)
      if (proven >= 0) return trees.isUnder(proven, bytes, at, head) ? 'signed' : 'forged'
      waitsFor = waiting === 0 ? -1 : findWaiting(slot, index, bytes, at, head)
      if (waitsFor >= 0) return 'waiting'
      const leader = leaders.of(slot)
      if (leader === undefined) return 'unchecked'
      if (!mayFail(nowMs)) return 'too-many-forged'
      const set = sets.add(slot, index, bytes, at)
      trees.beginWith(set, bytes, at, head)
      leaderOf[set] = leader
      if (pass(set, nowMs)) {
        waitsFor = set
        return 'waiting'
      }
      if (checks !== undefined) checkedHere += 1
      const isGood = verifyHere(set)
      decide(set, isGood)
      return isGood ? 'signed' : 'forged'
    },
    waitsFor: () => waitsFor,
    decideHere,
    takeVerdicts(nowMs) {
      if (checks === undefined) return
      for (let number = checks.next(); number >= 0; number = checks.next()) {
        const isGood = checks.take()
        isStopped = false
        const set = close(number)
        // -1: it was checked here meanwhile.
        if (set >= 0) settle(set, isGood)
      }
      checkLate(nowMs, checks)
    },
    nextDecided: () => (decidedCount === 0 ? -1 : (decided[--decidedCount] as number)),
    isProven: (set) => states[set] === SET_STATE.proven,
    waiting: () => waiting,
    takeCheckedHere() {
      const taken = checkedHere
      checkedHere = 0
      return taken
    },
  }
}
