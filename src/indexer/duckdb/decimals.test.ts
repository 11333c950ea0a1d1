import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

/** The rows that ClickHouse 26.5 has. */
async function haveRows(expected: Readonly<Record<string, readonly unknown[]>>, given = {}): Promise<void> {
  const settings = { output_format_json_quote_64bit_integers: '0' }
  for (const [statement, rows] of Object.entries(expected)) {
    const { body } = await opened.ask(statement, {}, { defaultFormat: 'JSONCompact', settings, ...given })
    assert.deepEqual((JSON.parse(body.toString()) as { data: unknown }).data, rows, statement)
  }
}

describe('decimals', () => {
  test('are cut, not rounded', () =>
    haveRows({
      'SELECT CAST(2.999 AS Decimal(9, 2)), 2.999::Decimal(9, 2), toDecimal64(2.999, 2), CAST(-2.999 AS Decimal(9, 2))':
        [[2.99, 2.99, 2.99, -2.99]],
      "SELECT CAST('1.239' AS Decimal(9, 2)), toDecimal64OrNull('1.239', 2), toDecimal64(toDecimal64('1.239', 3), 2), toDecimal64OrZero('1.239', 2), CAST(toDecimal64('-1.239', 3) AS Decimal(9, 2))":
        [[1.23, 1.23, 1.23, 1.23, -1.23]],
      "SELECT CAST('1.239e1' AS Decimal(9, 2)), CAST('-1.239' AS Decimal(9, 2)), CAST('.239' AS Decimal(9, 2)), CAST('1.' AS Decimal(9, 2)), toDecimal64('12345e-3', 2), CAST('1.9' AS Decimal(9, 0))":
        [[12.39, -1.23, 0.23, 1, 12.34, 1]],
      "SELECT toDecimal64OrNull('x', 2), toDecimal64OrZero('1e', 2), CAST(toNullable(1.239) AS Nullable(Decimal(9, 2))), CAST(toDecimal64('1.2', 1) AS Decimal(9, 3)), CAST(5 AS Decimal(9, 2))":
        [[null, 0, 1.23, 1.2, 5]],
      "SELECT accurateCastOrNull('1.239', 'Decimal(9,2)'), accurateCastOrNull(1.239, 'Decimal(9,2)'), accurateCast(1.239, 'Decimal(9,2)')":
        [[1.23, 1.23, 1.23]],
      "SELECT toString(toDecimal128('1e20', 0)), toDecimal128('12345e-3', 2), toString(toDecimal64('123456789e9', 0))":
        [['100000000000000000000', 12.34, '123456789000000000']],
      'SELECT sum(CAST(x AS Decimal(18, 2))) FROM (SELECT arrayJoin([0.005, 0.005, 0.009]) AS x)': [[0]],
    }))

  test('are cut in a parameter', () =>
    haveRows({ 'SELECT {d:Decimal(9, 2)}, {d:Decimal(9, 4)}': [[-1.23, -1.239]] }, { parameters: { d: '-1.239' } }))

  test('are divided exactly', () =>
    haveRows({
      "SELECT toString(toDecimal64(123456789012345678, 0) / 1), toString(toDecimal128(123456789012345678, 9) / 1000000000), toString(-7 / toDecimal64('2', 2)), toString(toDecimal128('0.000000001', 9) / 1)":
        [['123456789012345678', '123456789.012345678', '-3.5', '0.000000001']],
      "SELECT toDecimal64(1, 2) / 3, toDecimal64(-1, 2) / 3, toDecimal64(10, 4) / toDecimal64('0.3', 2), toDecimal64('-10', 4) / toDecimal64('0.3', 2), 1 / toDecimal64('3', 2)":
        [[0.33, -0.33, 33.3333, -33.3333, 0.33]],
      'SELECT toDecimal64(1, 2) / NULL, toNullable(1) / toDecimal64(3, 2)': [[null, 0.33]],
      'SELECT toDecimal64(1, 2) / 2.5, toNullable(toDecimal64(1, 2)) / 3, sum(toDecimal64(x, 2)) / count() FROM (SELECT arrayJoin([1, 2, 2]) AS x) GROUP BY ALL':
        [[0.4, 0.33, 1.66]],
      "SELECT toTypeName(toDecimal32(10, 4) / toDecimal64('0.3', 2)), toTypeName(toDecimal32(10, 2) / toUInt64(3)), toTypeName(CAST(1 AS Decimal(12, 2)) / 3), toTypeName(CAST(1 AS Decimal(30, 2)) / CAST(1 AS Decimal(4, 1))), toTypeName(1 / toDecimal64('3', 2))":
        [['Decimal(18, 4)', 'Decimal(9, 2)', 'Decimal(12, 2)', 'Decimal(38, 2)', 'Decimal(18, 2)']],
    }))

  test('are not divided by zero', async () => {
    for (const by of ['0', 'materialize(0)', "toDecimal64('0', 2)"])
      await assert.rejects(opened.ask(`SELECT toDecimal64(1, 2) / ${by}`), /Division by zero/)
  })
})
