import { EventBatch, PAYLOAD_LOST } from '../evm/event-batch.ts'
import { EVENT, eventSet } from '../evm/event-type.ts'
import { toHex } from '../evm/hex.ts'
import { DESCRIPTOR_BYTES, PAYLOAD_ALIGN } from '../evm/ring-layout.ts'
import { blockStartFacts } from './make-raw-events.ts'
import type { BlockContent } from './source-message.ts'

/** The events JSON-RPC answers are made of. */
const KEPT = eventSet([
  EVENT.BLOCK_START,
  EVENT.TXN_HEADER_START,
  EVENT.TXN_ACCESS_LIST_ENTRY,
  EVENT.TXN_AUTH_LIST_ENTRY,
  EVENT.TXN_EVM_OUTPUT,
  EVENT.TXN_LOG,
  EVENT.BLOCK_END,
])

const FIRST_EVENTS = 1024
const FIRST_BYTES = 2 ** 18

/**
 * Keeps the bytes of the open block's events, undecoded: copying them costs a fraction of decoding, and most blocks are never asked
 * for. A block with an event missing or too many bytes is not kept at all.
 */
export class BlockRecorder {
  readonly #bytesMax: number
  #blockSeqno = 0
  #events = 0
  #bytes = 0
  #descriptors = new Uint8Array(FIRST_EVENTS * DESCRIPTOR_BYTES)
  #payloadAt = new Int32Array(FIRST_EVENTS)
  #payloads = new Uint8Array(FIRST_BYTES)

  constructor(options: { blockBytesMax: number }) {
    this.#bytesMax = options.blockBytesMax
  }

  forget(): void {
    this.#blockSeqno = 0
  }

  add(batch: EventBatch, at: number): void {
    const type = batch.type(at)
    if (KEPT[type] !== 1) return
    if (type === EVENT.BLOCK_START) {
      this.#blockSeqno = batch.seqno(at)
      this.#events = 0
      this.#bytes = 0
    }
    if (this.#blockSeqno === 0 || batch.blockSeqno(at) !== this.#blockSeqno) return
    const from = batch.payloadAt[at] as number
    const size = batch.payloadSize(at)
    if (from === PAYLOAD_LOST || this.#bytes + size > this.#bytesMax) return this.forget()
    this.#reserve(size)
    this.#descriptors.set(
      batch.descriptorBytes.subarray(at * DESCRIPTOR_BYTES, (at + 1) * DESCRIPTOR_BYTES),
      this.#events * DESCRIPTOR_BYTES,
    )
    this.#payloads.set(batch.payloadBytes.subarray(from, from + size), this.#bytes)
    this.#payloadAt[this.#events] = this.#bytes
    this.#events += 1
    this.#bytes += Math.ceil(size / PAYLOAD_ALIGN) * PAYLOAD_ALIGN
  }

  /** The block that has just ended, in memory of its own. */
  take(): BlockContent | undefined {
    if (this.#blockSeqno === 0 || this.#events < 2) return undefined
    const last = this.#payloadAt[this.#events - 1] as number
    const { id, number, chainId } = blockStartFacts(this.#payloads.subarray(0, 528))
    const block: BlockContent = {
      number,
      id,
      hash: toHex(this.#payloads, last, last + 32),
      chainId,
      form: 'events',
      descriptors: this.#descriptors.slice(0, this.#events * DESCRIPTOR_BYTES),
      payloads: this.#payloads.slice(0, this.#bytes),
      payloadAt: this.#payloadAt.slice(0, this.#events),
    }
    this.forget()
    return block
  }

  #reserve(size: number): void {
    if ((this.#events + 1) * DESCRIPTOR_BYTES > this.#descriptors.length) {
      this.#descriptors = grown(this.#descriptors, this.#descriptors.length * 2)
      const payloadAt = new Int32Array(this.#payloadAt.length * 2)
      payloadAt.set(this.#payloadAt)
      this.#payloadAt = payloadAt
    }
    const need = this.#bytes + size + PAYLOAD_ALIGN
    if (need > this.#payloads.length) this.#payloads = grown(this.#payloads, 2 ** Math.ceil(Math.log2(need)))
  }
}

function grown(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length)
  larger.set(bytes)
  return larger
}

/** The recorded events again as a batch, to be decoded. */
export function batchOf(block: BlockContent & { form: 'events' }): EventBatch {
  const count = block.payloadAt.length
  const batch = new EventBatch({ eventsMax: count, payloadBytes: block.payloads.length })
  batch.descriptorBytes.set(block.descriptors)
  batch.payloadBytes.set(block.payloads)
  batch.payloadAt.set(block.payloadAt)
  batch.count = count
  return batch
}
