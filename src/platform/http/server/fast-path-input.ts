import { type ByteTotal, CountedBytes } from '../../net/byte-total.ts'
import { headEnd } from '../field-bytes.ts'
import {
  FAST_PATH_LIMITS,
  type FastPathHead,
  FastPathHeadCache,
  type MemoizedHead,
  mayBeFastPath,
  parseFastPathHead,
} from './fast-path-head.ts'

const NOTHING = Buffer.alloc(0)
const HEAD_END_BYTES = 4

/** The bytes of one connection that are read and not used yet, and the requests in them. */
export class FastPathInput {
  #bytes: Buffer = NOTHING
  readonly #counted: CountedBytes
  /** Bytes of a body that is discarded. */
  #discardBytes = 0
  /** From the second request on. */
  #cache: FastPathHeadCache | undefined

  /** `total` counts these bytes over all connections. */
  constructor(total: ByteTotal) {
    this.#counted = new CountedBytes(total)
  }

  get isEmpty(): boolean {
    return this.#bytes.length === 0
  }

  /** The rest of a discarded body has not come yet. */
  get isDiscarding(): boolean {
    return this.#discardBytes > 0
  }

  append(chunk: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
  }

  /** Copies what is still a view of this chunk: the next read of any connection overwrites it. */
  detachFrom(chunk: Buffer): void {
    if (this.#bytes.length > 0 && this.#bytes.buffer === chunk.buffer) this.#bytes = Buffer.from(this.#bytes)
  }

  /** Counts what is held. False when it grew and all connections together hold too much. */
  count(): boolean {
    return this.#counted.set(this.#bytes.length)
  }

  /** Drops the next bytes, including those that have not come. */
  discard(bytes: number): void {
    this.#discardBytes = bytes
  }

  /** Drops what has come of a discarded body. */
  dropDiscarded(): void {
    const dropped = Math.min(this.#discardBytes, this.#bytes.length)
    this.#discardBytes -= dropped
    this.#bytes = after(this.#bytes, dropped)
  }

  /** The next head; 'more' when it is incomplete; undefined when it is for the complete parser. */
  readHead(isFirst: boolean): MemoizedHead | 'more' | undefined {
    const bytes = this.#bytes
    const cache = this.#cache
    const cached = cache?.match(bytes)
    if (cached !== undefined) {
      this.#bytes = after(bytes, (cache as FastPathHeadCache).bodyAt)
      return cached
    }
    const end = headEnd(bytes, 0)
    if (end === -1 && bytes.length <= FAST_PATH_LIMITS.headBytesMax && mayBeFastPath(bytes)) return 'more'
    if (end === -1 || end > FAST_PATH_LIMITS.headBytesMax) return undefined
    const head = parseFastPathHead(bytes.subarray(0, end + 2))
    if (head === undefined) return undefined
    const memoized = this.#memoize(head, isFirst, end + HEAD_END_BYTES)
    this.#bytes = after(bytes, end + HEAD_END_BYTES)
    return memoized
  }

  /** Not before the second request: a connection with one request does not pay for the cache, and one with two mostly has many. */
  #memoize(head: FastPathHead, isFirst: boolean, headBytes: number): MemoizedHead {
    if (isFirst) return { ...head, memo: undefined }
    this.#cache ??= new FastPathHeadCache()
    return this.#cache.remember(head, this.#bytes, headBytes)
  }

  /** A body that has come completely; undefined when it has not. A view: see `detachFrom`. */
  takeBody(bodyBytes: number): Buffer | undefined {
    const bytes = this.#bytes
    if (bytes.length < bodyBytes) return undefined
    this.#bytes = after(bytes, bodyBytes)
    return bytes.length === bodyBytes ? bytes : bytes.subarray(0, bodyBytes)
  }

  takeAll(): Buffer {
    const bytes = this.#bytes
    this.#bytes = NOTHING
    return bytes
  }
}

/** A body of known length that arrives in pieces, collected in one buffer. */
export class PartialBody {
  #bytes: Buffer = NOTHING
  #filled = 0
  #release: ((bytes: number) => void) | undefined

  /** `release` is called with the length when the body is not held here any longer. */
  begin(bytes: number, release: ((bytes: number) => void) | undefined): void {
    this.#bytes = Buffer.allocUnsafe(bytes)
    this.#filled = 0
    this.#release = release
  }

  get isComplete(): boolean {
    return this.#filled === this.#bytes.length
  }

  /** Returns the bytes behind the body. */
  fill(chunk: Buffer): Buffer {
    const taken = Math.min(chunk.length, this.#bytes.length - this.#filled)
    chunk.copy(this.#bytes, this.#filled, 0, taken)
    this.#filled += taken
    return after(chunk, taken)
  }

  take(): Buffer {
    const bytes = this.#bytes
    this.drop()
    return bytes
  }

  drop(): void {
    this.#release?.(this.#bytes.length)
    this.#release = undefined
    this.#bytes = NOTHING
    this.#filled = 0
  }
}

function after(bytes: Buffer, count: number): Buffer {
  return bytes.length === count ? NOTHING : bytes.subarray(count)
}
