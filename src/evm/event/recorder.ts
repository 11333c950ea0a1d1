import type { RingEvent, RingWriter } from '../ring/writer.ts'
import { type EventPayload, PAYLOADS } from './exec-event.ts'
import { encodePayload, type Layout, type PayloadOf } from './payload-layout.ts'
import { EVENT, type EventName } from './type.ts'

/** Where and when an event happened. */
export type EventPosition = { timeNs: bigint; txnIndex?: number; accountIndex?: number }

/** Events about blocks in general; they belong to no block that is being executed. */
const CONSENSUS: ReadonlySet<number> = new Set([EVENT.BLOCK_QC, EVENT.BLOCK_FINALIZED, EVENT.BLOCK_VERIFIED])

/**
 * Records execution events by the rules of the execution ring: every event of a block names the block's BLOCK_START, and after the end
 * of a block, its rejection or an error of the whole block, no block is current.
 */
export class ExecRecorder {
  readonly #writer: Pick<RingWriter, 'lastSeqno' | 'recordAll'>
  readonly #waiting: RingEvent[] = []
  #blockSeqno = 0

  constructor(writer: Pick<RingWriter, 'lastSeqno' | 'recordAll'>) {
    this.#writer = writer
  }

  /** Adds an event from its values; what is left out is zero. It becomes readable with the next flush. */
  add<N extends EventName>(name: N, payload: Partial<EventPayload<N>>, position: EventPosition): number {
    return this.addEncoded(
      EVENT[name],
      encodePayload<Layout>(PAYLOADS[name], payload as Partial<PayloadOf<Layout>>),
      position,
    )
  }

  /** Adds an event whose payload is encoded already. Returns the sequence number it will have. */
  addEncoded(type: number, payload: Uint8Array, { timeNs, txnIndex = -1, accountIndex = 0 }: EventPosition): number {
    const seqno = this.#writer.lastSeqno + this.#waiting.length + 1
    if (type === EVENT.BLOCK_START) this.#blockSeqno = seqno
    const blockSeqno = CONSENSUS.has(type) ? 0 : this.#blockSeqno
    this.#waiting.push({ type, payload, timeNs, blockSeqno, txnIndex, accountIndex })
    const isBlockError = type === EVENT.EVM_ERROR && txnIndex < 0
    if (type === EVENT.BLOCK_END || type === EVENT.BLOCK_REJECT || isBlockError) this.#blockSeqno = 0
    return seqno
  }

  /** Gives up what was added since the last flush, as if it had never been. */
  discard(): void {
    this.#waiting.length = 0
    this.#blockSeqno = 0
  }

  flush(): void {
    this.#writer.recordAll(this.#waiting)
    this.#waiting.length = 0
  }
}
