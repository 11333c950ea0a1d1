import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openQueryDatabase } from '../duckdb/test-queries.ts'

describe('types of a result are those of ClickHouse', () => {
  let opened: Awaited<ReturnType<typeof openQueryDatabase>>
  before(async () => {
    opened = await openQueryDatabase()
  })
  after(() => opened?.[Symbol.dispose]())

  async function typesOf(query: string): Promise<string[]> {
    const { body } = await opened.ask(query, {}, { defaultFormat: 'JSON' })
    const { meta } = JSON.parse(Buffer.from(body).toString()) as { meta: { type: string }[] }
    return meta.map(({ type }) => type)
  }

  const CASES: readonly (readonly [query: string, types: readonly string[]])[] = [
    [
      'SELECT count(), count(*), count(DISTINCT leader), uniqExact(slot), uniq(slot) FROM blocks',
      Array<string>(5).fill('UInt64'),
    ],
    [
      'SELECT countIf(success), sum(fee), max(fee), max(slot) + 1 FROM transactions',
      ['UInt64', 'UInt64', 'UInt64', 'UInt64'],
    ],
    ['SELECT lamports, post_balance FROM rewards', ['Int64', 'UInt64']],
    ['SELECT program_id, count() AS n FROM instructions GROUP BY program_id', ['LowCardinality(String)', 'UInt64']],
    ['SELECT program_ids, signers FROM transactions LIMIT 1', ['Array(LowCardinality(String))', 'Array(String)']],
    ['SELECT n FROM (SELECT leader, count() AS n FROM blocks GROUP BY leader)', ['UInt64']],
    [
      'WITH c AS (SELECT leader AS who, count() AS n FROM blocks GROUP BY who) SELECT who, n FROM c',
      ['LowCardinality(String)', 'UInt64'],
    ],
    ["WITH c AS (SELECT 'x' AS leader) SELECT leader FROM c", ['String']],
    [
      'SELECT b.leader, t.signature FROM blocks b JOIN transactions t ON b.slot = t.slot LIMIT 1',
      ['LowCardinality(String)', 'String'],
    ],
    ['SELECT version FROM transactions UNION ALL SELECT leader FROM blocks', ['LowCardinality(String)']],
    ['SELECT version FROM transactions UNION ALL SELECT signature FROM transactions', ['String']],
    ['SELECT lower(leader), leader || leader FROM blocks', ['LowCardinality(String)', 'String']],
    ['SELECT b.leader FROM coverage c LEFT JOIN blocks b ON b.slot = 1', ['LowCardinality(Nullable(String))']],
  ]
  for (const [query, types] of CASES) {
    test(query, async () => assert.deepEqual(await typesOf(query), types))
  }

  test('all columns of a table at once', async () => {
    const types = await typesOf('SELECT * FROM blocks')
    assert.equal(types[6], 'LowCardinality(String)')
    assert.equal(types.filter((type) => type === 'LowCardinality(String)').length, 3)
  })

  test('a format that is not supported is refused with the list of supported formats', async () => {
    for (const format of ['ORC', 'Avro', 'CapnProto'])
      await assert.rejects(opened.ask(`SELECT 1 FORMAT ${format}`), {
        type: 'UNKNOWN_FORMAT',
        message: new RegExp(`^Format ${format} is not supported\\. Supported are: JSON, .*CSVWithNames, .*Null\\.$`),
      })
  })
})
