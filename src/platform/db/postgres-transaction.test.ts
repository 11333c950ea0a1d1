import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type pg from 'pg'
import { openTransaction, READ_ONLY } from './postgres-transaction.ts'

const POSITION = { name: 'postgres://db:5432/sluice', restoreAdvice: '' }
const WRITING = { begin: ['BEGIN'], isWriting: true }

/** A pool of one connection, to a server that takes writes or does not. */
function poolOf(transactionReadOnly: 'on' | 'off' | Error) {
  const statements: string[] = []
  const closed: unknown[] = []
  const client = {
    async query(statement: string | { text: string }) {
      const text = typeof statement === 'string' ? statement : statement.text
      statements.push(text)
      if (text !== 'SHOW transaction_read_only') return { command: text, rows: [] }
      if (transactionReadOnly instanceof Error) throw transactionReadOnly
      return { command: 'SHOW', rows: [{ transaction_read_only: transactionReadOnly }] }
    },
    release: (isClosed: unknown) => void closed.push(isClosed),
  }
  return { pool: { connect: async () => client } as unknown as pg.Pool, statements, closed }
}

describe('the connection of a transaction', () => {
  test('is closed after a failed write where the server takes none: the next one may lead to another server', async () => {
    for (const state of ['on', new Error('the connection was lost')] as const) {
      const { pool, closed } = poolOf(state)
      await (await openTransaction(pool, WRITING, POSITION))[Symbol.asyncDispose]()
      assert.deepEqual(closed, [true])
    }
  })

  test('is kept after a failed write that was refused for another reason', async () => {
    const { pool, closed } = poolOf('off')
    await (await openTransaction(pool, WRITING, POSITION))[Symbol.asyncDispose]()
    assert.deepEqual(closed, [false])
  })

  test('is kept after a commit and after a read, without a question', async () => {
    const { pool, statements, closed } = poolOf('on')
    {
      await using transaction = await openTransaction(pool, WRITING, POSITION)
      await transaction.commit()
    }
    await (await openTransaction(pool, READ_ONLY, POSITION))[Symbol.asyncDispose]()
    assert.deepEqual(closed, [false, false])
    assert.deepEqual(statements, ['BEGIN', 'COMMIT', ...READ_ONLY.begin, 'ROLLBACK'])
  })
})
