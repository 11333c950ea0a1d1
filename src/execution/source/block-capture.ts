import { decodePayload } from '../../evm/event/payload-layout.ts'
import { PAYLOADS } from '../../evm/event/payloads.ts'
import { EVENT, eventSet } from '../../evm/event/type.ts'
import { resize } from '../../evm/fold/key-table.ts'
import { type Hex, toHex } from '../../evm/hex.ts'
import { type EventBatch, PAYLOAD_LOST } from '../../evm/ring/event-batch.ts'
import { DESCRIPTOR_BYTES, PAYLOAD_ALIGN } from '../../evm/ring/layout.ts'
import type { BlockContent } from './message.ts'

/** The events that JSON-RPC responses are made from, and the times of transactions. */
const CAPTURED = eventSet([
  EVENT.BLOCK_START,
  EVENT.TXN_HEADER_START,
  EVENT.TXN_ACCESS_LIST_ENTRY,
  EVENT.TXN_AUTH_LIST_ENTRY,
  EVENT.TXN_PERF_EVM_ENTER,
  EVENT.TXN_PERF_EVM_EXIT,
  EVENT.TXN_EVM_OUTPUT,
  EVENT.TXN_LOG,
  EVENT.BLOCK_END,
])

const FIRST_EVENTS = 1024
const FIRST_BYTES = 2 ** 18
/** Memory for the next block, relative to the last one: blocks resemble the one before. */
const SPARE = 1.25
const DESCRIPTOR_WORDS = DESCRIPTOR_BYTES / 4
/** Up to this size, copying word by word is faster than `set` with a subarray, and allocates nothing. */
const FEW_WORDS = 128

/**
 * Copies the bytes of the open block's events without decoding them: copying costs a fraction of decoding, and most blocks are never
 * requested. A block with a lost payload or too many bytes is discarded.
 */
export class BlockCapture {
  readonly #bytesMax: number
  #blockSeqno = 0
  #events = 0
  #bytes = 0
  #descriptors = new Uint32Array(FIRST_EVENTS * DESCRIPTOR_WORDS)
  #payloadAt = new Int32Array(FIRST_EVENTS)
  #payloads = new Uint32Array(FIRST_BYTES / 4)

  constructor(options: { blockBytesMax: number }) {
    this.#bytesMax = options.blockBytesMax
  }

  /** Discards the block; where a number is given, only if its BLOCK_START has it: the next one may have begun already. */
  forget(blockSeqno = this.#blockSeqno): void {
    if (blockSeqno === this.#blockSeqno) this.#blockSeqno = 0
  }

  add(batch: EventBatch, at: number): void {
    const type = batch.type(at)
    if (CAPTURED[type] !== 1) return
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
    const { descriptorWords, payloadWords } = batch
    copyWords(
      descriptorWords,
      at * DESCRIPTOR_WORDS,
      this.#descriptors,
      this.#events * DESCRIPTOR_WORDS,
      DESCRIPTOR_WORDS,
    )
    copyWords(payloadWords, from / 4, this.#payloads, this.#bytes / 4, Math.ceil(size / 4))
    this.#payloadAt[this.#events] = this.#bytes
    this.#events += 1
    this.#bytes += Math.ceil(size / PAYLOAD_ALIGN) * PAYLOAD_ALIGN
  }

  /**
   * The block that has just ended, in the memory into which it was copied: a copy here would delay its figures. The next block gets new
   * memory.
   */
  take(): BlockContent | undefined {
    if (this.#blockSeqno === 0 || this.#events < 2) return undefined
    const payloads = new Uint8Array(this.#payloads.buffer, 0, this.#bytes)
    const start = decodePayload(PAYLOADS.BLOCK_START, payloads.subarray(0, PAYLOADS.BLOCK_START.bytes))
    if (start === undefined) return undefined
    const block: BlockContent = {
      number: Number(start.block_number),
      id: start.id,
      hash: this.#ethHash(payloads),
      chainId: Number(start.chain_id),
      descriptors: compact(new Uint8Array(this.#descriptors.buffer, 0, this.#events * DESCRIPTOR_BYTES)),
      payloads: compact(payloads),
      payloadAt: compact(this.#payloadAt.subarray(0, this.#events)),
    }
    this.forget()
    this.#reserveLike(block)
    return block
  }

  #ethHash(payloads: Uint8Array): Hex {
    const from = (this.#payloadAt[this.#events - 1] as number) + PAYLOADS.BLOCK_END.fields.eth_block_hash[1]
    return toHex(payloads, from, from + 32)
  }

  /** Allocates memory for a block of similar size. Arrays that the taken block does not use are reused. */
  #reserveLike(taken: BlockContent): void {
    const events = Math.max(FIRST_EVENTS, Math.ceil(this.#events * SPARE))
    const payloadWords = Math.ceil(Math.max(FIRST_BYTES, this.#bytes * SPARE) / 4)
    if (!canReuse(this.#descriptors, taken.descriptors, events * DESCRIPTOR_WORDS))
      this.#descriptors = new Uint32Array(events * DESCRIPTOR_WORDS)
    if (!canReuse(this.#payloadAt, taken.payloadAt, events)) this.#payloadAt = new Int32Array(events)
    if (!canReuse(this.#payloads, taken.payloads, payloadWords)) this.#payloads = new Uint32Array(payloadWords)
  }

  #reserve(size: number): void {
    if ((this.#events + 1) * DESCRIPTOR_WORDS > this.#descriptors.length)
      this.#descriptors = resize(this.#descriptors, new Uint32Array(this.#descriptors.length * 2))
    if (this.#events === this.#payloadAt.length)
      this.#payloadAt = resize(this.#payloadAt, new Int32Array(this.#payloadAt.length * 2))
    const needWords = (this.#bytes + size + PAYLOAD_ALIGN) / 4
    if (needWords > this.#payloads.length)
      this.#payloads = resize(this.#payloads, new Uint32Array(2 ** Math.ceil(Math.log2(needWords))))
  }
}

function canReuse(array: Uint32Array | Int32Array, taken: Uint8Array | Int32Array, length: number): boolean {
  return taken.buffer !== array.buffer && array.length <= length
}

/** Copies a small block out of memory that was allocated for a large one. */
function compact<Part extends Uint8Array<ArrayBuffer> | Int32Array<ArrayBuffer>>(part: Part): Part {
  return part.byteLength * 2 < part.buffer.byteLength ? (part.slice() as Part) : part
}

function copyWords(from: Uint32Array, fromAt: number, to: Uint32Array, toAt: number, words: number): void {
  if (words > FEW_WORDS) return to.set(from.subarray(fromAt, fromAt + words), toAt)
  for (let word = 0; word < words; word++) to[toAt + word] = from[fromAt + word] as number
}
