import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSimpleVote } from '../../solana/chain-block.ts'
import { type TableName, tableOf } from '../schema.ts'
import type { RowOptions } from './block-rows.ts'
import { makeTestChain } from './test-blocks.ts'
import { batchRowsOf, listRows } from './test-rows.ts'

type Rows = ReturnType<typeof listRows>

const [BLOCK] = makeTestChain({ seed: 11, blocks: 1, transactionsPerBlock: 200 })

function rowsOf(options: Partial<RowOptions> = {}): Rows {
  assert.ok(BLOCK !== undefined)
  return listRows([batchRowsOf([BLOCK], { includeVotes: false, includeLogs: false, ...options })])
}

/** The values of one column. */
function column(rows: Rows, table: TableName, name: string): unknown[] {
  const at = tableOf(table).columns.findIndex((each) => each.name === name)
  return rows[table].map((row) => row[at])
}

test('a failed transaction has its row and instructions, and no transfers', () => {
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

test('votes are counted, and stored only with includeVotes', () => {
  const votes = BLOCK?.transactions.filter(isSimpleVote).length ?? 0
  assert.ok(votes > 20)
  assert.deepEqual(column(rowsOf(), 'blocks', 'vote_tx_count'), [votes])
  assert.equal(rowsOf().transactions.length, 200 - votes)
  assert.equal(rowsOf({ includeVotes: true }).transactions.length, 200)
})
