import { FEC_SETS_MAX } from './fec-sets.ts'
import { CHECKS_MAX, type SignatureRequest, type SignatureSubmitter } from './signature-ring.ts'

export type PendingChecksDeps = {
  /** The way to the checking thread. Without it, no check is pending. */
  readonly ring: SignatureSubmitter | undefined
  /** Checks the signature of a FEC set in this thread. */
  verify(set: number): boolean
  /** A set is no longer pending. */
  onDecided(set: number, isSigned: boolean): void
}

/** A check takes about 0.3 ms. One without a verdict after this time is made here, and the checking thread counts as stopped until it sets its next verdict. */
export const CHECK_LATE_MS = 5
/**
 * The thread gets no check for this time after a late one. On a busy machine every verdict can be late: then about one FEC set a second waits for
 * CHECK_LATE_MS, of the more than a hundred that a full feed has.
 */
export const LATE_PAUSE_MS = 1000
/** Late checks made here at a time, so that the shreds of signed sets do not wait for many. */
const LATE_CHECKS_MAX = 4

/**
 * The FEC sets whose signature is being checked by the checking thread. Where it does not run, or has not set a verdict for CHECK_LATE_MS, they are
 * checked here: slower, but no shred is lost and none passes unchecked. All memory is allocated once.
 */
export class PendingChecks {
  readonly #deps: PendingChecksDeps
  /** By number of the check: its set, or -1 once it has a verdict; and when it was submitted. */
  readonly #setOf = new Int32Array(CHECKS_MAX).fill(-1)
  readonly #submittedMs = new Float64Array(CHECKS_MAX)
  /** By set: the number of its last check. */
  readonly #numberOf = new Int32Array(FEC_SETS_MAX)
  /** The oldest check that may have no verdict yet, and how many there are from it on; numbers are in order and begin again after the last. */
  #oldest = 0
  #submitted = 0
  /** Sets that are decided and not taken yet. */
  readonly #decided = new Int32Array(FEC_SETS_MAX)
  #decidedCount = 0
  #size = 0
  #isThreadStopped = false
  /** When a check was late last. */
  #lateMs = Number.NEGATIVE_INFINITY
  #madeHere = 0

  constructor(deps: PendingChecksDeps) {
    this.#deps = deps
  }

  /** Sets that are pending. */
  get size(): number {
    return this.#size
  }

  /** Passes a check on to the checking thread. False when it does not run, was late or has too many: then the caller has to check. */
  submit(set: number, request: SignatureRequest, nowMs: number): boolean {
    const { ring } = this.#deps
    if (ring === undefined || !ring.isAlive()) return false
    if (this.#isThreadStopped || nowMs - this.#lateMs < LATE_PAUSE_MS) return false
    const number = ring.submit(request)
    if (number < 0) return false
    this.#setOf[number] = set
    this.#numberOf[set] = number
    this.#submittedMs[number] = nowMs
    if (this.#submitted === 0) this.#oldest = number
    this.#submitted += 1
    this.#size += 1
    return true
  }

  /**
   * Takes the verdicts of the checking thread, and checks here what has waited too long. `takeDecided` then returns the sets. To be called while no set is
   * pending, too: it is how a late verdict comes in, and without it the thread counts as stopped.
   */
  takeVerdicts(nowMs: number): void {
    const { ring } = this.#deps
    if (ring === undefined) return
    for (let number = ring.nextVerdict(); number >= 0; number = ring.nextVerdict()) {
      const isSigned = ring.takeVerdict()
      this.#isThreadStopped = false
      // -1: it was checked here meanwhile.
      if (this.#setOf[number] !== -1) this.#decide(number, isSigned)
    }
    this.#decideLate(nowMs, !ring.isAlive())
  }

  /** Checks a set here that is pending; the verdict of the checking thread is then ignored. */
  decideHere(set: number): void {
    const number = this.#numberOf[set] as number
    if (this.#setOf[number] === set) this.#decide(number, this.verifyHere(set))
  }

  /** Checks a set here that was not submitted. */
  verifyHere(set: number): boolean {
    if (this.#deps.ring !== undefined) this.#madeHere += 1
    return this.#deps.verify(set)
  }

  /** A set that is no longer pending, each once; -1 when there are no more. */
  takeDecided(): number {
    return this.#decidedCount === 0 ? -1 : (this.#decided[--this.#decidedCount] as number)
  }

  /** Checks made in this thread although there is a checking thread, since the last call. */
  takeMadeHere(): number {
    const taken = this.#madeHere
    this.#madeHere = 0
    return taken
  }

  #decide(number: number, isSigned: boolean): void {
    const set = this.#setOf[number] as number
    this.#setOf[number] = -1
    this.#size -= 1
    this.#deps.onDecided(set, isSigned)
    this.#decided[this.#decidedCount++] = set
  }

  #decideLate(nowMs: number, isThreadDead: boolean): void {
    for (let made = 0; made < LATE_CHECKS_MAX && this.#submitted > 0; ) {
      const number = this.#oldest
      const set = this.#setOf[number] as number
      if (set !== -1) {
        if (!isThreadDead && nowMs - (this.#submittedMs[number] as number) < CHECK_LATE_MS) return
        this.#isThreadStopped = true
        this.#lateMs = nowMs
        made += 1
        this.decideHere(set)
      }
      this.#oldest = (number + 1) % CHECKS_MAX
      this.#submitted -= 1
    }
  }
}
