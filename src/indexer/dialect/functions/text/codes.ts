import { asInt, type IntType, isNumber, type Type } from '../../types.ts'
import { bytesSql, constantText, numberSql, toText, type Value, value } from '../../value.ts'
import { resized } from '../cast.ts'
import { bound, type CallArguments, define, defineAll, type FunctionDefinition, stringValue } from '../definition.ts'
import { bytes, textArg } from './arguments.ts'

/** Texts in other writings: binary digits, base64 of URLs, escapes of URLs and XML, printf. */

/** Hexadecimal digits of a whole number, of a negative one those of all its bytes; undefined for another type. */
export function numberDigits(given: Value): string | undefined {
  const type = asInt(given.type)
  if (type === undefined) return undefined
  // The engine has the digits of 64 bits for all smaller types.
  const isNarrow = type.isSigned && type.bits < 64
  return `to_hex(${isNarrow ? `(CAST(${numberSql(given)} AS BIGINT) & ${2n ** BigInt(type.bits) - 1n})` : numberSql(given)})`
}

/** Binary digits of a number or of the bytes of a text, in whole bytes. */
function bin(input: CallArguments): Value {
  const given = input.arg(0)
  const digits = numberDigits(given) ?? `hex(${given.isBytes === true ? given.sql : textArg(input, 0)})`
  const even = `lpad(${digits}, CAST((length(${digits}) + 1) // 2 * 2 AS INTEGER), '0')`
  const nibbles = Array.from({ length: 16 }, (_, at) => `'${at.toString(2).padStart(4, '0')}'`)
  return stringValue(
    `array_to_string(list_transform(string_split(${even}, ''), lambda d_: list_extract([${nibbles.join(', ')}], strpos('0123456789ABCDEF', d_))), '')`,
  )
}

const XML: readonly (readonly [string, string])[] = [
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&apos;'],
]
const quoted = (part: string): string => `'${part.replaceAll("'", "''")}'`

/** A conversion of printf: a flag, a width up to 999, digits after the point, a letter. */
const CONVERSION = /%(?:[-+#]?0?(?:[1-9]\d{0,2})?(?:\.\d{1,2})?[dsfeEgGxXou]|%)/g

/** `printf('%05d', x)`: the engine's own printf takes the same patterns of numbers and texts. */
function printf(input: CallArguments): Value {
  const format = constantText(input.arg(0))
  if (format === undefined) throw input.fail('takes a constant pattern')
  const found = [...format.matchAll(CONVERSION)].map(([all]) => all).filter((all) => all !== '%%')
  if (format.replaceAll(CONVERSION, '').includes('%') || found.length !== input.args.length - 1)
    throw input.fail('takes a pattern of %d, %s, %f, %e, %g, %x, %o and one argument for each')
  const args = found.map((all, at) => {
    const letter = all.at(-1) ?? ''
    const given = input.arg(at + 1)
    if (letter === 's') return toText(given)
    const type = 'feEgG'.includes(letter) ? 'DOUBLE' : 'BIGINT'
    if (type === 'BIGINT' && asInt(given.type) === undefined)
      throw input.wrongType(`takes a whole number for %${letter}`)
    return `CAST(${numberSql(given)} AS ${type})`
  })
  return stringValue(`printf(${[quoted(format.replaceAll('%u', '%d')), ...args].join(', ')})`)
}

/** Seconds of the units of formatReadableTimeDelta, as ClickHouse has them: a year of 365 days, a month of 30.5. */
const DELTA_UNITS: readonly (readonly [string, number])[] = [
  ['year', 31_536_000],
  ['month', 2_635_200],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
  ['second', 1],
]

/** `1 hour, 1 minute and 40 seconds`. */
function timeDelta(input: CallArguments): Value {
  if (!isNumber(input.arg(0).type)) throw input.wrongType('takes a number')
  const seconds = `CAST(floor(${numberSql(input.arg(0))}) AS BIGINT)`
  const parts = (rest: string): string[] =>
    DELTA_UNITS.map(([name, size], at) => {
      const before = DELTA_UNITS.slice(0, at).reduce((sql, [, each]) => `(${sql} % ${each})`, rest)
      const count = `(${before} // ${size})`
      return `CASE WHEN ${count} > 0 THEN concat(${count}, ' ${name}', CASE WHEN ${count} = 1 THEN '' ELSE 's' END) END`
    })
  const joined = (all: string): string =>
    `CASE len(${all}) WHEN 0 THEN '0 seconds' WHEN 1 THEN list_extract(${all}, 1) ELSE concat(array_to_string(list_slice(${all}, 1, len(${all}) - 1), ', '), ' and ', list_extract(${all}, -1)) END`
  const negative = "error('sluice: formatReadableTimeDelta takes no negative time')"
  return stringValue(
    bound(input, seconds, (rest) => {
      const list = `list_filter([${parts(rest).join(', ')}], lambda p_: p_ IS NOT NULL)`
      return `CASE WHEN ${rest} < 0 THEN ${negative} ELSE ${bound(input, list, joined)} END`
    }),
  )
}

const urlAlphabet = (sql: string): string => `rtrim(replace(replace(${sql}, '+', '-'), '/', '_'), '=')`

/** A whole number from the first bytes of a text or of another whole number, the lowest first. */
const reinterpret = (name: string, bits: number, isSigned: boolean): FunctionDefinition =>
  define(name, 1, (input) => {
    const given = input.arg(0)
    const type: IntType = { kind: 'int', bits, isSigned }
    const from = asInt(given.type)
    if (from !== undefined) {
      const own = { ...from, isSigned: false }
      return value(resized(resized(numberSql(given), from, own), own, type), type)
    }
    if (given.type.kind !== 'string') throw input.wrongType('takes a whole number or a text')
    const digits = `hex(${bytesSql(given)})`
    const count = bits / 8
    const reversed = Array.from(
      { length: count },
      (_, at) => `substring(rpad(left(${digits}, ${count * 2}), ${count * 2}, '0'), ${(count - 1 - at) * 2 + 1}, 2)`,
    )
    const unsigned: IntType = { kind: 'int', bits: 64, isSigned: false }
    return value(resized(`CAST('0x' || ${reversed.join(' || ')} AS UBIGINT)`, unsigned, type), type)
  })

export const TEXT_CODE_FUNCTIONS: readonly FunctionDefinition[] = [
  define('bin', 1, bin),
  ...[8, 16, 32, 64].flatMap((bits) => [
    reinterpret(`reinterpretAsUInt${bits}`, bits, false),
    reinterpret(`reinterpretAsInt${bits}`, bits, true),
  ]),
  define('formatReadableTimeDelta', 1, timeDelta),
  define('printf', [1, 100], printf),
  define('base64URLEncode', 1, (input) => stringValue(urlAlphabet(`to_base64(${bytesSql(input.arg(0))})`))),
  define('encodeURLComponent', 1, (input) => stringValue(`url_encode(${textArg(input, 0)})`)),
  define('decodeURLComponent', 1, (input) => stringValue(`url_decode(${textArg(input, 0)})`)),
  define('encodeXMLComponent', 1, (input) =>
    stringValue(XML.reduce((sql, [from, to]) => `replace(${sql}, ${quoted(from)}, '${to}')`, textArg(input, 0))),
  ),
  define('decodeXMLComponent', 1, (input) =>
    stringValue(
      XML.toReversed().reduce((sql, [from, to]) => `replace(${sql}, '${to}', ${quoted(from)})`, textArg(input, 0)),
    ),
  ),
  ...defineAll('toValidUTF8', 1, (input) => stringValue(textArg(input, 0))),
  define('reinterpretAsString', 1, (input) => {
    const given = input.arg(0)
    const type: Type = given.type
    const whole = asInt(type)
    if (whole === undefined) throw input.wrongType('takes a whole number')
    const digits = `right(lpad(to_hex(CAST(${numberSql(given)} AS ${whole.bits === 64 ? 'UBIGINT' : 'BIGINT'})), 16, '0'), ${whole.bits / 4})`
    const reversed = Array.from(
      { length: whole.bits / 8 },
      (_, at) => `substring(${digits}, ${whole.bits / 4 - 1 - at * 2}, 2)`,
    )
    return bytes(`unhex(regexp_replace(${reversed.join(' || ')}, '(00)+$', ''))`)
  }),
]
