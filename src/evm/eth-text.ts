import type { EthBlock } from './eth-block.ts'
import { headerJson, logJson, receiptJson, transactionJson } from './eth-json.ts'
import { type Hex, toQuantity } from './hex.ts'
import { BloomBuilder } from './logs-bloom.ts'
import { blockRlpBytes } from './rlp-size.ts'

/** JSON text in pieces, so that the work can be interrupted between two of them; undefined is a step without text. */
export type JsonPieces = Generator<string | undefined, void>

/** Called with the recorded bytes of a part before it is decoded; throws to stop. */
export type Admit = (recordedBytes: number) => void

/** A block with full transactions, or with their hashes. */
export function* blockPieces(block: EthBlock, txns: { hashes: readonly Hex[] } | 'full', admit: Admit): JsonPieces {
  const size = toQuantity(yield* blockRlpBytes(block))
  yield `${JSON.stringify({ ...headerJson(block), size, uncles: [] }).slice(0, -1)},"transactions":[`
  for (let index = 0; index < block.txnCount; index++) {
    if (index > 0) yield ','
    yield txns === 'full' ? transactionText(block, index, admit) : `"${txns.hashes[index]}"`
  }
  yield ']}'
}

export function transactionText(block: EthBlock, index: number, admit: Admit): string {
  admit(block.transactionBytes(index))
  return JSON.stringify(transactionJson(block, block.transaction(index)))
}

/** A receipt. Its logs come first, one per piece: a transaction may have a hundred thousand. */
export function* receiptPieces(block: EthBlock, index: number, admit: Admit, bloom = new BloomBuilder()): JsonPieces {
  const txn = block.receipt(index)
  yield '{"logs":['
  let logIndex = 0
  for (const at of block.logsOf(index)) {
    admit(block.batch.payloadSize(at))
    const log = block.log(at)
    bloom.add(log)
    yield `${logIndex === 0 ? '' : ','}${JSON.stringify(logJson(block, txn, log, logIndex))}`
    logIndex += 1
  }
  yield `],${JSON.stringify(receiptJson(block, txn, bloom.take())).slice(1)}`
}

export function* receiptsPieces(block: EthBlock, admit: Admit): JsonPieces {
  const bloom = new BloomBuilder()
  yield '['
  for (let index = 0; index < block.txnCount; index++) {
    if (index > 0) yield ','
    yield* receiptPieces(block, index, admit, bloom)
  }
  yield ']'
}
