import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import { createSeededRandom } from '../../src/core/random.ts'
import { createForm } from '../../src/indexer/clickhouse/form.ts'
import { clickHouseCall } from '../../src/indexer/clickhouse/request.ts'
import { readQueryRequest } from '../../src/indexer/query/request.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'

const random = createSeededRandom(1)
const FORCED = {
  queryId: 'q',
  database: 'default',
  limits: { secondsMax: 10, rowsMax: 5, bytesMax: 1_000_000 },
  isHeld: true,
}

/** As the proxy sends a query to the server. */
function callOf(query: string, fields: Record<string, string>, parameters: Record<string, string> = {}) {
  const search = new URLSearchParams(fields).toString()
  const request = readQueryRequest(search, { format: undefined, database: undefined }, new Set())
  return clickHouseCall({ ...request, query, parameters }, FORCED, random)
}

/** Debian's server has no parameters yet, but the same form: its other fields are settings to it. */
describe('a statement in a form, on the HTTP interface of ClickHouse', () => {
  let server: ClickHouseServer
  before(async () => {
    server = await startClickHouse()
  })
  after(() => server?.[Symbol.asyncDispose]())

  async function ask(query: string, fields: string) {
    const { contentType, body } = createForm(query, [], random)
    const headers = {
      'content-type': contentType,
      'x-clickhouse-user': CLICKHOUSE_ADMIN.user,
      'x-clickhouse-key': CLICKHOUSE_ADMIN.password,
    }
    const response = await fetch(`${server.url}/?${fields}`, { method: 'POST', headers, body: Uint8Array.from(body) })
    return await response.text()
  }

  test('the server joins the fields of a long statement, byte for byte', async () => {
    for (const text of ['x', 'ä'.repeat(100_000), `${'y\r\n-- \n'.repeat(20_000)}z`]) {
      const expected = `${Buffer.byteLength(text)}\n`
      assert.equal(await ask(`SELECT length('${text}')`, 'max_query_size=1000000'), expected)
    }
  })

  test('the settings in the URL hold', async () => {
    assert.equal(await ask('SELECT number FROM numbers(2)', 'default_format=CSVWithNames'), '"number"\n0\n1\n')
    const limits = 'max_result_rows=5&result_overflow_mode=throw'
    assert.match(await ask('SELECT number FROM system.numbers LIMIT 100', limits), /Limit for result exceeded/)
  })
})

/** The engine of a current server, without its HTTP interface. */
describe('a statement in a form, on ClickHouse 26.5 from npm', () => {
  let database: AsyncChdb
  before(async () => {
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm')).href
    database = await AsyncChdb.create({ moduleUrl: new URL(moduleUrl).pathname })
  })
  after(() => database?.terminate())

  const run = async (statement: string): Promise<string> => (await database.query(statement, 'TabSeparated')).text()

  async function runForm({ headers, body }: ReturnType<typeof callOf>): Promise<string> {
    const form = await new Response(Uint8Array.from(body), { headers }).formData()
    const text = (value: unknown) => (typeof value === 'string' ? value : assert.fail('a file'))
    for (const [name, value] of form)
      if (name !== 'query') await run(`SET ${name} = '${text(value).replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`)
    return await run(form.getAll('query').map(text).join(''))
  }

  test('an array of 150 KB is a parameter', async () => {
    const ids = Array.from({ length: 3000 }, (_, n) => `'${String(n).padStart(44, 'k')}'`).join(', ')
    const call = callOf('SELECT length({ids:Array(String)}), {ids:Array(String)}[3000]', {}, { ids: `[${ids}]` })
    assert.equal(await runForm(call), `3000\t${'2999'.padStart(44, 'k')}\n`)
  })

  test('the format of times at the end of a statement holds for every kind of statement that is forwarded', async () => {
    const time = "toDateTime('2026-01-02 03:04:05', 'UTC')"
    const iso = '"2026-01-02T03:04:05Z"\n'
    for (const [statement, expected] of [
      [`SELECT ${time}`, iso],
      [`SELECT ${time} UNION ALL SELECT ${time}`, iso + iso],
      [`WITH ${time} AS t SELECT t ORDER BY t LIMIT 1`, iso],
      [`SELECT t FROM (SELECT ${time} AS t)`, iso],
      [`DESCRIBE TABLE (SELECT ${time} AS t)`, /^"t","DateTime\('UTC'\)"/],
    ] as const) {
      const fields = { date_time_output_format: 'iso', default_format: 'CSV' }
      const text = await runForm(callOf(statement, fields, { long: 'a'.repeat(5000) }))
      if (typeof expected === 'string') assert.equal(text, expected, statement)
      else assert.match(text, expected)
    }
  })
})
