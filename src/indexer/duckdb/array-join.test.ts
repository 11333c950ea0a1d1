import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { QueryError } from '../query/error.ts'
import { openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

describe('ARRAY JOIN of several arrays', () => {
  test('refuses arrays of different lengths, as ClickHouse 26.5 does', async () => {
    for (const statement of [
      'SELECT a, b FROM (SELECT [1, 2, 3] AS x, [4] AS y) ARRAY JOIN x AS a, y AS b',
      'SELECT a, b FROM (SELECT [4] AS x, [1, 2, 3] AS y) ARRAY JOIN x AS a, y AS b',
      'SELECT a, b FROM (SELECT [1, 2] AS x, emptyArrayUInt64() AS y) LEFT ARRAY JOIN x AS a, y AS b',
      'SELECT a, b, c FROM (SELECT [1, 2] AS x, [3, 4] AS y, [5] AS z) ARRAY JOIN x AS a, y AS b, z AS c',
    ])
      await assert.rejects(
        opened.ask(statement),
        (cause: unknown) => cause instanceof QueryError && cause.type === 'SIZES_OF_ARRAYS_DONT_MATCH',
        statement,
      )
  })

  test('walks arrays of one length together; with LEFT an empty one has one element', async () => {
    const rows = async (statement: string): Promise<string> => (await opened.ask(statement)).body.toString()
    assert.equal(
      await rows('SELECT a, b FROM (SELECT [1, 2] AS x, [3, 4] AS y) ARRAY JOIN x AS a, y AS b ORDER BY a'),
      '[1,3]\n[2,4]\n',
    )
    assert.equal(
      await rows('SELECT a, b FROM (SELECT [1] AS x, emptyArrayString() AS y) LEFT ARRAY JOIN x AS a, y AS b'),
      '[1,""]\n',
    )
    const lengths =
      'SELECT x FROM (SELECT arrayJoin([1, 2]) AS n, [[5, 6], [7]][n] AS p, [[1, 2], [3]][n] AS q) ARRAY JOIN p AS x, q AS y ORDER BY x'
    assert.equal(await rows(lengths), '[5]\n[6]\n[7]\n')
  })
})
