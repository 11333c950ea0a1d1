import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty, createRandom, mutate } from '../../../test/support/process/property.ts'
import { BlockFault } from '../../solana/chain-block.ts'
import { geyserBytesOf } from '../../solana/geyser/test-block.ts'
import { blockJsonOf } from '../../solana/json/test-block.ts'
import { BatchRows } from './batch-rows.ts'
import { addBlockRow, addTransactionRows, type BlockHead } from './block-rows.ts'
import { decodeRawBlock, type RawBlock } from './raw-block.ts'
import { makeTestChain } from './test-blocks.ts'

const CHAIN = makeTestChain({ seed: 6, blocks: 4, transactionsPerBlock: 1 })

const RESPONSES = CHAIN.map((block) => JSON.stringify({ result: blockJsonOf(block) }))

/** Values in place of others, as JSON: also numbers beyond 2^53, which are read as bigints, and objects without a text. */
const VALUES = fc.constantFrom(
  ...'null true -1 0.5 256 1e400 -0 1152921504606846976 "x" "0" "" [] [null] [[{}]] {}'.split(' '),
  ...['{"toString":0,"valueOf":0}', '{"__proto__":null}', `"${'9'.repeat(30_000)}"`, '9'.repeat(400)],
)

/** Decodes the block and makes its rows, or finds the fault with its reason. Any other error is thrown. */
function decodeOrFault(raw: RawBlock): void {
  const rows = new BatchRows()
  let head: BlockHead
  try {
    const { block } = decodeRawBlock(raw)
    head = addTransactionRows(rows, block, { includeVotes: true, includeLogs: true })
  } catch (error) {
    // A value that its column cannot have is refused with the block.
    if (error instanceof BlockFault || error instanceof RangeError) return
    throw error
  }
  addBlockRow(rows, head, { commitment: 'confirmed', source: 'stream' })
}

const MARK = 'damaged'

/** The JSON with one of its values replaced, or without it. */
function damaged(json: string, at: number, value: string | undefined): string {
  let left = at % countValues(json)
  const put = value === undefined ? undefined : MARK
  const text = JSON.stringify(JSON.parse(json), (_name, each: unknown) => (left-- === 0 ? put : each))
  return (text ?? '').replace(`"${MARK}"`, () => value ?? '')
}

function countValues(json: string): number {
  let count = 0
  JSON.parse(json, (_name, value: unknown) => (count++, value))
  return count
}

test('a response to getBlock with any value replaced or missing is a block or a fault', (t) => {
  const damage = fc.record({ chosen: fc.nat(), at: fc.nat(), value: fc.option(VALUES, { nil: undefined }) })
  checkProperty(
    t,
    fc.property(damage, ({ chosen, at, value }) => {
      const block = chosen % CHAIN.length
      const text = damaged(RESPONSES[block] as string, at, value)
      decodeOrFault({ slot: CHAIN[block]?.slot ?? 0, source: 'backfill', bytes: Buffer.from(text) })
    }),
    3_000,
    50_000,
  )
})

test('a block with any bytes changed is a block or a fault', (t) => {
  checkProperty(
    t,
    fc.property(fc.nat(), fc.constantFrom('stream', 'backfill'), (seed, source) => {
      const at = seed % CHAIN.length
      const block = CHAIN[at] as (typeof CHAIN)[number]
      const bytes = source === 'stream' ? geyserBytesOf(block) : Buffer.from(RESPONSES[at] as string)
      decodeOrFault({ slot: block.slot, source, bytes: mutate(bytes, createRandom(seed)) })
    }),
    1_000,
    50_000,
  )
})

test('a valid block is decoded, whatever its transactions', (t) => {
  const options = fc.record({ seed: fc.nat(), blocks: fc.constant(1), transactionsPerBlock: fc.nat({ max: 6 }) })
  checkProperty(
    t,
    fc.property(options, (given) => {
      const [block] = makeTestChain(given)
      assert.ok(block !== undefined)
      const { slot } = block
      const fromStream = decodeRawBlock({ slot, source: 'stream', bytes: geyserBytesOf(block) }).block
      const response = Buffer.from(JSON.stringify({ result: blockJsonOf(block) }))
      const fromResponse = decodeRawBlock({ slot, source: 'backfill', bytes: response }).block
      for (const found of [fromStream, fromResponse]) {
        assert.equal(found.blockhash, block.blockhash)
        assert.deepEqual(
          found.transactions.map(({ signature }) => signature),
          block.transactions.map(({ signature }) => signature),
        )
      }
    }),
    50,
    2_000,
  )
})
