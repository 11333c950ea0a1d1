import { arrayOf, asInt, duckType, type IntType, type Type, UINT64 } from '../types.ts'
import { numberSql, type Value, value } from '../value.ts'
import { resized } from './cast.ts'
import { type CallArguments, define, defineAll, type FunctionDefinition, uint8Value } from './definition.ts'

/** Bits of whole numbers: operators, shifts, rotation, tests and positions of single bits. */

function whole(input: CallArguments, at: number): IntType {
  const type = asInt(input.arg(at).type)
  if (type === undefined) throw input.wrongType('takes whole numbers')
  return type
}

/** The bits of a number without its sign. */
function unsigned(input: CallArguments, at: number): string {
  const { bits, isSigned } = whole(input, at)
  if (!isSigned) return `CAST(${numberSql(input.arg(at))} AS UHUGEINT)`
  // Without negative numbers, which have no unsigned form of the engine's largest type.
  if (bits > 64) return `CAST(${numberSql(input.arg(at))} AS UHUGEINT)`
  const mask = 2n ** BigInt(bits) - 1n
  return `CAST(CAST(${numberSql(input.arg(at))} AS HUGEINT) & CAST(${mask} AS HUGEINT) AS UHUGEINT)`
}

/** Both sides in the type of the result, as ClickHouse converts them: with the same lower bits. */
function bitwise(operator: '&' | '|' | 'xor', input: CallArguments): Value {
  const [x, y] = [whole(input, 0), whole(input, 1)]
  const type: IntType = { kind: 'int', bits: Math.max(x.bits, y.bits), isSigned: x.isSigned || y.isSigned }
  const a = resized(numberSql(input.arg(0)), x, type)
  const b = resized(numberSql(input.arg(1)), y, type)
  return value(operator === 'xor' ? `xor(${a}, ${b})` : `(${a} ${operator} ${b})`, type)
}

function shiftLeft(input: CallArguments): Value {
  const type = whole(input, 0)
  const mask = `CAST(${2n ** BigInt(type.bits) - 1n} AS UHUGEINT)`
  const kept = `((${unsigned(input, 0)} << CAST(${numberSql(input.arg(1))} AS UHUGEINT)) & ${mask})`
  return value(
    type.isSigned ? resized(kept, { ...type, isSigned: false }, type) : `CAST(${kept} AS ${duckType(type)})`,
    type,
  )
}

/** A negative number keeps its sign. */
function shiftRight(input: CallArguments): Value {
  const type = whole(input, 0)
  const wide = type.isSigned ? 'HUGEINT' : 'UHUGEINT'
  const [x, count] = [0, 1].map((at) => `CAST(${numberSql(input.arg(at))} AS ${wide})`)
  return value(`CAST(CASE WHEN ${count} > ${type.bits} THEN 0 ELSE ${x} >> ${count} END AS ${duckType(type)})`, type)
}

function rotate(input: CallArguments, isLeft: boolean): Value {
  const type = whole(input, 0)
  if (type.isSigned) throw input.wrongType('takes an unsigned number')
  const [x, count] = [unsigned(input, 0), `CAST(${numberSql(input.arg(1))} % ${type.bits} AS UHUGEINT)`]
  const rest = `(CAST(${type.bits} AS UHUGEINT) - ${count})`
  const [up, down] = isLeft ? [count, rest] : [rest, count]
  const mask = `CAST(${2n ** BigInt(type.bits) - 1n} AS UHUGEINT)`
  return value(`CAST(((${x} << ${up}) & ${mask}) | (${x} >> ${down}) AS ${duckType(type)})`, type)
}

/** Whether all, or any, of the bits at these positions are set. */
const tested = (name: string, isAll: boolean): FunctionDefinition =>
  define(name, [2, 65], (input) => {
    const x = unsigned(input, 0)
    const bits = input.args.slice(1).map((_, at) => {
      whole(input, at + 1)
      return `((${x} >> CAST(${numberSql(input.arg(at + 1))} AS UHUGEINT)) & CAST(1 AS UHUGEINT)) = 1`
    })
    return uint8Value(`(${bits.join(isAll ? ' AND ' : ' OR ')})`)
  })

/** The positions of the bits that are set, the lowest first. */
function positions(input: CallArguments, of: (position: string) => string, type: Type): Value {
  const { bits } = whole(input, 0)
  const x = unsigned(input, 0)
  return value(
    `list_transform(list_filter(range(0, ${bits}), lambda i_: ((${x} >> CAST(i_ AS UHUGEINT)) & CAST(1 AS UHUGEINT)) = 1), lambda i_: ${of('i_')})`,
    arrayOf(type),
  )
}

export const BIT_FUNCTIONS: readonly FunctionDefinition[] = [
  define('bitAnd', 2, (input) => bitwise('&', input)),
  define('bitOr', 2, (input) => bitwise('|', input)),
  define('bitXor', 2, (input) => bitwise('xor', input)),
  define('bitNot', 1, (input) => value(`(~${numberSql(input.arg(0))})`, whole(input, 0))),
  define('bitShiftLeft', 2, shiftLeft),
  define('bitShiftRight', 2, shiftRight),
  define('bitTest', 2, (input) =>
    uint8Value(`(${unsigned(input, 0)} >> CAST(${numberSql(input.arg(1))} AS UHUGEINT)) & CAST(1 AS UHUGEINT)`),
  ),
  define('bitCount', 1, (input) => uint8Value(`bit_count(${numberSql(input.arg(0))})`)),
  define('bitRotateLeft', 2, (input) => rotate(input, true)),
  define('bitRotateRight', 2, (input) => rotate(input, false)),
  tested('bitTestAll', true),
  tested('bitTestAny', false),
  define('bitHammingDistance', 2, (input) =>
    uint8Value(`bit_count(CAST(xor(${unsigned(input, 0)}, ${unsigned(input, 1)}) AS HUGEINT))`),
  ),
  ...defineAll('bitPositionsToArray', 1, (input) => positions(input, (at) => `CAST(${at} AS UBIGINT)`, UINT64)),
  define('bitmaskToArray', 1, (input) => {
    const type = whole(input, 0)
    return positions(input, (at) => `CAST(CAST(1 AS UHUGEINT) << CAST(${at} AS UHUGEINT) AS ${duckType(type)})`, type)
  }),
  define('byteSwap', 1, (input) => {
    const type = whole(input, 0)
    if (type.isSigned) throw input.wrongType('takes an unsigned number')
    const x = unsigned(input, 0)
    const count = type.bits / 8
    const parts = Array.from(
      { length: count },
      (_, at) =>
        `(((${x} >> CAST(${at * 8} AS UHUGEINT)) & CAST(255 AS UHUGEINT)) << CAST(${(count - 1 - at) * 8} AS UHUGEINT))`,
    )
    return value(`CAST(${parts.join(' | ')} AS ${duckType(type)})`, type)
  }),
]
