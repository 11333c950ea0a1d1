import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

/** The only row of a statement, and the types of its columns. */
async function rowOf(sql: string, parameters: Record<string, string> = {}) {
  const defaultFormat = 'JSONCompactEachRowWithNamesAndTypes'
  const { body } = await opened.ask(sql, {}, { parameters, defaultFormat })
  const [, types, ...rows] = body
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown[])
  assert.equal(rows.length, 1)
  return { row: rows[0], types }
}

/** Whether each expression has its value, as ClickHouse with transform_null_in = 0 has it. */
async function haveValues(values: Readonly<Record<string, unknown>>): Promise<void> {
  for (const [sql, expected] of Object.entries(values))
    assert.deepEqual((await rowOf(`SELECT ${sql} AS x`)).row, [expected], sql)
}

describe('NULL in sets', () => {
  test('is ignored in a list', async () => {
    await haveValues({
      '1 NOT IN (NULL, 2)': 1,
      '1 IN (NULL, 2)': 0,
      '2 NOT IN (NULL, 2)': 0,
      '2 IN (NULL, 2)': 1,
      '1 NOT IN (NULL)': 1,
      '1 IN (NULL)': 0,
      'NULL IN (NULL, 1)': null,
      'toNullable(1) NOT IN (NULL)': 1,
      'nullIf(1, 1) NOT IN (NULL)': null,
      'nullIf(1, 1) IN (2)': null,
      '1 NOT IN (nullIf(1, 1), 2)': 1,
      '1 IN (nullIf(1, 1), 2)': 0,
      'nullIf(1, 1) NOT IN (nullIf(1, 1), 2)': null,
      '1 NOT IN [NULL, 2]': 1,
      "'a' NOT IN (NULL, 'b')": 1,
    })
    assert.deepEqual((await rowOf('SELECT 1 NOT IN (NULL, 2) AS x, 1 IN (nullIf(1, 1)) AS y')).types, [
      'UInt8',
      'UInt8',
    ])
  })

  test('is ignored in a subquery', async () => {
    await haveValues({
      '3 NOT IN (SELECT nullIf(number, 1) FROM numbers(3))': 1,
      '2 NOT IN (SELECT nullIf(number, 1) FROM numbers(3))': 0,
      '3 IN (SELECT nullIf(number, 1) FROM numbers(3))': 0,
      '2 IN (SELECT nullIf(number, 1) FROM numbers(3))': 1,
      '1 NOT IN (SELECT NULL)': 1,
    })
  })

  test('drops no row that is not in the set', async () => {
    const from = 'FROM (SELECT nullIf(number, 1) AS n FROM numbers(4))'
    assert.deepEqual((await rowOf(`SELECT groupArray(n) ${from} WHERE n NOT IN (NULL, 2)`)).row, [['0', '3']])
    assert.deepEqual((await rowOf(`SELECT groupArray(n) ${from} WHERE n NOT IN (SELECT NULL)`)).row, [['0', '2', '3']])
  })

  test('is found by has and indexOf', async () => {
    await haveValues({
      'has([1, NULL], NULL)': 1,
      'has([1, NULL], 1)': 1,
      'has([1], NULL)': 0,
      'has([1, NULL], nullIf(2, 2))': 1,
      'indexOf([1, NULL], NULL)': '2',
    })
    const { types } = await rowOf('SELECT has([1, NULL], NULL) AS x, indexOf([1, NULL], NULL) AS y')
    assert.deepEqual(types, ['UInt8', 'UInt64'])
  })
})

test('substring: position 0 is before the text, and a negative length ends before its end', async () => {
  await haveValues({
    "substring('hello', 0)": '',
    "substring('hello', 0, 2)": '',
    "substring('hello', 2, -1)": 'ell',
    "substring('hello', 1, -5)": '',
    "substring('hello', 4, -3)": '',
    "substring('hello', -4, -1)": 'ell',
    "substring('hello', -3, 2)": 'll',
    "substring('hello', 2, 2)": 'el',
    "substring(unhex('68656c6c6f'), 2, -1)": 'ell',
    "substring(unhex('68656c6c6f'), 0)": '',
  })
})

describe('parameters as the official client sends them', () => {
  test('a Date is a number of seconds', async () => {
    const value = async (type: string, text: string) => (await rowOf(`SELECT {d:${type}} AS x`, { d: text })).row?.[0]
    assert.equal(await value('DateTime', '1704164645'), '2024-01-02 03:04:05')
    assert.equal(await value('DateTime', '0000000000'), '1970-01-01 00:00:00')
    assert.equal(await value("DateTime('Asia/Tokyo')", '1704164645'), '2024-01-02 12:04:05')
    assert.equal(await value('Nullable(DateTime)', '1704164645'), '2024-01-02 03:04:05')
    assert.equal(await value('DateTime64(3)', '1704164645.678'), '2024-01-02 03:04:05.678')
    assert.equal(await value('DateTime64(3)', '1704164645'), '2024-01-02 03:04:05.000')
    assert.equal(await value('DateTime64(6)', '1704164645.000007'), '2024-01-02 03:04:05.000007')
    assert.equal(await value('DateTime', '2024-01-02 03:04:05'), '2024-01-02 03:04:05')
    assert.deepEqual(await value('Array(DateTime)', '[1704164645,1704164646]'), [
      '2024-01-02 03:04:05',
      '2024-01-02 03:04:06',
    ])
    await assert.rejects(value('DateTime', '170416464517041646451704164645'), { type: 'CANNOT_PARSE_DATETIME' })
  })

  test('a list has numbers with a sign', async () => {
    const { row } = await rowOf('SELECT {a:Array(Int64)} AS x, {b:Array(Float64)} AS y', {
      a: '[1,-2]',
      b: '[-1.5,+2]',
    })
    assert.deepEqual(row, [
      ['1', '-2'],
      [-1.5, 2],
    ])
  })

  test('names that differ in case are different parameters', async () => {
    const sql = 'SELECT {a:UInt8} AS x, {A:UInt8} AS y, {a:UInt8} AS z, {a:String} AS s'
    assert.deepEqual((await rowOf(sql, { a: '1', A: '2' })).row, [1, 2, 1, '1'])
  })

  test('a whole number has no fraction', async () => {
    for (const text of ['1.5', '1e3', '0x10', ' 1', ''])
      await assert.rejects(rowOf('SELECT {a:UInt64} AS x', { a: text }), { type: 'CANNOT_PARSE_TEXT' }, text)
    await assert.rejects(rowOf('SELECT {a:Array(UInt64)} AS x', { a: '[1,1.5]' }), { type: 'CANNOT_PARSE_TEXT' })
    const { row } = await rowOf('SELECT {a:UInt64} AS x, {b:Int8} AS y, {c:Nullable(Int8)} AS z', {
      a: '18446744073709551615',
      b: '-7',
      c: '\\N',
    })
    assert.deepEqual(row, ['18446744073709551615', -7, null])
  })
})

describe('a number compared with a text', () => {
  const [low, high] = ['16927863322537952870', '16927863322537952871']

  test('is compared exactly', async () => {
    await haveValues({
      [`materialize(${high}) = '${low}'`]: 0,
      [`materialize(${high}) = '${high}'`]: 1,
      [`materialize(${high}) > '${low}'`]: 1,
      [`materialize(${high}) IN ('${low}', '1')`]: 0,
      [`nullIf(materialize(${high}), '${low}')`]: high,
      [`CASE materialize(${high}) WHEN '${low}' THEN 1 ELSE 2 END`]: 2,
      [`materialize(${high}) = concat('${low}', '')`]: 0,
      [`materialize(toUInt64(18446744073709551615)) < '18446744073709551616'`]: 1,
      [`materialize(toUInt8(5)) > '-1'`]: 1,
    })
    assert.deepEqual((await rowOf(`SELECT materialize(${high}) = {x:String} AS x`, { x: low })).row, [0])
  })

  test('is refused where the text is not a whole number', async () => {
    for (const sql of ["slot = '5.5'", "slot IN ('5.5')", "slot IN ('a')", "slot < 'inf'"])
      await assert.rejects(opened.ask(`SELECT slot FROM blocks WHERE ${sql}`), { code: 53 }, sql)
  })
})

describe('bytes', () => {
  test('stay bytes in unions, conditions and containers', async () => {
    await haveValues({
      "hex(coalesce(NULL, unhex('ff')))": 'FF',
      "hex((unhex('ff'), 1).1)": 'FF',
      "hex([unhex('ff'), 'a'][1])": 'FF',
      "startsWith(unhex('f002'), unhex('f0'))": 1,
      "startsWith(unhex('f002'), unhex('0f'))": 0,
      "('é', 1) = (unhex('c3a9'), 1)": 1,
      "('\\\\x42', 1) = (unhex('42'), 1)": 0,
    })
    for (const text of ['é', '\\\\x42']) {
      const arrays = `SELECT groupArray(hex(a[1])) FROM (SELECT a FROM (SELECT ['${text}'] AS a UNION ALL SELECT [unhex('ff')]) ORDER BY a)`
      const tuples = `SELECT groupArray(hex(a.1)) FROM (SELECT a FROM (SELECT ('${text}', 1) AS a UNION ALL SELECT (unhex('ff'), 1)) ORDER BY a)`
      const expected = [Buffer.from(text.replace('\\\\', '\\')).toString('hex').toUpperCase(), 'FF']
      assert.deepEqual((await rowOf(arrays)).row, [expected], text)
      assert.deepEqual((await rowOf(tuples)).row, [expected], text)
    }
    for (const operator of ['UNION ALL', 'UNION DISTINCT']) {
      const sql = `SELECT groupArray(hex(a)) FROM (SELECT a FROM (SELECT unhex('ff') AS a ${operator} SELECT '\\\\x41') ORDER BY a)`
      assert.deepEqual((await rowOf(sql)).row, [['5C783431', 'FF']])
    }
  })

  test('are an error where the engine needs a text and they are not one', async () => {
    await assert.rejects(opened.ask("SELECT format('{}', unhex('ff'))"), { code: 53 })
    assert.deepEqual((await rowOf("SELECT format('{}', unhex('61'))")).row, ['a'])
  })
})

describe('rows', () => {
  async function haveRows(statements: Readonly<Record<string, readonly unknown[]>>): Promise<void> {
    for (const [sql, expected] of Object.entries(statements)) {
      const lines = (await opened.ask(sql)).body.toString().trim().split('\n')
      assert.deepEqual(
        lines.map((line) => JSON.parse(line) as unknown),
        expected,
        sql,
      )
    }
  }

  test('EXCEPT and INTERSECT keep repeated rows, and INTERSECT binds tighter', async () => {
    await haveRows({
      'SELECT x FROM (SELECT arrayJoin([1, 1, 2]) AS x EXCEPT SELECT 1) ORDER BY x': [[1], [2]],
      'SELECT x FROM (SELECT arrayJoin([1, 1, 2]) AS x EXCEPT DISTINCT SELECT 1) ORDER BY x': [[2]],
      'SELECT x FROM (SELECT arrayJoin([1, 1]) AS x INTERSECT SELECT arrayJoin([1, 1, 1])) ORDER BY x': [[1], [1]],
      'SELECT x FROM (SELECT 1 AS x UNION ALL SELECT 2 INTERSECT SELECT 3) ORDER BY x': [[1]],
      'WITH t AS (SELECT 1 AS a) SELECT a FROM t UNION ALL SELECT a FROM t UNION ALL SELECT a FROM t': [[1], [1], [1]],
    })
  })

  test('ANY INNER JOIN has one row for each key', async () => {
    await haveRows({
      'SELECT a.k FROM (SELECT number % 2 AS k FROM numbers(4)) AS a ANY INNER JOIN (SELECT number % 2 AS k FROM numbers(6)) AS b USING k ORDER BY a.k':
        [[0], [1]],
    })
  })

  test('WITH FILL fills each group of the columns before it', async () => {
    await haveRows({
      'SELECT number % 2 AS a, number AS b FROM numbers(4) ORDER BY a, b WITH FILL': [
        [0, '0'],
        [0, '1'],
        [0, '2'],
        [1, '1'],
        [1, '2'],
        [1, '3'],
      ],
    })
    // The limit holds for all groups together.
    const many = 'SELECT number AS a, number * 2 AS b FROM numbers(60) ORDER BY a, b WITH FILL FROM 0 TO 2000'
    await assert.rejects(opened.ask(many), /fill_rows/)
    await assert.rejects(opened.ask('SELECT slot FROM blocks ORDER BY leader, slot WITH FILL'), /in the SELECT list/)
  })

  test('a RANGE may begin below the smallest value of the type', async () => {
    await haveRows({
      'SELECT count() OVER (ORDER BY number RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS c FROM numbers(3) ORDER BY number':
        [['1'], ['2'], ['2']],
    })
  })
})
