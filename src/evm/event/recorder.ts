import type { RingEvent, RingWriter } from '../ring/writer.ts'
import { encodePayload, type Layout, type PayloadOf } from './payload-layout.ts'
import { type EventPayload, PAYLOADS } from './payloads.ts'
import { EVENT, type EventName } from './type.ts'

/** The time of an event and the transaction and account it belongs to. */
export type EventContext = { timeNs: bigint; txnIndex?: number; accountIndex?: number }

/** Consensus events; they do not belong to the block being executed. */
const CONSENSUS: ReadonlySet<number> = new Set([EVENT.BLOCK_QC, EVENT.BLOCK_FINALIZED, EVENT.BLOCK_VERIFIED])

/**
 * Records execution events by the rules of the execution ring: every event of a block has the sequence number of its BLOCK_START.
 * BLOCK_END, BLOCK_REJECT and an EVM_ERROR outside a transaction end the current block.
 */
export class ExecRecorder {
  readonly #writer: Pick<RingWriter, 'lastSeqno' | 'recordAll'>
  readonly #pending: RingEvent[] = []
  #blockSeqno = 0

  constructor(writer: Pick<RingWriter, 'lastSeqno' | 'recordAll'>) {
    this.#writer = writer
  }

  /** Adds an event from its fields; omitted ones are zero. It becomes readable with the next flush. */
  add<N extends EventName>(name: N, payload: Partial<EventPayload<N>>, context: EventContext): number {
    return this.addEncoded(
      EVENT[name],
      encodePayload<Layout>(PAYLOADS[name], payload as Partial<PayloadOf<Layout>>),
      context,
    )
  }

  /** Adds an event with an encoded payload. Returns the sequence number it will have. */
  addEncoded(type: number, payload: Uint8Array, { timeNs, txnIndex = -1, accountIndex = 0 }: EventContext): number {
    const seqno = this.#writer.lastSeqno + this.#pending.length + 1
    if (type === EVENT.BLOCK_START) this.#blockSeqno = seqno
    const blockSeqno = CONSENSUS.has(type) ? 0 : this.#blockSeqno
    this.#pending.push({ type, payload, timeNs, blockSeqno, txnIndex, accountIndex })
    const isBlockError = type === EVENT.EVM_ERROR && txnIndex < 0
    if (type === EVENT.BLOCK_END || type === EVENT.BLOCK_REJECT || isBlockError) this.#blockSeqno = 0
    return seqno
  }

  /** Discards the events added since the last flush. */
  discard(): void {
    this.#pending.length = 0
    this.#blockSeqno = 0
  }

  /** Writes the events. Those of a failed write are discarded: their sequence numbers are taken, and later ones would refer to the wrong block. */
  flush(): void {
    try {
      this.#writer.recordAll(this.#pending)
    } catch (error) {
      this.discard()
      throw error
    }
    this.#pending.length = 0
  }
}
