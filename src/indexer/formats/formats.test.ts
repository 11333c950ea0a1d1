import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type DuckConnection, type DuckDatabase, openDuckDatabase } from '../../platform/db/duckdb.ts'
import type { DuckColumnValues, DuckType } from '../../platform/db/duckdb-column.ts'
import { cellTexts } from './cell-text.ts'
import { createBatch } from './column-batch.ts'
import { typedColumn } from './column-type.ts'
import { fillerOf } from './fill-batch.ts'
import { formatNamed } from './formats.ts'
import type { TimeStyle } from './scalar-text.ts'
import { readRows } from './test-write.ts'
import { parseTypeName, typeName, type ValueType } from './value-type.ts'

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

  test('Native in the revision of a client: each block has a head, and from 54454 on each column a sign', async () => {
    const rows = await readRows(connection, 'SELECT 7::UTINYINT AS a', { isNullable: false })
    const column = (sign: number[], value: number[]) => [1, 97, 5, ...Buffer.from('UInt8'), ...sign, ...value]
    const info = [1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0]
    for (const [revision, head, sign] of [
      [0, [], []],
      [54_405, info, []],
      [54_460, info, [0]],
    ] as const)
      assert.deepEqual(
        [...rows.write('Native', revision)],
        [...head, 1, 0, ...column([...sign], []), ...head, 1, 1, ...column([...sign], [7])],
        `${revision}`,
      )
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

  test('a column without a given type has that of the engine, with NULLs where ClickHouse can have them', async () => {
    const sql = "SELECT 1::HUGEINT AS sum, 'a' AS text, [1] AS list, {'a': 1} AS pair, map {'k': 1} AS map"
    const rows = await readRows(connection, sql)
    const types = rows.columns.map(({ type }) => typeName(type))
    assert.deepEqual(types, [
      'Nullable(Int128)',
      'Nullable(String)',
      'Array(Nullable(Int32))',
      'Tuple(a Nullable(Int32))',
      'Map(String, Nullable(Int32))',
    ])
  })

  test('a given type holds if the values can be written as it', () => {
    const number: DuckType = { kind: 'fixed', name: 'UBIGINT', width: 8 }
    const cases = [
      ['UInt64', 'UInt64'],
      ['Nullable(Int32)', 'Nullable(Int32)'],
      ['IntervalDay', 'IntervalDay'],
      ["DateTime('UTC')", 'Nullable(UInt64)'],
      ['Array(UInt64)', 'Nullable(UInt64)'],
      ['Unknown', 'Nullable(UInt64)'],
      [undefined, 'Nullable(UInt64)'],
    ] as const
    for (const [type, expected] of cases)
      assert.equal(typeName(typedColumn({ name: 'n', type, engine: number }).type), expected)
  })

  test('a NULL in a column that is not Nullable is the default of its type', async () => {
    const sql =
      "SELECT NULL::UINTEGER AS n, NULL::VARCHAR AS t, NULL::DATE AS d, [NULL, 'a'] AS l, NULL::VARCHAR[] AS e"
    const rows = await readRows(connection, sql, { isNullable: false })
    assert.equal(rows.write('TabSeparated').toString(), "0\t\t1970-01-01\t['','a']\t[]\n")
    assert.equal(rows.write('RowBinary').toString('hex'), '00000000' + '00' + '00000000' + '02000161' + '00')
  })

  test('times are printed in the zone of their type, or as requested', async () => {
    const [winter, summer] = [1_767_225_600n, 1_782_864_000n]
    const type = (name: string): ValueType => parseTypeName(name) as ValueType
    const print = (name: string, ticks: bigint, times?: TimeStyle): string => {
      const batch = createBatch(type(name))
      batch.values.u64(ticks)
      return cellTexts(batch, { kind: 'text', times })(0)
    }
    assert.equal(print("DateTime64(0, 'Europe/Berlin')", winter), '2026-01-01 01:00:00')
    assert.equal(print("DateTime64(0, 'Europe/Berlin')", summer), '2026-07-01 02:00:00')
    assert.equal(print("DateTime64(3, 'America/St_Johns')", winter * 1000n + 7n), '2025-12-31 20:30:00.007')
    assert.equal(print('DateTime64(0)', winter, { format: 'simple', zone: 'Asia/Kolkata' }), '2026-01-01 05:30:00')
    assert.equal(print("DateTime64(0, 'Asia/Kolkata')", -1n), '1970-01-01 05:29:59')
    const iso: TimeStyle = { format: 'iso', zone: 'UTC' }
    assert.equal(print("DateTime64(1, 'Asia/Tokyo')", winter * 10n, iso), '2026-01-01T00:00:00.0Z')
    assert.equal(print("DateTime64(1, 'Asia/Tokyo')", 15n, { ...iso, format: 'unix_timestamp' }), '1.5')
  })

  test('a date or time outside of the range of its type is the nearest one', async () => {
    const engine: DuckType = { kind: 'fixed', name: 'DATE', width: 4 }
    const written = (days: number): string => {
      const batch = createBatch(parseTypeName('Date') as ValueType)
      const bytes = Buffer.alloc(4)
      bytes.writeInt32LE(days)
      const values = { bytes, mayHaveNulls: false } as Partial<DuckColumnValues> as DuckColumnValues
      Array.from(fillerOf(engine, batch.type)(batch, values, 0, 1))
      return cellTexts(batch, { kind: 'text' })(0)
    }
    assert.deepEqual([-1, 0, 65_535, 65_536].map(written), ['1970-01-01', '1970-01-01', '2149-06-06', '2149-06-06'])
  })

  test('a type that ClickHouse does not have is text', async () => {
    const rows = await readRows(connection, "SELECT INTERVAL 1 DAY AS i, [INTERVAL 1 DAY] AS l, TIME '10:00:00' AS t")
    assert.deepEqual(
      rows.columns.map(({ type }) => typeName(type)),
      ['Nullable(String)', 'Nullable(String)', 'Nullable(String)'],
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
        'LowCardinality(UInt8)',
        'Array(LowCardinality(Nullable(UInt64)))',
        'Nullable(Nothing)',
        'IntervalMonth',
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
