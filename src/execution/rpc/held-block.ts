import type { Hex } from '../../contract/stream-events.ts'
import type { Work } from '../../core/work.ts'
import { EthBlock } from '../../evm/eth-block.ts'
import { PAYLOADS } from '../../evm/event/exec-event.ts'
import { EVENT } from '../../evm/event/type.ts'
import { toHex } from '../../evm/hex.ts'
import { BLOOM_BYTES } from '../../evm/logs-bloom.ts'
import { EventBatch } from '../../evm/ring/event-batch.ts'
import type { BlockContent } from '../source/message.ts'

/** What the index keeps for one transaction, roughly. */
const TXN_INDEX_BYTES = 160
const HASH_BYTES = 32

/** One block in memory, as it was recorded. */
export class HeldBlock {
  readonly number: number
  readonly id: Hex
  readonly hash: Hex
  readonly txnHashes: readonly Hex[]
  /** Distinguishes it from another block of the same id. */
  readonly key: number
  /** The filter of all its logs, unless the source has none. */
  readonly bloom: Uint8Array | undefined
  readonly bytes: number
  readonly #batch: EventBatch
  /** Undefined until it was read once; null where the block is not whole. */
  #block: EthBlock | null | undefined

  constructor(content: BlockContent, key: number) {
    this.number = content.number
    this.id = content.id
    this.hash = content.hash
    this.key = key
    this.#batch = EventBatch.over(content)
    this.txnHashes = txnHashesOf(this.#batch)
    this.bloom = bloomOf(this.#batch)
    this.bytes =
      [content.descriptors, content.payloads, content.payloadAt].reduce(
        (sum, { buffer }) => sum + buffer.byteLength,
        0,
      ) +
      this.txnHashes.length * TXN_INDEX_BYTES
  }

  /** Its transactions, found once; undefined where something of the block is missing. */
  *read(): Work<EthBlock | undefined> {
    this.#block ??= this.#block === null ? null : ((yield* EthBlock.read(this.#batch)) ?? null)
    return this.#block ?? undefined
  }
}

/** In index order, read without decoding the events. */
function txnHashesOf(batch: EventBatch): Hex[] {
  const hashes: Hex[] = []
  for (let at = 0; at < batch.count; at++) {
    const index = batch.txnIndex(at)
    // A transaction has events: an index beyond their number is a mistake of the source.
    if (batch.type(at) !== EVENT.TXN_HEADER_START || index < 0 || index >= batch.count) continue
    const from = batch.payloadAt[at] as number
    hashes[index] = toHex(batch.payloadBytes, from, from + HASH_BYTES)
  }
  // A header that is missing leaves a hole; the block then cannot be decoded, but its other transactions are found.
  return Array.from(hashes, (hash) => hash ?? '0x')
}

/** A bloom without a bit in a block is taken for one that the source does not know: no logs are hidden by it. */
function bloomOf(batch: EventBatch): Uint8Array | undefined {
  const last = batch.count - 1
  if (last < 0 || batch.type(last) !== EVENT.BLOCK_END) return undefined
  const from = PAYLOADS.BLOCK_END.fields.logs_bloom[1]
  const bloom = batch.payload(last)?.subarray(from, from + BLOOM_BYTES)
  return bloom?.some((byte) => byte !== 0) ? bloom : undefined
}
