import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows, given = {}) => assertRows(opened, expected, given)

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

  test('are divided where the quotient has as many digits as the type', () =>
    haveRows({
      "SELECT toDecimal64('2.5', 9) / 2, CAST('12.25' AS Decimal(4, 2)) / 2, CAST('1234567.00' AS Decimal(10, 2)) / 1, 10 / toDecimal64('4', 9)":
        [[1.25, 6.12, 1234567, 2.5]],
      "SELECT toDecimal64('-2.5', 9) / 2, CAST('-12.25' AS Decimal(4, 2)) / 2, CAST('99.99' AS Decimal(4, 2)) / -1, CAST('0.05' AS Decimal(4, 2)) / -2, CAST('0.01' AS Decimal(4, 2)) / 2, CAST('0.99' AS Decimal(2, 2)) / 3":
        [[-1.25, -6.12, -99.99, -0.02, 0, 0.33]],
      "SELECT toString(toDecimal64('0.000000003', 9) / -2), toString(toDecimal128('-0.000000000000000007', 18) / 2), toString(CAST('9.9999999999999999999999999999999999999' AS Decimal(38, 37)) / -1), toString(toDecimal64('-7', 0) / 2)":
        [['-0.000000001', '-0.000000000000000003', '-9.9999999999999999999999999999999999999', '-3']],
      'SELECT countIf(toDecimal64(fee, 9) / 2 != toDecimal64(fee / 2, 9)), sum(toDecimal128(fee, 18)) / count() > 0 FROM transactions':
        [[0, 1]],
    }))

  test('are read from texts with an exponent', () =>
    haveRows({
      "SELECT toString(toDecimal128('1.5e11', 18)), toString(toDecimal128('1e15', 18)), toString(toDecimal128('1e30', 2)), toString(toDecimal128('1e27', 9)), toString(toDecimal128('-12345678901234567890.123456789012345678999e0', 18))":
        [
          [
            '150000000000',
            '1000000000000000',
            '1000000000000000000000000000000',
            '1000000000000000000000000000',
            '-12345678901234567890.123456789012345678',
          ],
        ],
      "SELECT toString(toDecimal128OrNull('1e15', 18)), toString(toDecimal128OrZero('-1.5E+11', 18)), toString(toDecimal128OrNull('1234567890123456789012e-10', 18)), toDecimal64OrNull('1e17', 2), toDecimal64OrNull('1e999999999999', 2), toDecimal64OrZero('1e-999999999999', 2)":
        [['1000000000000000', '-150000000000', '123456789012.3456789012', null, null, 0]],
      "SELECT toDecimal64('.5e1', 2), toDecimal64('5.e-1', 2), toDecimal64('-1.239e-1', 3), toDecimal64('0e50', 2), toDecimal64('+199e-2', 1), toDecimal64OrNull('e5', 2), toDecimal64OrNull('.e5', 2), toDecimal64OrNull('1.2.3e1', 2)":
        [[5, 0.5, -0.123, 0, 1.9, null, null, null]],
      "SELECT toDecimal64(s, 1) FROM (SELECT arrayJoin(['1.25e1', '7', '-3e-1']) AS s)": [[12.5], [7], [-0.3]],
    }))

  test('are read from the text of a number before ::', () =>
    haveRows({
      'SELECT 0.29::Decimal(9, 2), -0.29::Decimal(9, 2), 1.15::Nullable(Decimal(9, 2)), 2_9e-2::Decimal(9, 2), 5::Decimal32(2), 1 - 0.29::Decimal(9, 2)':
        [[0.29, -0.29, 1.15, 0.29, 5, 0.71]],
      'SELECT toString(123456789012345678901234567.89::Decimal(38, 2)), -0.29::Decimal(9, 2)::String, toTypeName(-0.29::Decimal(9, 2)), 0x10::Decimal(9, 2)':
        [['123456789012345678901234567.89', '-0.29', 'Decimal(9, 2)', 16]],
      'SELECT CAST(0.29 AS Decimal(9, 2)), 0.29::Float64, -1::Int8, -1::Float64 AS x': [[0.28, 0.29, -1, -1]],
    }))

  test('are not divided by zero', async () => {
    for (const by of ['0', 'materialize(0)', "toDecimal64('0', 2)"])
      await assert.rejects(opened.ask(`SELECT toDecimal64(1, 2) / ${by}`), /Division by zero/)
  })
})
