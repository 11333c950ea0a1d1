import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import { keccak256, serializeTransaction, toRlp, type Hex as ViemHex } from 'viem'
import { finish } from '../../src/core/work.ts'
import { EthBlock } from '../../src/evm/eth-block.ts'
import type { EventPayload } from '../../src/evm/event/payloads.ts'
import type { ExecRecorder } from '../../src/evm/event/recorder.ts'
import { EVENT } from '../../src/evm/event/type.ts'
import { createFoldRing } from '../../src/evm/fold/test-fold.ts'
import type { Hex } from '../../src/evm/hex.ts'
import { EventBatch } from '../../src/evm/ring/event-batch.ts'
import { createRingReader } from '../../src/evm/ring/reader.ts'
import { createMemorySource } from '../../src/evm/ring/test-memory-ring.ts'
import { openReader } from '../../src/evm/ring/test-ring.ts'
import { blockRlpBytes } from '../../src/evm/rlp-size.ts'
import { addressOf, slotOf } from '../../src/evm/test-block.ts'
import { recordedDataFolder, skipWithoutRecordedData } from '../recorded-data.ts'
import { checkProperty } from '../support/process/property.ts'

/** Compared with encodings of viem, an independent implementation. */

type Header = Partial<EventPayload<'TXN_HEADER_START'>>
type Start = EventPayload<'BLOCK_START'>

const number = (value: bigint): ViemHex => (value === 0n ? '0x' : `0x${evenHex(value)}`)
const evenHex = (value: bigint): string => {
  const digits = value.toString(16)
  return digits.length % 2 === 0 ? digits : `0${digits}`
}

function headerFields({ start, end }: Pick<EthBlock, 'start' | 'end'>): ViemHex[] {
  const extra: Hex = `0x${start.extra_data.slice(2, 2 + 2 * Number(start.extra_data_length))}`
  const hasRoot = !/^0x0*$/.test(start.withdrawals_root)
  return [
    start.parent_eth_hash,
    start.ommers_hash,
    start.beneficiary,
    end.state_root,
    start.transactions_root,
    end.receipts_root,
    end.logs_bloom,
    number(start.difficulty),
    number(start.number),
    number(start.gas_limit),
    number(end.gas_used),
    number(start.timestamp),
    extra,
    start.prev_randao,
    start.nonce,
    number(start.base_fee_per_gas),
    ...(hasRoot ? [start.withdrawals_root, '0x' as const, '0x' as const, slotOf(0), slotOf(0)] : []),
  ]
}

/** The transaction encoded by viem. */
function encoded(block: EthBlock, index: number): ViemHex {
  const { header, accessList, authList } = block.transaction(index)
  const common = {
    nonce: Number(header.nonce),
    gas: header.gas_limit,
    value: header.value,
    data: header.data,
    ...(header.is_contract_creation ? {} : { to: header.to }),
  }
  const chainId = Number(header.chain_id)
  const access = accessList.map((entry) => ({ address: entry.address, storageKeys: entry.storage_keys }))
  const fees = { maxFeePerGas: header.max_fee_per_gas, maxPriorityFeePerGas: header.max_priority_fee_per_gas }
  const signature = { r: word(header.r), s: word(header.s), yParity: header.y_parity ? 1 : 0 }
  switch (header.txn_type) {
    case 0:
      return serializeTransaction(
        { ...common, type: 'legacy', gasPrice: header.max_fee_per_gas, ...(chainId === 0 ? {} : { chainId }) },
        {
          ...signature,
          v: chainId === 0 ? 27n + BigInt(signature.yParity) : BigInt(35 + 2 * chainId + signature.yParity),
        },
      )
    case 1:
      return serializeTransaction(
        { ...common, type: 'eip2930', chainId, gasPrice: header.max_fee_per_gas, accessList: access },
        signature,
      )
    case 2:
      return serializeTransaction({ ...common, ...fees, type: 'eip1559', chainId, accessList: access }, signature)
    default:
      return serializeTransaction(
        {
          ...common,
          ...fees,
          type: 'eip7702',
          chainId,
          accessList: access,
          authorizationList: authList.map((one) => ({
            address: one.address,
            chainId: Number(one.chain_id),
            nonce: Number(one.nonce),
            r: word(one.r),
            s: word(one.s),
            yParity: one.y_parity ? 1 : 0,
          })),
        },
        signature,
      )
  }
}

const word = (value: bigint): ViemHex => `0x${value.toString(16)}`

function encodedBlock(block: EthBlock): number {
  const txns = Array.from({ length: block.txnCount }, (_, index) => encoded(block, index))
  // A legacy transaction is encoded as a list, the others as a byte string.
  const parts = txns.map((txn) => (txn.slice(2, 4) >= 'c0' ? txn : toRlp(txn)))
  const list = (parts_: readonly ViemHex[]): ViemHex => {
    const content = parts_.map((part) => part.slice(2)).join('')
    const length = content.length / 2
    if (length <= 55) return `0x${(0xc0 + length).toString(16)}${content}`
    const size = evenHex(BigInt(length))
    return `0x${(0xf7 + size.length / 2).toString(16)}${size}${content}`
  }
  const hasRoot = !/^0x0*$/.test(block.start.withdrawals_root)
  const whole = list([toRlp(headerFields(block)), list(parts), '0xc0', ...(hasRoot ? ['0xc0' as const] : [])])
  return whole.length / 2 - 1
}

function readBlock(start: Partial<Start>, record: (recorder: ExecRecorder) => void, gasUsed = 0n): EthBlock {
  const { recorder, source } = createFoldRing()
  recorder.add('BLOCK_START', start, { timeNs: 1n })
  record(recorder)
  recorder.add('BLOCK_END', { gas_used: gasUsed }, { timeNs: 1n })
  recorder.flush()
  const reader = openReader(source, { seqno: 1 }, { eventsMax: 2 ** 12 })
  assert.equal(reader.poll(0).kind, 'events')
  const { batch } = reader
  const memory = { descriptors: batch.descriptorBytes.slice(0, batch.count * 64), payloads: batch.payloadBytes.slice() }
  const copy = EventBatch.over({ ...memory, payloadAt: batch.payloadAt.slice(0, batch.count) })
  return finish(EthBlock.read(copy)) ?? assert.fail('the block is not whole')
}

const uint = (bits: bigint) =>
  fc.tuple(fc.bigInt(0n, bits), fc.bigInt(0n, 2n ** bits - 1n)).map(([shift, value]) => value >> shift)
const header: fc.Arbitrary<Header> = fc.record({
  txn_type: fc.constantFrom(0, 1, 2, 4),
  chain_id: fc.oneof(fc.constantFrom(0n, 1n, 46n, 143n), uint(40n)),
  nonce: uint(53n),
  gas_limit: uint(64n),
  // viem refuses a fee above 2^256 - 1 and a tip above the fee.
  max_fee_per_gas: uint(200n).map((value) => value + 2n ** 201n),
  max_priority_fee_per_gas: uint(200n),
  value: uint(256n),
  r: uint(256n).map((value) => value | 1n),
  s: uint(256n).map((value) => value | 1n),
  y_parity: fc.boolean(),
  is_contract_creation: fc.boolean(),
  data: fc.uint8Array({ maxLength: 300 }).map((bytes): Hex => `0x${Buffer.from(bytes).toString('hex')}`),
})
const txn = fc.record({
  header,
  keys: fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 3 }),
  auths: fc.integer({ min: 0, max: 3 }),
})

describe('the size of a block in RLP', () => {
  test('equals the size of the encoding by viem, for every transaction type', (t) => {
    checkProperty(
      t,
      fc.property(fc.array(txn, { maxLength: 5 }), uint(64n), uint(256n), fc.boolean(), (txns, gas, fee, hasRoot) => {
        const start: Partial<Start> = {
          txn_count: BigInt(txns.length),
          number: gas,
          timestamp: gas >> 7n,
          base_fee_per_gas: fee,
          extra_data: `0x${'7f'.repeat(32)}`,
          extra_data_length: gas % 33n,
          ...(hasRoot ? { withdrawals_root: slotOf(5) } : {}),
        }
        const block = readBlock(
          start,
          (recorder) => {
            for (const [txnIndex, { header: given, keys, auths }] of txns.entries()) {
              const position = { timeNs: 1n, txnIndex }
              const chain = given.txn_type === 0 ? {} : { chain_id: given.chain_id || 1n }
              const access_list_count = given.txn_type === 0 ? 0 : keys.length
              const auth_list_count = given.txn_type === 4 ? auths : 0
              const counts = { access_list_count, auth_list_count }
              recorder.add('TXN_HEADER_START', { ...given, ...chain, ...counts, to: addressOf(9) }, position)
              if (given.txn_type !== 0)
                for (const count of keys) {
                  const storage_keys = Array.from({ length: count }, (_, key) => slotOf(key))
                  recorder.add('TXN_ACCESS_LIST_ENTRY', { address: addressOf(3), storage_keys }, position)
                }
              if (given.txn_type === 4)
                for (let auth = 0; auth < auths; auth++) {
                  const tuple = { chain_id: BigInt(auth), nonce: BigInt(auth * 100), r: 2n ** 255n, s: 128n }
                  recorder.add(
                    'TXN_AUTH_LIST_ENTRY',
                    { ...tuple, address: addressOf(4), y_parity: auth === 1 },
                    position,
                  )
                }
              recorder.add('TXN_EVM_OUTPUT', {}, position)
            }
          },
          gas,
        )
        assert.equal(finish(blockRlpBytes(block)), encodedBlock(block))
      }),
      150,
      3000,
    )
  })

  test('includes hashes and fee of blob transactions', () => {
    // Long enough that the length prefixes around it do not change size.
    const data: Hex = `0x${'ab'.repeat(300)}`
    const size = (blob: Header): number =>
      finish(
        blockRlpBytes(
          readBlock({ txn_count: 1n }, (recorder) => {
            recorder.add('TXN_HEADER_START', { txn_type: 3, chain_id: 1n, data, ...blob }, { timeNs: 1n, txnIndex: 0 })
            recorder.add('TXN_EVM_OUTPUT', {}, { timeNs: 1n, txnIndex: 0 })
          }),
        ),
      )
    const bare = size({})
    assert.equal(size({ max_fee_per_blob_gas: 2n ** 64n }) - bare, 9)
    // Three hashes of 33 bytes, and the length of the list in a byte more.
    assert.equal(size({ blob_versioned_hashes: [slotOf(1), slotOf(2), slotOf(3)] }) - bare, 3 * 33 + 1)
  })

  test('the recorded Ethereum block: encodings of header and transactions hash to the recorded hashes', {
    skip: skipWithoutRecordedData(),
  }, () => {
    const image = zstdDecompressSync(readFileSync(join(recordedDataFolder, 'rings', 'emn-1b-15m.snapshot.zst')))
    const created = createRingReader(createMemorySource(image), 'oldest', { eventsMax: 2 ** 16 })
    assert(created.ok)
    const { reader } = created
    assert.equal(reader.poll(0).kind, 'events')
    const { batch } = reader
    const kept = Array.from({ length: batch.count }, (_, at) => at).filter((at) => {
      const type = batch.type(at)
      const block = [EVENT.BLOCK_START, EVENT.BLOCK_END] as number[]
      const parts = [
        EVENT.TXN_HEADER_START,
        EVENT.TXN_ACCESS_LIST_ENTRY,
        EVENT.TXN_EVM_OUTPUT,
        EVENT.TXN_LOG,
      ] as number[]
      return block.includes(type) || parts.includes(type)
    })
    const descriptors = Buffer.concat(kept.map((at) => batch.descriptorBytes.subarray(at * 64, at * 64 + 64)))
    const payloadAt = Int32Array.from(kept, (at) => batch.payloadAt[at] as number)
    const memory = { descriptors: new Uint8Array(descriptors), payloads: batch.payloadBytes, payloadAt }
    const block = finish(EthBlock.read(EventBatch.over(memory))) ?? assert.fail('the block is not whole')
    for (let index = 0; index < block.txnCount; index++)
      assert.equal(keccak256(encoded(block, index)), block.transaction(index).header.txn_hash, `transaction ${index}`)
    assert.equal(finish(blockRlpBytes(block)), encodedBlock(block))
    assert.equal(keccak256(toRlp(headerFields(block))), block.end.eth_block_hash)
  })
})
