import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BlockFault, type ChainBlock } from '../../solana/chain-block.ts'
import { geyserBytesOf } from '../../solana/geyser/test-block.ts'
import { blockJsonOf } from '../../solana/json/test-block.ts'
import { decodeRawBlock } from './raw-block.ts'
import { makeTestChain } from './test-blocks.ts'

const CHAIN = makeTestChain({ seed: 5, blocks: 3, transactionsPerBlock: 40 })

test('a block from the stream is decoded without loss', () => {
  for (const block of CHAIN) {
    const { block: found } = decodeRawBlock({ slot: block.slot, source: 'stream', bytes: geyserBytesOf(block) })
    assert.deepEqual(comparable(found), comparable(block))
  }
})

test('a block with missing transactions is a fault', () => {
  const block = CHAIN[0] as ChainBlock
  const bytes = geyserBytesOf(block)
  const short = geyserBytesOf({ ...block, transactions: block.transactions.slice(1) })
  // The same block with its own count and one transaction fewer.
  const count = (message: Uint8Array): number => Buffer.from(message).lastIndexOf(Buffer.from([0x48, 40]))
  const cut = Buffer.from(short)
  assert.ok(count(bytes) > 0)
  cut[cut.lastIndexOf(Buffer.from([0x48, 39])) + 1] = 40
  assert.throws(
    () => decodeRawBlock({ slot: block.slot, source: 'stream', bytes: cut }),
    (error: unknown) => {
      assert.ok(error instanceof BlockFault)
      assert.match(error.message, /39 of 40 transactions/)
      return true
    },
  )
})

test('bytes that are not a block are a fault', () => {
  for (const text of ['{', 'null', '7', '[]', '{"result":null}', '{"result":{"blockhash":1}}', '['.repeat(100_000)])
    assert.throws(() => decodeRawBlock({ slot: 1, source: 'backfill', bytes: Buffer.from(text) }), BlockFault, text)
  for (const bytes of [new Uint8Array(), Uint8Array.of(255, 255, 255), Uint8Array.of(0x32, 0)])
    assert.throws(() => decodeRawBlock({ slot: 1, source: 'stream', bytes }), BlockFault)
})

test('a value of getBlock that no block has is a fault', () => {
  const block = CHAIN[0] as ChainBlock
  const text = JSON.stringify(blockJsonOf(block))
  const decode = (result: string) =>
    decodeRawBlock({ slot: block.slot, source: 'backfill', bytes: Buffer.from(`{"result":${result}}`) })
  decode(text)
  const replacements: readonly (readonly [RegExp, string])[] = [
    [/"amount":"\d+"/, '"amount":"all"'],
    [/"amount":"\d+"/, `"amount":"${'9'.repeat(100)}"`],
    [/"fee":\d+/, `"fee":${'9'.repeat(100_000)}`],
    [/"accounts":\[/, '"accounts":[256,'],
    [/"parentSlot":\d+/, `"parentSlot":${block.slot}`],
  ]
  for (const [pattern, by] of replacements) {
    assert.match(text, pattern)
    assert.throws(() => decode(text.replace(pattern, by)), BlockFault, by.slice(0, 40))
  }
})

test('a time, height, slot or slot of the parent that its column cannot have is a fault, also of a block without transactions', () => {
  const block = { ...(CHAIN[0] as ChainBlock), transactions: [], rewards: [] }
  const { slot } = block
  const invalid: Partial<ChainBlock>[] = [
    { blockTime: -1 },
    { blockTime: 2 ** 32 },
    { blockHeight: 2 ** 60 },
    { slot: 2 ** 60 },
  ]
  for (const values of invalid) {
    const bytes = geyserBytesOf({ ...block, ...values })
    assert.throws(() => decodeRawBlock({ slot, source: 'stream', bytes }), BlockFault, JSON.stringify(values))
    const response = Buffer.from(JSON.stringify({ result: blockJsonOf({ ...block, ...values }) }))
    if (values.slot === undefined)
      assert.throws(() => decodeRawBlock({ slot, source: 'backfill', bytes: response }), BlockFault)
  }
  // The first block of a chain has its own slot as that of its parent, and no other.
  decodeRawBlock({ slot: 0, source: 'stream', bytes: geyserBytesOf({ ...block, slot: 0, parentSlot: 0 }) })
  const bytes = geyserBytesOf({ ...block, slot: 0, parentSlot: 2 ** 60 })
  assert.throws(() => decodeRawBlock({ slot: 0, source: 'stream', bytes }), BlockFault)
  for (const blockTime of [undefined, 0, 2 ** 32 - 1])
    decodeRawBlock({ slot, source: 'stream', bytes: geyserBytesOf({ ...block, blockTime }) })
})

/** A comparable form: buffers as hex, bigints as strings. */
function comparable(block: ChainBlock): unknown {
  return JSON.parse(
    JSON.stringify(block, (_name, value: unknown) =>
      typeof value === 'bigint'
        ? `${value}n`
        : value instanceof Uint8Array
          ? Buffer.from(value).toString('hex')
          : value,
    ).replaceAll(/\{"type":"Buffer","data":\[([\d,]*)\]\}/g, (_all, bytes: string) =>
      JSON.stringify(Buffer.from(bytes === '' ? [] : bytes.split(',').map(Number)).toString('hex')),
    ),
  )
}
