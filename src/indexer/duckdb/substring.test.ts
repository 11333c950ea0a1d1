import { after, before, describe, test } from 'node:test'
import { assertRows, type ExpectedRows, openQueryDatabase } from './test-queries.ts'

let opened: Awaited<ReturnType<typeof openQueryDatabase>>
before(async () => {
  opened = await openQueryDatabase()
})
after(() => opened[Symbol.dispose]())

const haveRows = (expected: ExpectedRows, given = {}) => assertRows(opened, expected, given)

const places = Array.from({ length: 15 }, (_, at) => at - 7)

/** What ClickHouse returns, by its rules: position 0 is nothing, a negative one counts from the end, a negative length ends before the end. */
function expected(text: string, from: number, length: number | undefined): string {
  if (from === 0) return ''
  const start = from > 0 ? from - 1 : text.length + from
  const end = length === undefined ? text.length : length < 0 ? text.length + length : start + length
  return text.slice(Math.max(start, 0), Math.max(end, 0))
}

describe('substring', () => {
  test('is the same for constants and for columns, at every position and length', async () => {
    const pairs = places.flatMap((from) => places.map((length) => [from, length] as const))
    const list = pairs.map(([from, length]) => expected('hello', from, length))
    const written = pairs.map(([from, length]) => `substring('hello', ${from}, ${length})`)
    const columns = pairs.map(([from, length]) => `substring('hello', materialize(${from}), materialize(${length}))`)
    const mixed = pairs.map(([from, length]) => `substring('hello', materialize(${from}), ${length})`)
    const other = pairs.map(([from, length]) => `substring('hello', ${from}, materialize(${length}))`)
    for (const calls of [written, columns, mixed, other]) await haveRows({ [`SELECT [${calls.join(', ')}]`]: [[list]] })
  })

  test('without a length goes to the end', () =>
    haveRows({
      [`SELECT [${places.map((from) => `substring('hello', materialize(${from}))`).join(', ')}]`]: [
        [places.map((from) => expected('hello', from, undefined))],
      ],
      "SELECT substring(s, position(s, ':')), substring(s, position(s, ':'), 3), substr(s, 2, length(s) - 5) FROM (SELECT arrayJoin(['none', 'a:bc', 'abc', '']) AS s)":
        [
          ['', '', 'on'],
          [':bc', ':bc', ':b'],
          ['', '', ''],
          ['', '', ''],
        ],
    }))

  test('takes long expressions, also inside each other', () => {
    const [word, place] = [
      "lowerUTF8(upperUTF8(concat(materialize('he'), 'llo')))",
      'toInt64(materialize(-4) * 1 + 0 + 0)',
    ]
    return haveRows({
      [`SELECT substring(${word}, ${place}, ${place} + 3), substring(${word}, ${place}), substringUTF8(${word}, ${place} - 3, 2), hex(substring(unhex(hex(${word})), ${place}, 2))`]:
        [['ell', 'ello', 'he', '656C']],
      [`SELECT ${'substring('.repeat(6)}${word}${`, ${place} + 5, ${place} + 8)`.repeat(6)}`]: [['hell']],
      [`SELECT substring(x, toInt64(length(substring(x, ${place}, -1))), length(substring(x, 2))) FROM (SELECT ${word} AS x)`]:
        [['llo']],
      [`SELECT substring(toNullable(${word}), CAST(NULL AS Nullable(Int64))), substring(nullIf(${word}, 'hello'), ${place})`]:
        [[null, null]],
    })
  })

  test('counts bytes of bytes', async () => {
    const near = places.slice(2, -2)
    const text = '\u00c3\u00a4\u00ff\u0000'
    const pairs = near.flatMap((from) => near.map((length) => [from, length] as const))
    const list = pairs.map(([from, length]) =>
      Buffer.from(expected(text, from, length), 'latin1')
        .toString('hex')
        .toUpperCase(),
    )
    const of = "unhex('C3A4FF00')"
    const written = pairs.map(([from, length]) => `hex(substring(${of}, ${from}, ${length}))`)
    const columns = pairs.map(([from, length]) => `hex(substring(${of}, materialize(${from}), materialize(${length})))`)
    for (const calls of [written, columns]) await haveRows({ [`SELECT [${calls.join(', ')}]`]: [[list]] })
    await haveRows({
      [`SELECT hex(substring(${of}, -1)), hex(substring(${of}, materialize(-1))), hex(substring(${of}, materialize(0)))`]:
        [['00', '00', '']],
    })
  })

  test('substringUTF8 counts the length from the first character', () =>
    haveRows({
      "SELECT [substringUTF8('hällo', -7, 1), substringUTF8('hällo', -7, 3), substringUTF8('hällo', -7, -6), substringUTF8('hällo', -4, -2), substringUTF8('hällo', 2, -2)]":
        [[['h', 'häl', 'h', 'äl', 'äl']]],
      "SELECT arrayMap(p -> [substringUTF8('hällo', p, 1), substringUTF8('hällo', p, -6), substringUTF8('hällo', p, -3)], [-7, -6, -5, -3, 0, 1])":
        [
          [
            [
              ['h', 'h', 'häll'],
              ['h', '', 'häl'],
              ['h', '', 'hä'],
              ['l', '', ''],
              ['', '', ''],
              ['h', '', 'hä'],
            ],
          ],
        ],
    }))
})
