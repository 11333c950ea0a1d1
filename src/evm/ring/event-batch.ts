import { DESCRIPTOR, DESCRIPTOR_BYTES, PAYLOAD_ALIGN } from './layout.ts'

/** The descriptor as 32-bit words. */
const WORDS = DESCRIPTOR_BYTES / 4
const SEQNO = DESCRIPTOR.seqno / 4
const TYPE = DESCRIPTOR.type / 4
const PAYLOAD_SIZE = DESCRIPTOR.payloadSize / 4
const TIME = DESCRIPTOR.timeNs / 4
const PAYLOAD_OFFSET = DESCRIPTOR.payloadOffset / 4
const BLOCK_SEQNO = DESCRIPTOR.blockSeqno / 4
const TXN_ID = DESCRIPTOR.txnId / 4
const ACCOUNT_INDEX = DESCRIPTOR.accountIndex / 4
const TWO_32 = 2 ** 32

/** `payloadAt` of an event whose payload was overwritten before it could be copied. */
export const PAYLOAD_LOST = -1

/** The memory of a batch. */
export type BatchMemory = {
  readonly descriptors: Uint8Array
  readonly payloads: Uint8Array
  readonly payloadAt: Int32Array
}

/**
 * Consecutive events, copied out of the ring and verified to be complete. The batch is reused: a caller that keeps something copies it.
 * Fields are read through 32-bit views, because a DataView or a BigInt per field would cost more than the folding.
 * Payloads begin on 16-byte boundaries of `payloadBytes`, so `payloadWords[payloadAt / 4 + n]` is the n-th word of a payload.
 */
export class EventBatch {
  /** Events in the batch. */
  count = 0
  readonly descriptorBytes: Uint8Array
  readonly descriptorWords: Uint32Array
  payloadBytes: Uint8Array
  payloadWords: Uint32Array
  /** For each event, where its payload begins in `payloadBytes`, or PAYLOAD_LOST. */
  readonly payloadAt: Int32Array

  constructor(options: { eventsMax: number; payloadBytes: number }, memory: BatchMemory = allocate(options)) {
    this.descriptorBytes = memory.descriptors
    this.descriptorWords = wordsOf(memory.descriptors)
    this.payloadAt = memory.payloadAt
    this.payloadBytes = memory.payloads
    this.payloadWords = wordsOf(memory.payloads)
  }

  /** A batch over events that are already in memory, without a copy. */
  static over(memory: BatchMemory): EventBatch {
    const count = memory.payloadAt.length
    const batch = new EventBatch({ eventsMax: count, payloadBytes: memory.payloads.length }, memory)
    batch.count = count
    return batch
  }

  /** Grows the payload memory; its content is lost. */
  reservePayload(bytes: number): void {
    if (bytes <= this.payloadBytes.length) return
    this.payloadBytes = new Uint8Array(2 ** Math.ceil(Math.log2(bytes)))
    this.payloadWords = new Uint32Array(this.payloadBytes.buffer)
  }

  seqno(at: number): number {
    return u64At(this.descriptorWords, at * WORDS + SEQNO)
  }

  type(at: number): number {
    return (this.descriptorWords[at * WORDS + TYPE] as number) & 0xffff
  }

  payloadSize(at: number): number {
    return this.descriptorWords[at * WORDS + PAYLOAD_SIZE] as number
  }

  /** Recording time in two halves: nanoseconds since 1970 do not fit a Number. */
  timeLow(at: number): number {
    return this.descriptorWords[at * WORDS + TIME] as number
  }

  timeHigh(at: number): number {
    return this.descriptorWords[at * WORDS + TIME + 1] as number
  }

  payloadOffset(at: number): number {
    return u64At(this.descriptorWords, at * WORDS + PAYLOAD_OFFSET)
  }

  /** Sequence number of the BLOCK_START of the block this event belongs to; 0 outside a block. */
  blockSeqno(at: number): number {
    return u64At(this.descriptorWords, at * WORDS + BLOCK_SEQNO)
  }

  /**
   * Whether the event belongs to the block whose BLOCK_START has this sequence number, given as two signed halves, and to a transaction
   * below `txnCount`. It is called for nearly every event, so words are compared without assembling a u64.
   */
  isInBlock(at: number, low: number, high: number, txnCount: number): boolean {
    const words = this.descriptorWords
    const word = at * WORDS
    if (((words[word + BLOCK_SEQNO] as number) | 0) !== low || ((words[word + BLOCK_SEQNO + 1] as number) | 0) !== high)
      return false
    return words[word + TXN_ID + 1] === 0 ? (words[word + TXN_ID] as number) <= txnCount : this.txnIndex(at) < txnCount
  }

  /** `txnIndex`, for an event of a block with fewer than 2^31 transactions. */
  txnIndexLow(at: number): number {
    return ((this.descriptorWords[at * WORDS + TXN_ID] as number) | 0) - 1
  }

  /** Index of the transaction, or -1 when the event is not part of one. */
  txnIndex(at: number): number {
    const low = this.descriptorWords[at * WORDS + TXN_ID] as number
    const high = this.descriptorWords[at * WORDS + TXN_ID + 1] as number
    return high === 0 ? low - 1 : low + high * TWO_32 - 1
  }

  /** STORAGE_ACCESS only: index of the ACCOUNT_ACCESS it belongs to. */
  accountIndex(at: number): number {
    return u64At(this.descriptorWords, at * WORDS + ACCOUNT_INDEX)
  }

  /** The payload, as a view that is valid until the batch is filled again. */
  payload(at: number): Uint8Array | undefined {
    const begin = this.payloadAt[at] as number
    return begin === PAYLOAD_LOST ? undefined : this.payloadBytes.subarray(begin, begin + this.payloadSize(at))
  }

  /** Recording time in unix milliseconds, to the microsecond. */
  timeMs(at: number): number {
    return Number(this.timeNs(at) / 1000n) / 1000
  }

  timeNs(at: number): bigint {
    return (BigInt(this.timeHigh(at)) << 32n) | BigInt(this.timeLow(at))
  }
}

function allocate(options: { eventsMax: number; payloadBytes: number }): BatchMemory {
  return {
    descriptors: new Uint8Array(options.eventsMax * DESCRIPTOR_BYTES),
    payloads: new Uint8Array(options.payloadBytes),
    payloadAt: new Int32Array(options.eventsMax),
  }
}

function wordsOf({ buffer, byteOffset, byteLength }: Uint8Array): Uint32Array {
  return new Uint32Array(buffer, byteOffset, byteLength >>> 2)
}

/** Payloads are allocated in steps of 16 bytes; one at another offset could not be read through `payloadWords`. */
export function isAligned(offsetLow: number): boolean {
  return (offsetLow & (PAYLOAD_ALIGN - 1)) === 0
}

/** The halves of an integer below 2^53. */
export function lowHalf(value: number): number {
  return value >>> 0
}

export function highHalf(value: number): number {
  return Math.floor(value / TWO_32)
}

/** A little-endian u64 of two words as a Number, exact below 2^53. */
export function u64At(words: Uint32Array, at: number): number {
  return (words[at] as number) + (words[at + 1] as number) * TWO_32
}

/** Nanoseconds between two recording times, never negative: the ring's clock is not monotone. */
export function nanosBetween(fromLow: number, fromHigh: number, toLow: number, toHigh: number): number {
  const nanos = (toHigh - fromHigh) * TWO_32 + (toLow - fromLow)
  return nanos > 0 ? nanos : 0
}
