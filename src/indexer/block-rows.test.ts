import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSimpleVote } from '../solana/chain-block.ts'
import { addBlockRows, emptyRows, type RowOptions, type Rows } from './block-rows.ts'
import { type TableName, tableOf } from './schema.ts'
import { makeTestChain } from './test-blocks.ts'

const [BLOCK] = makeTestChain({ seed: 11, blocks: 1, transactionsPerBlock: 200 })

function rowsOf(options: Partial<RowOptions> = {}): Rows {
  const rows = emptyRows()
  assert.ok(BLOCK !== undefined)
  const all = { includeVotes: false, includeLogs: false, ...options }
  addBlockRows(rows, BLOCK, { commitment: 'confirmed', source: 'stream' }, all)
  return rows
}

/** The values of one column. */
function column(rows: Rows, table: TableName, name: string): unknown[] {
  const at = tableOf(table).columns.findIndex((each) => each.name === name)
  return rows[table].map((row) => row[at])
}

test('a failed transaction has its row and instructions, and moved nothing', () => {
  const failed = BLOCK?.transactions.filter((each) => each.error !== undefined && !isSimpleVote(each)) ?? []
  assert.ok(failed.length > 5)
  const rows = rowsOf()
  const moved = new Set(column(rows, 'token_transfers', 'signature'))
  for (const { signature } of failed) {
    assert.ok(column(rows, 'transactions', 'signature').includes(signature))
    assert.ok(column(rows, 'instructions', 'signature').includes(signature))
    assert.ok(!moved.has(signature))
  }
  const kinds = new Set(column(rows, 'token_transfers', 'kind'))
  assert.deepEqual(kinds, new Set(['sol', 'transfer', 'transferChecked']))
})

test('votes are counted, and kept only where they are wanted', () => {
  const votes = BLOCK?.transactions.filter(isSimpleVote).length ?? 0
  assert.ok(votes > 20)
  assert.deepEqual(column(rowsOf(), 'blocks', 'vote_tx_count'), [votes])
  assert.equal(rowsOf().transactions.length, 200 - votes)
  assert.equal(rowsOf({ includeVotes: true }).transactions.length, 200)
})
