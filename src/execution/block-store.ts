import type { Hex, Stage } from '../contract/stream-events.ts'
import { assembleEthBlock, type EthBlock } from '../evm/eth-block.ts'
import { headerJson, receiptJson, transactionJson } from '../evm/eth-json.ts'
import { decodeEvent, type ExecEvent } from '../evm/exec-event.ts'
import { toHex, toQuantity } from '../evm/hex.ts'
import { batchOf } from './record-block.ts'
import type { BlockContent, BlockJson, JsonObject } from './source-message.ts'

export type BlockStoreOptions = { readonly blocksMax: number; readonly bytesMax: number }

/** A block as JSON-RPC shows it. */
export type BlockAnswer = { readonly block: BlockJson; readonly receipts: readonly JsonObject[] }

export type HeldBlock = {
  readonly number: number
  readonly id: Hex
  readonly hash: Hex
  readonly txnHashes: readonly Hex[]
  /** Decoded when asked for; undefined where something of the block is missing. */
  answer(): BlockAnswer | undefined
}

/** Blocks that stay decoded, for clients that ask for several things of one block. */
const DECODED_MAX = 8
const TXN_HEADER_START = 10

/** The last executed blocks, abandoned proposals included, bounded in number and bytes. */
export class BlockStore {
  readonly #options: BlockStoreOptions
  readonly #stageOf: (id: Hex) => Stage | undefined
  /** In order of execution. */
  readonly #blocks = new Map<Hex, HeldBlock & { bytes: number }>()
  readonly #byTxn = new Map<Hex, HeldBlock>()
  readonly #decoded = new Map<Hex, BlockAnswer | undefined>()
  #bytes = 0

  constructor(options: BlockStoreOptions, deps: { stageOf: (id: Hex) => Stage | undefined }) {
    this.#options = options
    this.#stageOf = deps.stageOf
  }

  get size(): number {
    return this.#blocks.size
  }

  add(content: BlockContent): void {
    this.#remove(content.id)
    const txnHashes = txnHashesOf(content)
    const { number, id, hash } = content
    const bytes = bytesOf(content) + txnHashes.length * TXN_INDEX_BYTES
    const held = { number, id, hash, txnHashes, bytes, answer: () => this.#decode(id, content) }
    this.#blocks.set(id, held)
    this.#bytes += bytes
    for (const txnHash of txnHashes) this.#byTxn.set(txnHash, held)
    while (this.#blocks.size > 1 && this.#isOver()) this.#remove(this.#blocks.keys().next().value as Hex)
  }

  /** The last one executed. */
  get latest(): HeldBlock | undefined {
    return [...this.#blocks.values()].at(-1)
  }

  get earliest(): HeldBlock | undefined {
    return this.#inOrder().at(0)
  }

  /** Lowest and highest number held. */
  get range(): { from: number; to: number } | undefined {
    const blocks = this.#inOrder()
    const [first, last] = [blocks.at(0), blocks.at(-1)]
    return first === undefined || last === undefined ? undefined : { from: first.number, to: last.number }
  }

  /** The highest block that has come this far. */
  highest(stages: readonly Stage[]): HeldBlock | undefined {
    return this.#inOrder().findLast(({ id }) => stages.includes(this.#stageOf(id) as Stage))
  }

  /** The finalized block of a number, else the newest proposal. */
  byNumber(number: number): HeldBlock | undefined {
    const held = [...this.#blocks.values()].filter((block) => block.number === number)
    return held.find(({ id }) => isFinal(this.#stageOf(id))) ?? held.at(-1)
  }

  /** By Ethereum hash or by consensus id. */
  byHash(hash: Hex): HeldBlock | undefined {
    return this.#blocks.get(hash) ?? this.#blocks.values().find((block) => block.hash === hash)
  }

  /** The block of a transaction: that of the finalized chain where several proposals hold it. */
  byTxn(hash: Hex): { held: HeldBlock; index: number } | undefined {
    const newest = this.#byTxn.get(hash)
    if (newest === undefined) return undefined
    const held = this.byNumber(newest.number)?.txnHashes.includes(hash) ? this.byNumber(newest.number) : newest
    return held === undefined ? undefined : { held, index: held.txnHashes.indexOf(hash) }
  }

  #inOrder(): HeldBlock[] {
    return [...this.#blocks.values()].toSorted((a, b) => a.number - b.number)
  }

  #isOver(): boolean {
    return this.#blocks.size > this.#options.blocksMax || this.#bytes > this.#options.bytesMax
  }

  #remove(id: Hex): void {
    const held = this.#blocks.get(id)
    if (held === undefined) return
    this.#blocks.delete(id)
    this.#decoded.delete(id)
    this.#bytes -= held.bytes
    for (const txnHash of held.txnHashes) if (this.#byTxn.get(txnHash) === held) this.#byTxn.delete(txnHash)
  }

  #decode(id: Hex, content: BlockContent): BlockAnswer | undefined {
    if (content.form === 'json') return { block: content.block, receipts: content.receipts }
    if (this.#decoded.has(id)) return this.#decoded.get(id)
    if (this.#decoded.size >= DECODED_MAX) this.#decoded.delete(this.#decoded.keys().next().value as Hex)
    const answer = decodeBlock(content)
    this.#decoded.set(id, answer)
    return answer
  }
}

/** What the index keeps for one transaction, roughly. */
const TXN_INDEX_BYTES = 160

function decodeBlock(content: BlockContent & { form: 'events' }): BlockAnswer | undefined {
  const batch = batchOf(content)
  const events: ExecEvent[] = []
  for (let at = 0; at < batch.count; at++) {
    const decoded = decodeEvent(batch, at)
    if (!decoded.ok) return undefined
    events.push(decoded.event)
  }
  const block = assembleEthBlock(events)
  if (block === undefined) return undefined
  return {
    block: {
      ...headerJson(block),
      // The ring does not tell it: the bytes of the block's events stand in.
      size: toQuantity(content.payloads.length),
      uncles: [],
      transactions: block.txns.map((_, index) => transactionJson(block, index)),
    },
    receipts: receiptsOf(block),
  }
}

function receiptsOf(block: EthBlock): JsonObject[] {
  return block.txns.map((_, index) => receiptJson(block, index))
}

/** In index order, read without decoding the events. */
function txnHashesOf(content: BlockContent): Hex[] {
  if (content.form === 'json') return content.block.transactions.map(({ hash }) => hash as Hex)
  const words = new Uint32Array(content.descriptors.buffer, content.descriptors.byteOffset)
  const hashes: Hex[] = []
  for (let at = 0; at < content.payloadAt.length; at++) {
    if (((words[at * 16 + 2] as number) & 0xffff) !== TXN_HEADER_START) continue
    const from = content.payloadAt[at] as number
    hashes[(words[at * 16 + 10] as number) - 1] = toHex(content.payloads, from, from + 32)
  }
  // A header that is missing leaves a hole; the block then cannot be decoded, but its other transactions are found.
  return Array.from(hashes, (hash) => hash ?? '0x')
}

function bytesOf(content: BlockContent): number {
  if (content.form === 'events')
    return [content.descriptors, content.payloads, content.payloadAt].reduce(
      (sum, { buffer }) => sum + buffer.byteLength,
      0,
    )
  return JSON.stringify(content.block).length + JSON.stringify(content.receipts).length
}

function isFinal(stage: Stage | undefined): boolean {
  return stage === 'Finalized' || stage === 'Verified'
}
