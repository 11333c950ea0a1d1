import { EVENT, EVENT_CODES } from '../event/type.ts'
import type { Hex } from '../hex.ts'
import { highHalf, lowHalf } from '../ring/event-batch.ts'

/** Accesses of transient storage are counted separately, under a code that no event has. */
const TRANSIENT_ACCESS = 0

/** Why a block has no contention figures although its number of transactions is known. */
export type IncompleteReason = 'record-error' | 'shortfall' | 'too-large'

/** The block being executed, before its BLOCK_END. */
export class OpenBlock {
  isOpen = false
  seqno = 0
  /** The halves of `seqno`; the block of every event is compared with them. */
  seqnoLow = 0
  seqnoHigh = 0
  number = 0
  id: Hex = '0x'
  txnCount = 0
  startLow = 0
  startHigh = 0
  incompleteReason: IncompleteReason | undefined
  evmEnter: [low: number, high: number] | undefined
  evmExit: [low: number, high: number] | undefined
  /** Events received so far, by type. */
  readonly #received = new Float64Array(EVENT_CODES)
  /** Events that other events announced, by type. Fewer received at the end of the block means loss. */
  readonly #announced = new Float64Array(EVENT_CODES)

  begin(block: {
    seqno: number
    number: number
    id: Hex
    txnCount: number
    startLow: number
    startHigh: number
  }): void {
    this.isOpen = true
    this.seqno = block.seqno
    this.seqnoLow = lowHalf(block.seqno) | 0
    this.seqnoHigh = highHalf(block.seqno) | 0
    this.number = block.number
    this.id = block.id
    this.txnCount = block.txnCount
    this.startLow = block.startLow
    this.startHigh = block.startHigh
    this.incompleteReason = undefined
    this.evmEnter = undefined
    this.evmExit = undefined
    this.#announced.fill(0)
    this.#received.fill(0)
    this.announce(EVENT.TXN_HEADER_START, block.txnCount)
  }

  announce(type: number, count: number): void {
    this.#announced[type] = (this.#announced[type] as number) + count
  }

  announceTransient(count: number): void {
    this.announce(TRANSIENT_ACCESS, count)
  }

  received(type: number): void {
    this.#received[type] = (this.#received[type] as number) + 1
  }

  /** `count` of the storage accesses received were of transient storage. */
  receivedTransient(count: number): void {
    this.#received[EVENT.STORAGE_ACCESS] = (this.#received[EVENT.STORAGE_ACCESS] as number) - count
    this.#received[TRANSIENT_ACCESS] = (this.#received[TRANSIENT_ACCESS] as number) + count
  }

  countOf(type: number): number {
    return this.#received[type] as number
  }

  get hasShortfall(): boolean {
    return this.#received.some((count, type) => count < (this.#announced[type] as number))
  }
}
