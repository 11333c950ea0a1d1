import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isSimpleVote } from '../../solana/chain-block.ts'
import { makeTestChain } from './test-blocks.ts'
import { createTransferReader } from './token-transfers.ts'

test('the owner of a transfer is the one before the transaction, when it changes in the transaction', () => {
  const [block] = makeTestChain({ seed: 6, blocks: 1, transactionsPerBlock: 20 })
  const transaction = block?.transactions.find((each) => !isSimpleVote(each) && each.error === undefined)
  assert.ok(transaction !== undefined)
  const [before] = transaction.preTokenBalances
  const [after, ...others] = transaction.postTokenBalances
  assert.ok(before !== undefined && after !== undefined && before.accountIndex === after.accountIndex)
  const changed = { ...transaction, postTokenBalances: [{ ...after, owner: 'another' }, ...others] }
  const read = createTransferReader(changed)
  const moved = transaction.instructions.map((each) => read(each)).find((each) => each?.kind === 'transferChecked')
  assert.equal(moved?.fromOwner, before.owner)
  assert.equal(moved?.mint, before.mint)
})
