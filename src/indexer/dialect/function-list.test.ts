import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { applySqlPolicy } from '../duckdb/sql-policy.ts'
import { openQueryDatabase } from '../duckdb/test-queries.ts'
import { QueryError } from '../query/error.ts'
import { parseStatement } from '../query/statement.ts'
import { DATABASE, PUBLISHED_NAMES } from '../schema.ts'
import { compileStatement } from './compile-statement.ts'
import { OFFERED_FUNCTIONS } from './function-list.ts'

const NAMES = OFFERED_FUNCTIONS.flatMap(({ functions }) => functions)
const ARGUMENTS = [
  ...[
    'slot',
    'block_time',
    'leader',
    'tx_count',
    '1',
    '2.5',
    "'a'",
    "'%Y'",
    "'day'",
    "'x,y'",
    "'[1]'",
    '[1, 2]',
    "['a']",
    'x -> x',
    'x -> x = 1',
  ],
  ...[
    '(1, 2)',
    "map('a', 1)",
    'NULL',
    'true',
    'INTERVAL 1 HOUR',
    'toDate(block_time)',
    "'UTC'",
    '0',
    '-1',
    '[[1]]',
    "'Int64'",
  ],
]
const COUNT = repeatsOf({ short: 4_000, full: 200_000 })
const RUN = repeatsOf({ short: 400, full: 20_000 })

describe('functions that are offered', () => {
  let opened: Awaited<ReturnType<typeof openQueryDatabase>>
  before(async () => {
    opened = await openQueryDatabase()
  })
  after(() => opened?.[Symbol.dispose]())

  test(`T14: of ${COUNT} generated calls no translation reaches a function or table outside of the lists`, async (t) => {
    const random = createRandom(seedOf(t))
    const pick = <T>(from: readonly T[]): T => from[random(from.length)] as T
    const call = (depth: number): string => {
      const name = pick(NAMES)
      const args = Array.from({ length: random(4) }, () =>
        depth < 2 && random(5) === 0 ? call(depth + 1) : pick(ARGUMENTS),
      )
      const parameters = random(8) === 0 ? `(${pick(['0.5', '3', "','"])})` : ''
      return `${name}${parameters}(${args.join(', ')})${random(20) === 0 ? ' OVER (ORDER BY slot)' : ''}`
    }
    using connection = await opened.database.connect()
    const reached = new Set<string>()
    let compiled = 0
    let run = 0
    for (let made = 0; made < COUNT; made++) {
      const statement = `SELECT ${call(0)} AS v FROM blocks${random(4) === 0 ? ' GROUP BY slot, block_time, leader, tx_count' : ''} LIMIT 3`
      let sql: string
      try {
        ;({ sql } = compileStatement(parseStatement(statement)))
      } catch (error) {
        assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`)
        continue
      }
      compiled++
      if (run++ > RUN) continue
      const [piece] = (await connection.run('SELECT json_serialize_sql($sql::VARCHAR)', { sql })).pieces()
      const allowed = attempt(statement, () =>
        applySqlPolicy(String(piece?.[0]?.[0]), { tables: PUBLISHED_NAMES, database: DATABASE }),
      )
      for (const name of allowed.functions) reached.add(name)
      assert.deepEqual([...allowed.tables], ['blocks'], statement)
      await opened
        .ask(statement, { secondsMax: 5 })
        .catch((error: unknown) => assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`))
    }
    t.diagnostic(`${compiled} of ${COUNT} were translated; they reach ${reached.size} functions of the engine`)
    assert.ok(compiled > COUNT / 20 && reached.size > 30)
  })

  test('what ClickHouse from npm lacks: base64, and names of tables as parameters', async () => {
    const text = async (query: string, parameters: Record<string, string> = {}): Promise<string> =>
      (await opened.ask(query, {}, { parameters })).body.toString()
    assert.equal(await text("SELECT base64Encode('ab'), base64Decode('YWI=')"), '["YWI=","ab"]\n')
    assert.equal(await text('SELECT count() FROM {t:Identifier}', { t: 'blocks' }), '["20"]\n')
    assert.equal(
      await text('SELECT count() FROM {t:Identifier} LIMIT {n:UInt8}', { t: 'solana.blocks', n: '1' }),
      '["20"]\n',
    )
    await assert.rejects(text('SELECT * FROM {t:Identifier}', { t: 'base._progress' }), { type: 'UNKNOWN_DATABASE' })
    await assert.rejects(text('SELECT * FROM {t:Identifier}', { t: 'duckdb_tables' }), { type: 'UNKNOWN_TABLE' })
  })
})

function attempt<T>(statement: string, run: () => T): T {
  try {
    return run()
  } catch (error) {
    throw new Error(`${statement}: ${String(error)}`)
  }
}
