import { asInt } from '../../types.ts'
import { numberSql, type Value } from '../../value.ts'
import { bound, type CallArguments, define, defineAll, type FunctionDefinition, uint64Value } from '../definition.ts'
import { textArg } from './arguments.ts'

/** Where a text begins in another one, from 1; 0 where it does not occur. */

/** In bytes. */
export const bytePosition = (of: string, part: string): string =>
  `(CASE WHEN strpos(${of}, ${part}) = 0 THEN 0 ELSE strlen(left(${of}, strpos(${of}, ${part}) - 1)) + 1 END)`

/** The rest of a text from this byte on. Bytes of a character that begins before it are left out: no text begins there. */
const restFromByte = (of: string, start: string): string =>
  `decode(unhex(regexp_replace(substring(hex(${of}), ${start} * 2 - 1), '^([89AB].)+', '')))`

type Unit = 'bytes' | 'characters'
const find = (of: string, part: string, unit: Unit): string =>
  unit === 'bytes' ? bytePosition(of, part) : `strpos(${of}, ${part})`

function position(input: CallArguments, of: string, part: string, unit: Unit): Value {
  if (input.args.length < 3) return uint64Value(find(of, part, unit))
  const { type } = input.arg(2)
  if (type.kind !== 'nothing' && asInt(type)?.isSigned !== false)
    throw input.wrongType('takes an unsigned number as argument 3')
  return uint64Value(
    bound(input, of, (text) => bound(input, part, (wanted) => positionFrom(input, text, wanted, unit))),
  )
}

/** From a byte or character on; an empty text is found at the start itself. */
function positionFrom(input: CallArguments, of: string, part: string, unit: Unit): string {
  const count = (text: string): string => `${unit === 'bytes' ? 'strlen' : 'length'}(${text})`
  // Behind the end there is nothing, however far. NULL stays NULL, which `greatest` would leave out.
  const start = bound(
    input,
    `CAST(${numberSql(input.arg(2))} AS HUGEINT)`,
    (n) => `CASE WHEN ${n} < 1 THEN 1 WHEN ${n} > ${count(of)} + 1 THEN ${count(of)} + 2 ELSE ${n} END`,
  )
  return bound(input, `CAST(${start} AS BIGINT)`, (from) => {
    const empty = `${from} * CAST(${from} <= ${count(of)} + 1 AS INTEGER)`
    const found = bound(input, unit === 'bytes' ? restFromByte(of, from) : `substring(${of}, ${from})`, (rest) => {
      const at = find(rest, part, unit)
      return `CASE WHEN ${at} = 0 THEN 0 ELSE ${at} + ${count(of)} - ${count(rest)} END`
    })
    return `CASE WHEN ${part} = '' THEN ${empty} ELSE ${found} END`
  })
}

export const POSITION_FUNCTIONS: readonly FunctionDefinition[] = [
  ...defineAll('position strpos instr', [2, 3], (input) =>
    position(input, textArg(input, 0), textArg(input, 1), 'bytes'),
  ),
  define('positionUTF8', [2, 3], (input) => position(input, textArg(input, 0), textArg(input, 1), 'characters')),
  define('locate', [2, 3], (input) => position(input, textArg(input, 1), textArg(input, 0), 'bytes')),
  define('positionCaseInsensitive', [2, 3], (input) =>
    position(input, `lower(${textArg(input, 0)})`, `lower(${textArg(input, 1)})`, 'bytes'),
  ),
]
