import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type DuckConnection, type DuckDatabase, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { formatNamed } from './formats.ts'
import { readRows } from './test-write.ts'
import { parseTypeName, typeName } from './value-type.ts'

const ONE_OF_EACH_KIND = [
  ...['JSON', 'JSONStringsEachRow', 'JSONColumns', 'TabSeparated', 'CSV', 'XML', 'PrettyCompact', 'Vertical'],
  ...['RowBinary', 'Native', 'Parquet', 'ArrowStream'],
]

describe('formats', () => {
  let database: DuckDatabase
  let connection: DuckConnection
  before(async () => {
    database = await openDuckDatabase(':memory:', { threads: '2' })
    connection = await database.connect()
  })
  after(() => {
    connection?.[Symbol.dispose]()
    database?.[Symbol.dispose]()
  })

  test('no step of a format takes long, also not within one long list', async () => {
    const sql =
      "SELECT list(i::VARCHAR || ' a text of some length') AS texts, [list(i)] AS nested, histogram(i % 3000) AS map FROM range(60000) t(i)"
    const rows = await readRows(connection, sql)
    for (const format of ONE_OF_EACH_KIND) {
      let longestMs = 0
      let bytes = 0
      const pieces = rows.pieces(format)
      for (let isDone = false; !isDone; ) {
        // CPU time of this thread: the machine of a test may be busy with others.
        const started = process.threadCpuUsage()
        const { done, value } = pieces.next()
        const { user, system } = process.threadCpuUsage(started)
        longestMs = Math.max(longestMs, (user + system) / 1000)
        bytes += value?.length ?? 0
        isDone = done === true
      }
      assert.ok(bytes > 20_000, format)
      assert.ok(longestMs < 50, `${format}: ${longestMs} ms`)
    }
  })

  test('a long list has the same text in pieces', async () => {
    const long = await readRows(
      connection,
      'SELECT list(i ORDER BY i) AS l, [list(i::VARCHAR ORDER BY i)] AS n FROM range(5000) t(i)',
    )
    const numbers = Array.from({ length: 5000 }, (_, at) => at)
    const texts = numbers.map((number) => `'${number}'`)
    assert.equal(long.write('TabSeparated').toString(), `[${numbers.join(',')}]\t[[${texts.join(',')}]]\n`)
    assert.deepEqual(JSON.parse(long.write('JSONEachRow').toString()), {
      l: numbers.map(String),
      n: [numbers.map(String)],
    })
    assert.equal(long.write('CSV').toString(), `"[${numbers.join(',')}]","[[${texts.join(',')}]]"\n`)
  })

  test('the types of a result that is not known in full allow for what may follow', async () => {
    const sql = "SELECT 1::HUGEINT AS sum, 'a' AS text, [1] AS list, {'a': 1} AS pair, map {'k': 1} AS map"
    const typesOf = async (isComplete: boolean): Promise<string[]> =>
      (await readRows(connection, sql, { isComplete })).columns.map(({ type }) => typeName(type))
    assert.deepEqual(await typesOf(true), ['UInt64', 'String', 'Array(Int32)', 'Tuple(a Int32)', 'Map(String, Int32)'])
    assert.deepEqual(await typesOf(false), [
      'Nullable(Int128)',
      'Nullable(String)',
      'Array(Nullable(Int32))',
      'Tuple(a Nullable(Int32))',
      'Map(String, Nullable(Int32))',
    ])
  })

  test('a sum has the 64 bits that hold all of its values, or 128', async () => {
    const cases = [
      ['0', 'UInt64'],
      ['18446744073709551615', 'UInt64'],
      ['-1', 'Int64'],
      ['18446744073709551616', 'Int128'],
    ] as const
    for (const [value, type] of cases) {
      const rows = await readRows(connection, `SELECT ${value}::HUGEINT AS sum`)
      assert.equal(rows.columns[0] && typeName(rows.columns[0].type), type)
      assert.equal(rows.write('TabSeparated').toString(), `${value}\n`)
    }
    const mixed = await readRows(connection, 'SELECT unnest([-1, 18446744073709551615])::HUGEINT AS sum')
    assert.equal(mixed.columns[0] && typeName(mixed.columns[0].type), 'Int128')
  })

  test('a type that ClickHouse does not have is text', async () => {
    const rows = await readRows(connection, "SELECT INTERVAL 1 DAY AS i, [INTERVAL 1 DAY] AS l, TIME '10:00:00' AS t")
    assert.deepEqual(
      rows.columns.map(({ type }) => typeName(type)),
      ['String', 'String', 'String'],
    )
    assert.equal(rows.write('TabSeparated').toString(), '1 day\t[1 day]\t10:00:00\n')
  })

  test('names of types are read as they are written', () => {
    const names = [
      ...[
        'UInt8',
        'Int128',
        'Nullable(Float32)',
        'Bool',
        'Date',
        'Date32',
        "DateTime('UTC')",
        'DateTime',
        "DateTime64(6, 'UTC')",
      ],
      ...[
        'DateTime64(3)',
        'Decimal(18, 4)',
        'UUID',
        'LowCardinality(String)',
        'LowCardinality(Nullable(String))',
        'Nullable(Nothing)',
      ],
      ...[
        'Array(Array(Nullable(String)))',
        "Map(String, DateTime64(3, 'UTC'))",
        'Tuple(a Int32, `b c` Array(String))',
        'Tuple(UInt8, String)',
      ],
    ]
    for (const name of names) {
      const type = parseTypeName(name)
      assert.equal(type && typeName(type), name)
    }
    for (const name of ['', 'Unknown', 'Array', 'Array()', 'FixedString(3)', 'Tuple(Unknown)'])
      assert.equal(parseTypeName(name), undefined, name)
  })

  test('aliases are the same formats, and an unknown one is refused with the list', () => {
    assert.equal(formatNamed('TSVWithNamesAndTypes').name, 'TabSeparatedWithNamesAndTypes')
    assert.equal(formatNamed('PrettyCompactNoEscapes').name, 'PrettyCompact')
    for (const name of ['ORC', 'constructor', '__proto__'])
      assert.throws(() => formatNamed(name), { type: 'UNKNOWN_FORMAT', message: /Supported are: JSON, / })
  })

  test('a result by columns is limited, because it is held in full', async () => {
    const rows = await readRows(
      connection,
      "SELECT i, 'a text of some length that fills the limit' AS t FROM range(400000) t(i)",
    )
    assert.throws(() => rows.write('JSONColumns'), { type: 'TOO_MANY_BYTES', message: /at most 16777216 bytes/ })
  })
})
