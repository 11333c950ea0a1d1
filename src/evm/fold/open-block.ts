import { EVENT, EVENT_CODES } from '../event/type.ts'
import { highHalf, lowHalf } from '../ring/event-batch.ts'

/** Accesses of transient storage are counted apart from the others, under the code that no event has. */
const TRANSIENT_ACCESS = 0

/** Why the figures of a block cannot be trusted, though it is known how many transactions it had. */
export type Shortcoming = 'record-error' | 'shortfall' | 'too-large'

/** The block being executed: what is known of it before it ends. */
export class OpenBlock {
  isOpen = false
  seqno = 0
  /** The halves of `seqno`, which every event of the block is compared with. */
  seqnoLow = 0
  seqnoHigh = 0
  number = 0
  txnCount = 0
  startLow = 0
  startHigh = 0
  shortcoming: Shortcoming | undefined
  evmEnter: [low: number, high: number] | undefined
  evmExit: [low: number, high: number] | undefined
  /** Events of the block so far, by type. */
  readonly #came = new Float64Array(EVENT_CODES)
  /** How many events of a type others said there would be. Fewer at the end of the block mean loss. */
  readonly #announced = new Float64Array(EVENT_CODES)

  begin(block: { seqno: number; number: number; txnCount: number; startLow: number; startHigh: number }): void {
    this.isOpen = true
    this.seqno = block.seqno
    this.seqnoLow = lowHalf(block.seqno) | 0
    this.seqnoHigh = highHalf(block.seqno) | 0
    this.number = block.number
    this.txnCount = block.txnCount
    this.startLow = block.startLow
    this.startHigh = block.startHigh
    this.shortcoming = undefined
    this.evmEnter = undefined
    this.evmExit = undefined
    this.#announced.fill(0)
    this.#came.fill(0)
    this.announce(EVENT.TXN_HEADER_START, block.txnCount)
  }

  announce(type: number, count: number): void {
    this.#announced[type] = (this.#announced[type] as number) + count
  }

  announceTransient(count: number): void {
    this.announce(TRANSIENT_ACCESS, count)
  }

  came(type: number): void {
    this.#came[type] = (this.#came[type] as number) + 1
  }

  /** So many of the storage accesses that came were of transient storage. */
  wereTransient(count: number): void {
    this.#came[EVENT.STORAGE_ACCESS] = (this.#came[EVENT.STORAGE_ACCESS] as number) - count
    this.#came[TRANSIENT_ACCESS] = (this.#came[TRANSIENT_ACCESS] as number) + count
  }

  countOf(type: number): number {
    return this.#came[type] as number
  }

  get hasShortfall(): boolean {
    return this.#came.some((count, type) => count < (this.#announced[type] as number))
  }
}
