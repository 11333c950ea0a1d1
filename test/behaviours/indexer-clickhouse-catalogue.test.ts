import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import { CATALOGUE_TABLES } from '../../src/indexer/catalogue/catalogue.ts'
import { replaceConnectionFunctions } from '../../src/indexer/catalogue/connection-functions.ts'
import { catalogueView, catalogueViewDdl } from '../../src/indexer/clickhouse/catalogue-views.ts'
import { tableDdl, viewDdl } from '../../src/indexer/clickhouse/ddl.ts'
import { validateRequest } from '../../src/indexer/clickhouse/request.ts'
import { catalogueResult } from '../../src/indexer/query/catalogue-result.ts'
import { readQueryRequest } from '../../src/indexer/query/request.ts'
import { collectResult } from '../../src/indexer/query/result.ts'
import { parseStatement } from '../../src/indexer/query/statement.ts'
import { TOOL_STATEMENTS } from '../support/indexer/tool-statements.ts'

/** The server refuses longer statements. */
const QUERY_BYTES_MAX = 256 * 1024

describe("system and information_schema on the operator's ClickHouse, 26.5 from npm", () => {
  let engine: AsyncChdb
  const run = async (statement: string, format = 'TabSeparated'): Promise<string> =>
    (await engine.query(statement, format)).text()
  before(async () => {
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm')).href
    engine = await AsyncChdb.create({ moduleUrl: new URL(moduleUrl).pathname })
    for (const statement of [...tableDdl('chain', 'current'), ...viewDdl('chain', 'chain', 'current')])
      await run(statement)
    for (const statement of catalogueViewDdl('chain', 'current')) {
      assert.ok(statement.length < QUERY_BYTES_MAX / 2, statement.slice(0, 100))
      await run(statement)
    }
    await run("INSERT INTO chain_base.blocks (slot, leader) VALUES (1, 'a')")
    await run('USE chain')
  })
  after(() => engine?.terminate())

  test('the views have the columns and rows of our lists', async () => {
    for (const { database, name, columns, rows } of CATALOGUE_TABLES) {
      const view = catalogueView(database, name) ?? ''
      const described = await run(
        `SELECT name, type FROM system.columns WHERE database = 'chain' AND table = '${view}'`,
        'TSVRaw',
      )
      assert.equal(described, columns.map((column) => `${column.name}\t${column.type}\n`).join(''), view)
      if (rows === undefined) continue
      const found = await run(
        `SELECT * FROM chain.${view} SETTINGS output_format_json_quote_64bit_integers = 0`,
        'JSONCompactEachRow',
      )
      assert.deepEqual(
        found
          .split('\n')
          .filter((line) => line !== '')
          .map((line): unknown => JSON.parse(line)),
        rows,
        view,
      )
    }
    assert.equal(await run('SELECT max(number) FROM (SELECT number FROM chain._system_numbers LIMIT 5)'), '4\n')
  })

  test('statements of Grafana, Superset, Metabase and drivers pass the policy, and the server runs them', async () => {
    const failed: string[] = []
    for (const { tool, when, sql, expected } of TOOL_STATEMENTS) {
      const text = await respond(sql).catch((error: unknown) => String(error))
      const isRight = expected?.test(text) ?? text !== ''
      // One block makes no chart.
      if (text.includes('Exception') || (!isRight && when !== 'chart'))
        failed.push(`${tool}, ${when}: ${sql}\n${text.slice(0, 300)}`)
    }
    assert.deepEqual(failed, [])
  })

  test('the default name of the database is the configured one, and tables of the server stay hidden', async () => {
    assert.equal(await respond('SELECT solana.blocks.slot FROM solana.blocks'), '1\n')
    const internal = "name IN ('_progress', '_account_updates')"
    assert.equal(await respond(`SELECT tables.name FROM system.tables WHERE ${internal}`), '')
    await assert.rejects(respond('SELECT * FROM system.processes'), { type: 'UNKNOWN_DATABASE' })
  })

  /** As the gateway treats the statement; the engine has no HTTP interface. */
  async function respond(sql: string): Promise<string> {
    const parsed = parseStatement(sql)
    const connection = { user: 'u_a', database: 'solana', hostName: 'test', uptimeSeconds: 1, timezone: 'UTC' }
    const statement = { ...parsed, tokens: replaceConnectionFunctions(parsed.tokens, connection) }
    const request = {
      ...readQueryRequest('', { format: undefined, database: undefined }, new Set()),
      database: 'solana',
    }
    const catalogue = catalogueResult(statement, request, { bytesMax: 1_000_000 }, 0)
    if (catalogue !== undefined) return Buffer.from(await collectResult(catalogue)).toString()
    const { query, defaultFormat } = validateRequest(request, statement, 'chain')
    return run(query, defaultFormat)
  }
})
