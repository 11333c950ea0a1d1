import type { Hex } from '../../contract/stream-events.ts'
import type { Work } from '../../core/work.ts'
import { EthBlock } from '../../evm/eth-block.ts'
import { PAYLOADS } from '../../evm/event/payloads.ts'
import { EVENT } from '../../evm/event/type.ts'
import { toHex } from '../../evm/hex.ts'
import { BLOOM_BYTES } from '../../evm/logs-bloom.ts'
import { EventBatch, u64At } from '../../evm/ring/event-batch.ts'
import type { BlockContent } from '../source/message.ts'
import { RpcFailure } from './failure.ts'

/** Approximate size of the index entry of one transaction. */
const TXN_INDEX_BYTES = 216
const TXN_HASH_OFFSET = PAYLOADS.TXN_HEADER_START.fields.txn_hash[1]

/** One recorded block in memory. */
export class HeldBlock {
  readonly number: number
  readonly id: Hex
  readonly hash: Hex
  readonly txnHashes: readonly Hex[]
  /** Distinguishes recordings of the same block id. */
  readonly key: number | string
  /** The bloom of its logs; undefined where the source has none. */
  readonly bloom: Uint8Array | undefined
  readonly bytes: number
  /** Undefined where the block is incomplete. */
  readonly gasLimit: number | undefined
  readonly #batch: EventBatch
  /** Undefined until it was read; null where the block is incomplete. */
  #block: EthBlock | null | undefined

  constructor(content: BlockContent, key: number | string) {
    this.number = content.number
    this.id = content.id
    this.hash = content.hash
    this.key = key
    this.#batch = EventBatch.over(content)
    this.txnHashes = txnHashesOf(this.#batch)
    this.bloom = bloomOf(this.#batch)
    this.gasLimit = gasLimitOf(this.#batch)
    this.bytes =
      [content.descriptors, content.payloads, content.payloadAt].reduce(
        (sum, { buffer }) => sum + buffer.byteLength,
        0,
      ) +
      this.txnHashes.length * TXN_INDEX_BYTES
  }

  /** The block by transaction, computed once; undefined where it is incomplete. */
  *read(): Work<EthBlock | undefined> {
    this.#block ??= this.#block === null ? null : ((yield* EthBlock.read(this.#batch)) ?? null)
    return this.#block ?? undefined
  }

  /** Throws an RpcFailure where the block is incomplete: null would mean that there is no such block, and an empty list no logs. */
  *readComplete(): Work<EthBlock> {
    const block = yield* this.read()
    if (block === undefined) throw new RpcFailure('blocks-not-held', `events of block ${this.number} are missing`)
    return block
  }
}

/** In index order, read without decoding the events. */
function txnHashesOf(batch: EventBatch): Hex[] {
  const hashes: Hex[] = []
  for (let at = 0; at < batch.count; at++) {
    const index = batch.txnIndex(at)
    // A transaction index above the number of events is an error of the source.
    if (batch.type(at) !== EVENT.TXN_HEADER_START || index < 0 || index >= batch.count) continue
    const from = (batch.payloadAt[at] as number) + TXN_HASH_OFFSET
    hashes[index] = toHex(batch.payloadBytes, from, from + 32)
  }
  // A missing header leaves an empty element; the block cannot be decoded, but its other transactions are found.
  return Array.from(hashes, (hash) => hash ?? '0x')
}

function gasLimitOf(batch: EventBatch): number | undefined {
  if (batch.count === 0 || batch.type(0) !== EVENT.BLOCK_START) return undefined
  const from = (batch.payloadAt[0] as number) + PAYLOADS.BLOCK_START.fields.gas_limit[1]
  return u64At(batch.payloadWords, from >>> 2)
}

/** An all-zero bloom is treated as unknown, because some sources do not fill it in. */
function bloomOf(batch: EventBatch): Uint8Array | undefined {
  const last = batch.count - 1
  if (last < 0 || batch.type(last) !== EVENT.BLOCK_END) return undefined
  const from = PAYLOADS.BLOCK_END.fields.logs_bloom[1]
  const bloom = batch.payload(last)?.subarray(from, from + BLOOM_BYTES)
  return bloom?.some((byte) => byte !== 0) ? bloom : undefined
}
