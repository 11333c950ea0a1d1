import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

/** Values of single functions as ClickHouse 26.5 has them. */
let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const have = (expected: ExpectedRows) => () => assertRows(opened, expected)
const refused = (statement: string, error: object) => assert.rejects(opened.ask(statement), error, statement)

test(
  'decimals are rounded without a double',
  have({
    "SELECT toString(floor(toDecimal128('12345678901234567890.55', 2))), toString(trunc(toDecimal128('12345678901234567890.55', 2), 1)), toString(ceil(toDecimal128('12345678901234567890.55', 2))), toString(floor(toDecimal64('123456789012345.678', 3), 2))":
      [['12345678901234567890', '12345678901234567890.5', '12345678901234567891', '123456789012345.67']],
    "SELECT toString(floor(toDecimal64('-2.345', 3))), toString(floor(toDecimal64('-1234.5', 1), -2)), toString(trunc(toDecimal64('-2.345', 3), 2)), toString(ceil(toDecimal64('2.345', 3), 5)), toString(ceil(toDecimal64('-2.345', 3), 1)), toString(trunc(toDecimal64('1250', 1), -2))":
      [['-3', '-1300', '-2.34', '2.345', '-2.3', '1200']],
  }),
)

test(
  'what is written several times is computed once',
  have({
    'SELECT toString((SELECT min(slot) = max(slot), count() > 0 FROM blocks WHERE slot = 0))': [['(1,0)']],
    "SELECT countIf(toDateTimeOrNull(if(rand() % 2 = 0, '2024-01-05', '1704438489')) IS NULL) FROM numbers(100)": [[0]],
    "SELECT concat_ws(CAST(materialize(NULL) AS Nullable(String)), 'a'), concat_ws('-', 'a', NULL, 'c')": [
      [null, null],
    ],
  }),
)

test(
  'values at the ends of types',
  have({
    "SELECT toString(CAST(map('a', map('b', 300)) AS Map(String, Map(String, UInt16))))": [["{'a':{'b':300}}"]],
    "SELECT toString(CAST((1, ('2', [3])) AS Tuple(String, Tuple(UInt8, Array(String)))))": [["('1',(2,['3']))"]],
    'SELECT toTypeName(if(1, toInt128(5) * 2, 0)), toString(greatest(toInt128(5) - 1, 0))': [['Int128', '4']],
    'SELECT toString(makeDate32(1965, 1, 1)), toString(makeDate(2149, 3, 1)), toString(makeDate(2149, 7, 1)), toString(makeDate(2024, 366))':
      [['1965-01-01', '2149-03-01', '1970-01-01', '1970-01-01']],
    "SELECT toFloat64OrNull('infinity') > 1e300, arraySlice([1, 2, 3], number, 2), arraySlice([1, 2, 3], number) FROM numbers(1)":
      [[1, [], []]],
    'SELECT toString(bitShiftLeft(toInt128(1), 3)), bitTest(toInt128(5), 0), bitShiftRight(toInt8(-1), 9)': [
      ['8', 1, 0],
    ],
    "SELECT domainWithoutWWW('http://www.com/'), toJSONString([[1.0, 2.5]])": [['com', '[[1,2.5]]']],
    "SELECT toString(toDateTimeOrDefault(toDate('2024-01-01')))": [['2024-01-01 00:00:00']],
  }),
)

test('NOT is looser than arithmetic and comparisons', have({ 'SELECT NOT (1) + 1, NOT (5) = 1': [[0, 1]] }))

describe('whole numbers', () => {
  test(
    'of 128 bits keep their size',
    have({
      "SELECT toString(toUInt128('18446744073709551616') * 2), toTypeName(toInt128(1) * 2), toTypeName(-toInt128(5))": [
        ['36893488147419103232', 'Int128', 'Int128'],
      ],
      "SELECT toString(toUInt128('340282366920938463463374607431768211454') + 1)": [
        ['340282366920938463463374607431768211455'],
      ],
      "SELECT toString(toInt128('170141183460469231731687303715884105727') - 1), toString(intDiv(toUInt128('18446744073709551616'), 2))":
        [['170141183460469231731687303715884105726', '9223372036854775808']],
    }),
  )

  test(
    'have their bits where they are negative, too',
    have({
      'SELECT bitShiftRight(toInt8(-1), 1), bitShiftLeft(toInt64(-1), 3), bitShiftLeft(toInt32(1), 31), bitTest(toInt8(-1), 7), bitShiftRight(-8, 1)':
        [[-1, -8, -2147483648, 1, -4]],
      'SELECT bitAnd(-1, 255), bitXor(5, -1), bitShiftLeft(toUInt8(255), 1), negate(toInt8(-128)), xor(1, 1, 1)': [
        [-1, -6, 254, -128, 1],
      ],
      'SELECT reinterpretAsInt64(toUInt64(18446744073709551615)), reinterpretAsUInt8(300), toTypeName(reinterpretAsUInt8(300))':
        [[-1, 44, 'UInt8']],
      'SELECT groupBitAnd(toUInt8(slot)), groupBitOr(slot), groupBitAnd(toInt16(tx_count)) FROM blocks WHERE slot = 0':
        [[255, 0, -1]],
    }),
  )

  test('are not made of the bytes of a fraction', () =>
    refused('SELECT reinterpretAsInt64(1.5)', { type: 'ILLEGAL_TYPE_OF_ARGUMENT' }))
})

test(
  'texts of containers are those of their elements',
  have({
    "SELECT toString((1, 'a', [2], NULL)), toString(map('a', 1)), concat('x', toString([1, NULL, 2])), concat((1, 2), '!')":
      [["(1,'a',[2],NULL)", "{'a':1}", 'x[1,NULL,2]', '(1,2)!']],
    "SELECT toString(['it\\'s', 'b']), toString([[1], []]), toString([(1, 'x')]), toString(map('k', [1, 2])), toString([toDate('2024-01-01')])":
      [["['it\\'s','b']", '[[1],[]]', "[(1,'x')]", "{'k':[1,2]}", "['2024-01-01']"]],
  }),
)

describe('aggregates of arrays', () => {
  test(
    'ignore NULL',
    have({
      "SELECT arrayReduce('count', [1, NULL]), arrayReduce('groupArray', [1, NULL]), arrayReduce('any', [NULL, 2])": [
        [1, [1], 2],
      ],
      'SELECT countArray([1, NULL]), groupArrayArray([1, NULL]), toTypeName(sumArray([1, NULL])), anyArray([NULL, 3])':
        [[1, [1], 'Nullable(UInt64)', 3]],
    }),
  )

  test(
    'by key leave out the sums that are zero, those of maps do not',
    have({
      "SELECT sumMap(['a', 'b'], [1, 0]), sumMap(['x', 'y'], [toInt32(number) - 1, 1]), sumMap(map('k', 0)), minMap(['a'], [0]) FROM numbers(3)":
        [[[['a'], [3]], [['y'], [3]], { k: 0 }, [['a'], [0]]]],
    }),
  )

  test(
    'a slice that begins before its array is shorter',
    have({
      'SELECT arraySlice([1, 2, 3], -5, 3), arraySlice([1, 2, 3, 4], -3, 2), arraySlice([1, 2, 3], -5, 1)': [
        [[1], [2, 3], []],
      ],
      'SELECT arraySlice([1, 2, 3], -5, -1), arraySlice([1, 2, 3], 0, 2)': [[[1, 2], []]],
    }),
  )
})

test(
  'of no rows an average with the ending OrDefault is zero',
  have({ 'SELECT avgOrDefault(fee), sumOrDefault(fee) FROM transactions WHERE slot = 0': [[0, 0]] }),
)

describe('texts', () => {
  test(
    'words begin after every other character than a letter or digit',
    have({ "SELECT initcap('hello wORLD-foo_bar 1ab x.y')": [['Hello World-Foo_Bar 1ab X.Y']] }),
  )

  test(
    'characters are bytes',
    have({
      "SELECT char(0xC3, 0xA4), hex(char(256, 65)), hex(char(200)), hex(char(-1)), char(65.9), ascii('ä'), ascii('')": [
        ['ä', '0041', 'C8', 'FF', 'A', 195, 0],
      ],
      "SELECT '\\xc3\\xa4', hex('\\xc3\\xa4')": [['ä', 'C3A4']],
    }),
  )

  test('bytes in quotes are UTF-8', () => refused("SELECT '\\xff'", { type: 'SYNTAX_ERROR', message: /unhex/ }))

  test(
    'a backslash of LIKE is one before any other character',
    have({
      "SELECT 'a\\\\bc' LIKE 'a\\\\bc', 'abc' LIKE 'a\\\\bc', 'a%c' LIKE 'a\\\\%c', 'abc' LIKE 'a\\\\%c'": [
        [1, 0, 1, 0],
      ],
    }),
  )

  test(
    'NULL in the list makes the joined text NULL',
    have({ "SELECT concat_ws(',', 'a', NULL, 'b'), concatWithSeparator(',', 'a', 'b')": [[null, 'a,b']] }),
  )

  test(
    'a URL may have no protocol, and its host has a point',
    have({
      "SELECT domain('some.svn-hosting.com:80/repo/trunk'), domain('http://localhost/x'), domain('//a.b/c'), domain('https://user@www.a.example:80/p')":
        [['some.svn-hosting.com', '', 'a.b', 'www.a.example']],
      "SELECT domainWithoutWWW('www.example.com/x'), topLevelDomain('example.com/x'), topLevelDomain('http://a.co.uk/x')":
        [['example.com', 'com', 'uk']],
    }),
  )

  test(
    'as numbers have no spaces or underscores',
    have({
      "SELECT toFloat64OrNull(' 5'), toFloat64OrNull('1_000'), toFloat64OrNull('1e3'), toFloat64OrNull('5.'), toFloat64OrZero('-2E-2')":
        [[null, null, 1000, 5, -0.02]],
    }),
  )

  test('with a wrong pattern have an error that names it', async () => {
    await refused("SELECT match('x', '(')", { type: 'CANNOT_COMPILE_REGEXP' })
    await refused("SELECT hex(unhex('zz'))", { type: 'BAD_ARGUMENTS', message: /hexadecimal/ })
    await refused('SELECT (SELECT number FROM numbers(2))', { type: 'BAD_ARGUMENTS', message: /more than one row/ })
  })
})

test(
  'JSON: fractions are cut off, floats are written as everywhere',
  have({
    "SELECT JSONExtractInt('{\"a\":2.0}', 'a'), JSONExtractInt('{\"a\":1.9}', 'a'), JSONExtractInt('{\"a\":1e3}', 'a'), JSONExtractBool('{\"a\":1}', 'a')":
      [[2, 1, 1000, 1]],
    "SELECT JSONExtractBool('{\"a\":2}', 'a'), JSONExtract('{\"a\":2.7}', 'a', 'UInt8'), JSONExtract('{\"a\":[1.5,2]}', 'a', 'Array(Int32)')":
      [[1, 2, [1, 2]]],
    'SELECT toJSONString(2.0), toJSONString([1.0, 2.5]), toJSONString(nan)': [['2', '[1,2.5]', 'null']],
  }),
)

test(
  'a cast of a tuple or map converts each element',
  have({
    "SELECT CAST((1.9, -1) AS Tuple(UInt8, UInt8)), CAST(map('a', 300) AS Map(String, UInt8)), CAST((1, '2') AS Tuple(String, UInt8))":
      [[[1, 255], { a: 44 }, ['1', 2]]],
  }),
)

describe('USING', () => {
  test(
    'gives the column the common type',
    have({
      'SELECT a, toTypeName(a) FROM (SELECT toUInt8(1) AS a) x INNER JOIN (SELECT toUInt64(1) AS a) y USING (a)': [
        [1, 'UInt64'],
      ],
      'SELECT a, toTypeName(a) FROM (SELECT toUInt8(1) AS a) x FULL JOIN (SELECT toUInt64(300) AS a) y USING (a) ORDER BY a':
        [
          [1, 'Nullable(UInt64)'],
          [300, 'Nullable(UInt64)'],
        ],
    }),
  )

  test(
    'leaves the columns of the tables their values',
    have({
      'SELECT x.a, y.a, a FROM (SELECT arrayJoin([1, 2]) AS a) x RIGHT JOIN (SELECT arrayJoin([2, 3]) AS a) y USING (a) ORDER BY y.a':
        [
          [2, 2, 2],
          [null, 3, 3],
        ],
      'SELECT y.a FROM (SELECT arrayJoin([1, 2]) AS a) x FULL JOIN (SELECT arrayJoin([2, 3]) AS a) y USING (a) WHERE x.a IS NULL':
        [[3]],
    }),
  )
})
