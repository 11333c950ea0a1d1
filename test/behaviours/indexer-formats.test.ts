import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import fc from 'fast-check'
import { repeatsOf } from '../../src/core/test-seed.ts'
import { FORMAT_NAMES } from '../../src/indexer/formats/formats.ts'
import { readRows, type TestRows } from '../../src/indexer/formats/test-write.ts'
import { type DuckConnection, type DuckDatabase, openDuckDatabase } from '../../src/platform/db/duckdb.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'
import { columnsOf, EVERY_TYPE } from '../support/indexer/format-columns.ts'

/** Formats that ClickHouse does not read. */
const WRITE_ONLY = /^(Pretty|Vertical|Markdown|XML|Null|JSONStrings$|JSONCompactStrings$)/
const READABLE = FORMAT_NAMES.filter((name) => !WRITE_ONLY.test(name))
const RUNS = repeatsOf({ short: 8, full: 100 })

describe('results in every format, read by others', () => {
  const folder = makeTestFolder()
  let database: DuckDatabase
  let connection: DuckConnection
  let clickhouse: AsyncChdb
  let files = 0

  before(async () => {
    database = await openDuckDatabase(':memory:', { threads: '2' })
    connection = await database.connect()
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm'))
    clickhouse = await AsyncChdb.create({ moduleUrl: moduleUrl.pathname })
  })
  after(async () => {
    await clickhouse?.terminate()
    connection?.[Symbol.dispose]()
    database?.[Symbol.dispose]()
    folder[Symbol.dispose]()
  })

  /** What ClickHouse 26.5 reads, printed by ClickHouse. */
  async function readBack(rows: TestRows, format: string, wanted = 'TSVWithNamesAndTypes'): Promise<string> {
    const path = `/r${++files}`
    await clickhouse.putFile(path, Uint8Array.from(rows.write(format)))
    const structure = rows.structure.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
    const settings = 'SETTINGS input_format_null_as_default = 0, precise_float_parsing = 1'
    return (
      await clickhouse.query(`SELECT * FROM file('${path}', '${format}', '${structure}') ${settings}`, wanted)
    ).text()
  }

  async function assertReadable(rows: TestRows, formats: readonly string[]): Promise<void> {
    const own = rows.write('TSVWithNamesAndTypes'.replace('TSV', 'TabSeparated')).toString()
    for (const format of formats) assert.equal(await readBack(rows, format), own, format)
  }

  test('ClickHouse 26.5 reads every type in every format that it can read', async () => {
    await assertReadable(await readRows(connection, EVERY_TYPE), READABLE)
  })

  test('names and types are in the formats that have them', async () => {
    const rows = await readRows(connection, EVERY_TYPE)
    for (const format of ['Native', 'RowBinaryWithNamesAndTypes', 'JSONCompactEachRowWithNamesAndTypes']) {
      const path = `/r${++files}`
      await clickhouse.putFile(path, Uint8Array.from(rows.write(format)))
      const described = await clickhouse.query(
        `DESCRIBE file('${path}', '${format}') SETTINGS print_pretty_type_names = 0`,
        'JSONCompactEachRow',
      )
      const found = described
        .text()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as string[])
      assert.equal(found.map(([name, type]) => `\`${name}\` ${type}`).join(', '), rows.structure, format)
    }
  })

  test('Pretty, Vertical, Markdown and XML are as ClickHouse prints them', async () => {
    const rows = await readRows(
      connection,
      "SELECT i AS n, 'text ' || i AS words, CASE WHEN i = 1 THEN NULL ELSE i END AS some FROM range(3) t(i)",
    )
    const settings =
      'SETTINGS output_format_pretty_color = 0, output_format_pretty_row_numbers = 0, output_format_pretty_single_large_number_tip_threshold = 0, output_format_pretty_fallback_to_vertical = 0'
    for (const format of ['Pretty', 'PrettyCompact', 'Vertical', 'Markdown']) {
      const path = `/r${++files}`
      await clickhouse.putFile(path, Uint8Array.from(rows.write('Native')))
      const theirs = (await clickhouse.query(`SELECT * FROM file('${path}', 'Native') ${settings}`, format)).text()
      assert.equal(rows.write(format).toString().trimEnd(), theirs.trimEnd(), format)
    }
    const theirs = (await clickhouse.query(`SELECT * FROM file('/r${files}', 'Native')`, 'XML')).text()
    const timeless = (text: string): string => text.replace(/<statistics>[^]*/, '')
    assert.equal(timeless(rows.write('XML').toString()), timeless(theirs))
  })

  test('rows of many blocks and row groups', async () => {
    const sql =
      "SELECT i::UBIGINT AS n, CASE WHEN i % 7 = 0 THEN NULL ELSE 'some text of a row ' || i END AS words, [i % 5, i] AS list FROM range(140000) t(i)"
    const rows = await readRows(connection, sql)
    const total = 'sum(n), sum(length(words)), countIf(words IS NULL), sum(list[1]), sum(length(list)), count()'
    const structure = rows.structure
    const totals: string[] = []
    for (const format of ['Native', 'Parquet', 'ArrowStream', 'RowBinary']) {
      const path = `/r${++files}`
      await clickhouse.putFile(path, Uint8Array.from(rows.write(format)))
      totals.push(
        (await clickhouse.query(`SELECT ${total} FROM file('${path}', '${format}', '${structure}')`, 'TSV')).text(),
      )
    }
    assert.equal(new Set(totals).size, 1, totals.join(''))
    assert.match(totals[0] ?? '', /^9799930000\t.*\t140000\n$/)
  })

  test('a result without rows', async () => {
    const rows = await readRows(connection, `SELECT * FROM (${EVERY_TYPE}) WHERE false`)
    await assertReadable(
      rows,
      READABLE.filter((name) => name !== 'Values'),
    )
  })

  test('property: ClickHouse reads what was written, whatever the values', async () => {
    await fc.assert(
      fc.asyncProperty(columnsOf(), fc.boolean(), async (sql, isNullable) => {
        const rows = await readRows(connection, sql, { isNullable })
        await assertReadable(rows, [
          'Native',
          'RowBinary',
          'RowBinaryWithNamesAndTypes',
          'Parquet',
          'Arrow',
          'ArrowStream',
          'TabSeparated',
          'CSV',
          'JSONCompactEachRow',
          'JSONStringsEachRow',
        ])
      }),
      { numRuns: RUNS },
    )
  })

  test('property: DuckDB reads the same values from Parquet', async () => {
    await fc.assert(
      fc.asyncProperty(columnsOf({ withInt128: false }), async (sql) => {
        const rows = await readRows(connection, sql)
        const path = folder.file(`p${++files}.parquet`)
        writeFileSync(path, rows.write('Parquet'))
        const names = rows.columns.map(({ name }) => `"${name}"`).join(', ')
        // Times have a zone in Parquet, and a NULL list is an empty one.
        const differing = rows.columns.map(({ name, type }) =>
          type.kind === 'time'
            ? `epoch_us(a."${name}") IS DISTINCT FROM epoch_us(b."${name}")`
            : type.kind === 'list'
              ? `coalesce(a."${name}", []) IS DISTINCT FROM b."${name}"`
              : `a."${name}" IS DISTINCT FROM b."${name}"`,
        )
        const count = async (from: string): Promise<unknown> =>
          [...(await connection.run(`SELECT count(*) FROM ${from}`)).pieces()][0]?.[0]?.[0]
        const written = `(SELECT ${names}, row_number() OVER () AS r FROM (${sql})) a`
        const read = `(SELECT ${names}, file_row_number + 1 AS r FROM read_parquet('${path}', file_row_number = true)) b`
        assert.equal(await count(`${written} FULL JOIN ${read} ON a.r = b.r WHERE ${differing.join(' OR ')}`), 0n, sql)
        assert.equal(await count(`read_parquet('${path}')`), await count(`(${sql})`))
      }),
      { numRuns: RUNS * 4 },
    )
  })

  describe("Debian's ClickHouse 18.16", () => {
    let server: ClickHouseServer
    before(async () => {
      server = await startClickHouse()
    })
    after(() => server?.[Symbol.asyncDispose]())

    /** 18.16 has no Bool, Map, Int128, DateTime64 and no named tuples. */
    const OLD_TYPES = `SELECT (18446744073709551615 - i)::UBIGINT AS u64, (-i)::BIGINT AS i64, (i % 256)::UTINYINT AS u8, (-i)::SMALLINT AS i16, i / 3 AS f64,
      'text ''quoted''\t' || i AS words, TIMESTAMP_S '2024-01-02 03:04:05' AS at, ['a' || i, ''] AS list, CASE WHEN i % 3 = 0 THEN NULL ELSE i::INTEGER END AS some,
      (i / 4 + 0.01)::DECIMAL(12, 2) AS decimal, '00112233-4455-6677-8899-aabbccddeeff'::UUID AS id, [[i::UINTEGER], []] AS nested FROM range(5000) t(i)`

    test('reads Native, RowBinary and TabSeparated with the same rows', async () => {
      const rows = await readRows(connection, OLD_TYPES)
      const own = rows.write('TabSeparated').toString()
      for (const format of ['Native', 'RowBinary', 'TabSeparated', 'CSV']) {
        await server.run(`DROP TABLE IF EXISTS back`)
        await server.run(`CREATE TABLE back (${rows.structure}) ENGINE = Memory`)
        const { user, password } = CLICKHOUSE_ADMIN
        const response = await fetch(
          `${server.url}/?query=${encodeURIComponent(`INSERT INTO back FORMAT ${format}`)}`,
          {
            method: 'POST',
            headers: { authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}` },
            body: Uint8Array.from(rows.write(format)),
          },
        )
        assert.ok(response.ok, `${format}: ${await response.text()}`)
        assert.equal(await server.run('SELECT * FROM back FORMAT TabSeparated'), own, format)
      }
    })
  })
})
