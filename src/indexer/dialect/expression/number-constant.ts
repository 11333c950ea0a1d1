import { QueryError } from '../../query/error.ts'
import { duckType, FLOAT64, int } from '../types.ts'
import type { Value } from '../value.ts'

/** Digits of a whole number that is read exactly: more than 64 bits have, in every notation. A longer one is a Float64 whatever its last digits are. */
const EXACT_DIGITS_MAX = 80

/** Hexadecimal, whole and decimal numbers; a whole one has the smallest type that holds it. */
export function numberConstant(text: string, at: number): Value {
  const digits = text.replaceAll('_', '')
  if (digits.length <= EXACT_DIGITS_MAX && /^-?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)$/.test(digits)) {
    const number = digits.startsWith('-') ? -BigInt(digits.slice(1)) : BigInt(digits)
    const isNegative = number < 0n
    const bits = [8, 16, 32, 64].find((size) =>
      isNegative ? -number <= 2n ** BigInt(size - 1) : number < 2n ** BigInt(size),
    )
    if (bits === undefined)
      return { sql: `CAST('${number}' AS DOUBLE)`, type: FLOAT64, constant: Number(number), isConstant: true }
    const type = int(bits, isNegative)
    return { sql: `CAST(${number} AS ${duckType(type)})`, type, constant: number, isConstant: true }
  }
  // No limit or count can be one of these: their value stays unknown to the functions that read constants.
  if (/^-?(nan|inf)$/.test(digits))
    return { sql: `CAST('${digits.replace('-nan', 'nan')}' AS DOUBLE)`, type: FLOAT64, isConstant: true }
  // Number() reads a sign before decimal digits only.
  const number = digits.startsWith('-') ? -Number(digits.slice(1)) : Number(digits)
  if (!Number.isFinite(number))
    throw new QueryError('SYNTAX_ERROR', `Syntax error at position ${at}: a number is out of range.`)
  const shown = Object.is(number, -0) ? '-0' : String(number)
  return { sql: `CAST('${shown}' AS DOUBLE)`, type: FLOAT64, constant: number, isConstant: true }
}
