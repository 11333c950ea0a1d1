import assert from 'node:assert/strict'
import { ExecRecorder } from '../../../src/evm/event/recorder.ts'
import type { Hex } from '../../../src/evm/hex.ts'
import { BLOOM_BYTES, bloomBits, setBloomBits } from '../../../src/evm/logs-bloom.ts'
import { createSmallRing, openReader } from '../../../src/evm/ring/test-ring.ts'
import { addressOf, idOf, slotOf } from '../../../src/evm/test-block.ts'
import { BlockCapture } from '../../../src/execution/source/block-capture.ts'
import type { SourceMessage } from '../../../src/execution/source/message.ts'

export type EthBlockShape = {
  readonly number: number
  readonly txns: number
  readonly logsPerTxn: number
  readonly dataBytes?: number
  /** Bytes of call data of each transaction. */
  readonly inputBytes?: number
  /** The contract that writes the logs. */
  readonly contract?: number
  /** Some sources have no bloom. */
  readonly hasNoBloom?: boolean
}

const position = (txnIndex?: number) => ({ timeNs: 1n, ...(txnIndex === undefined ? {} : { txnIndex }) })

/** Hash of a transaction in a block of `ethBlock`. */
export const txnHashOf = (number: number, index: number): Hex => slotOf(number * 1_000_000 + index)

/** A block, built from ring events, whose logs all have the contract's address and three topics. */
export function ethBlock(shape: EthBlockShape): SourceMessage & { kind: 'block' } {
  const { number, txns, logsPerTxn, dataBytes = 32, inputBytes = 0, contract = 7 } = shape
  const ring = createSmallRing({ capacity: 2 ** 18, payloadBytes: 2 ** 26, windowStepBytes: 2 ** 20 })
  const recorder = new ExecRecorder(ring.writer)
  const address = addressOf(contract)
  const bloom = new Uint8Array(BLOOM_BYTES)
  const topics = [slotOf(contract), slotOf(1), slotOf(2)]
  if (logsPerTxn > 0 && shape.hasNoBloom !== true)
    for (const value of [address, ...topics]) setBloomBits(bloom, bloomBits(Buffer.from(value.slice(2), 'hex')))
  recorder.add(
    'BLOCK_START',
    { id: idOf(number), block_number: BigInt(number), number: BigInt(number), txn_count: BigInt(txns) },
    position(),
  )
  const data: Hex = `0x${'ab'.repeat(dataBytes)}`
  const input: Hex = `0x${'cd'.repeat(inputBytes)}`
  for (let index = 0; index < txns; index++) {
    recorder.add('TXN_HEADER_START', { txn_hash: txnHashOf(number, index), txn_type: 2, data: input }, position(index))
    recorder.add('TXN_EVM_OUTPUT', { status: true, gas_used: 21_000n, log_count: logsPerTxn }, position(index))
    for (let log = 0; log < logsPerTxn; log++)
      recorder.add('TXN_LOG', { index: log, address, topics, data }, position(index))
  }
  const logs_bloom: Hex = `0x${Buffer.from(bloom).toString('hex')}`
  recorder.add('BLOCK_END', { eth_block_hash: idOf(number, 0xe), logs_bloom }, position())
  recorder.flush()
  const capture = new BlockCapture({ blockBytesMax: 2 ** 26 })
  const reader = openReader(ring.source)
  while (reader.poll(0).kind === 'events') for (let at = 0; at < reader.batch.count; at++) capture.add(reader.batch, at)
  return { kind: 'block', block: capture.take() ?? assert.fail('the block is not complete') }
}

export function rpcCall(method: string, params: readonly unknown[] = [], id: unknown = 1) {
  return { jsonrpc: '2.0', method, params, id }
}
