import { highHalf, lowHalf } from './event-batch.ts'

/**
 * What an event announces and how often it then came; a shortfall at the end of a block means loss. Numbers, because these are counted
 * for nearly every event.
 */
export const COUNTED = {
  txns: 0,
  accessListEntries: 1,
  authListEntries: 2,
  logs: 3,
  callFrames: 4,
  accounts: 5,
  storage: 6,
  transient: 7,
} as const

export type Counted = (typeof COUNTED)[keyof typeof COUNTED]

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
  readonly #announced = new Float64Array(Object.keys(COUNTED).length)
  readonly #came = new Float64Array(Object.keys(COUNTED).length)

  begin(block: { seqno: number; number: number; txnCount: number; startLow: number; startHigh: number }): void {
    this.isOpen = true
    this.seqno = block.seqno
    this.seqnoLow = lowHalf(block.seqno)
    this.seqnoHigh = highHalf(block.seqno)
    this.number = block.number
    this.txnCount = block.txnCount
    this.startLow = block.startLow
    this.startHigh = block.startHigh
    this.shortcoming = undefined
    this.evmEnter = undefined
    this.evmExit = undefined
    this.#announced.fill(0)
    this.#came.fill(0)
    this.announce(COUNTED.txns, block.txnCount)
  }

  announce(what: Counted, count: number): void {
    this.#announced[what] = (this.#announced[what] as number) + count
  }

  came(what: Counted): void {
    this.#came[what] = (this.#came[what] as number) + 1
  }

  countOf(what: Counted): number {
    return this.#came[what] as number
  }

  get hasShortfall(): boolean {
    return this.#came.some((count, what) => count < (this.#announced[what] as number))
  }
}
