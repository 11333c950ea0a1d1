import { EVENT, eventSet } from '../../evm/event/type.ts'
import { resize } from '../../evm/fold/key-table.ts'
import { toHex } from '../../evm/hex.ts'
import { type EventBatch, PAYLOAD_LOST } from '../../evm/ring/event-batch.ts'
import { DESCRIPTOR_BYTES, PAYLOAD_ALIGN } from '../../evm/ring/layout.ts'
import type { BlockContent } from './message.ts'
import { blockStartFacts } from './raw-events.ts'

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
/** Blocks resemble the one before: a new one gets its room and this much more. */
const SPARE = 1.25
const DESCRIPTOR_WORDS = DESCRIPTOR_BYTES / 4
/** Up to here copying word by word takes less than making views of the memory to copy between, and leaves nothing to collect. */
const FEW_WORDS = 128

/**
 * Keeps the bytes of the open block's events, undecoded: copying them costs a fraction of decoding, and most blocks are never asked
 * for. A block with an event missing or too many bytes is not kept at all.
 */
export class BlockRecorder {
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
   * The block that has just ended, in memory of its own: that in which it was gathered, since this is the moment in which everybody
   * waits for its figures. Memory for the next one is taken from the system as its events come.
   */
  take(): BlockContent | undefined {
    if (this.#blockSeqno === 0 || this.#events < 2) return undefined
    const payloads = new Uint8Array(this.#payloads.buffer, 0, this.#bytes)
    const last = this.#payloadAt[this.#events - 1] as number
    const { id, number, chainId } = blockStartFacts(payloads.subarray(0, 528))
    const block: BlockContent = {
      number,
      id,
      hash: toHex(payloads, last, last + 32),
      chainId,
      descriptors: withoutWaste(new Uint8Array(this.#descriptors.buffer, 0, this.#events * DESCRIPTOR_BYTES)),
      payloads: withoutWaste(payloads),
      payloadAt: withoutWaste(this.#payloadAt.subarray(0, this.#events)),
    }
    this.forget()
    this.#makeRoom(block)
    return block
  }

  /** For a block like the one before; where that one was copied out, its room serves again. */
  #makeRoom(gone: BlockContent): void {
    const events = Math.max(FIRST_EVENTS, Math.ceil(this.#events * SPARE))
    const payloadWords = Math.ceil(Math.max(FIRST_BYTES, this.#bytes * SPARE) / 4)
    if (!mayStay(this.#descriptors, gone.descriptors, events * DESCRIPTOR_WORDS))
      this.#descriptors = new Uint32Array(events * DESCRIPTOR_WORDS)
    if (!mayStay(this.#payloadAt, gone.payloadAt, events)) this.#payloadAt = new Int32Array(events)
    if (!mayStay(this.#payloads, gone.payloads, payloadWords)) this.#payloads = new Uint32Array(payloadWords)
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

function mayStay(room: Uint32Array | Int32Array, gone: Uint8Array | Int32Array, length: number): boolean {
  return gone.buffer !== room.buffer && room.length <= length
}

/** A small block that was gathered in the room of a large one moves to a place of its size. */
function withoutWaste<Part extends Uint8Array<ArrayBuffer> | Int32Array<ArrayBuffer>>(part: Part): Part {
  return part.byteLength * 2 < part.buffer.byteLength ? (part.slice() as Part) : part
}

function copyWords(from: Uint32Array, fromAt: number, to: Uint32Array, toAt: number, words: number): void {
  if (words > FEW_WORDS) return to.set(from.subarray(fromAt, fromAt + words), toAt)
  for (let word = 0; word < words; word++) to[toAt + word] = from[fromAt + word] as number
}
