import { asInt, decimalOf, duckType, type Type } from '../types.ts'
import { numberSql, plainSql, type Value, value } from '../value.ts'

/** Decimals are whole numbers with a scale: digits after it are cut off, where the engine would round. */

export type DecimalType = Extract<Type, { kind: 'decimal' }>

/** A number or a text as a decimal. */
export function decimalSql(given: Value, type: DecimalType, cast: 'CAST' | 'TRY_CAST' = 'CAST'): string {
  return `${cast}(${cutSql(given, type, cast)} AS ${duckType(type)})`
}

function cutSql(given: Value, { precision, scale }: DecimalType, cast: 'CAST' | 'TRY_CAST'): string {
  switch (given.type.kind) {
    case 'float':
      return `trunc(${given.sql} * CAST(${10 ** scale} AS DOUBLE)) / CAST(${10 ** scale} AS DOUBLE)`
    case 'string': {
      const text = given.isBytes === true ? `decode(${given.sql})` : given.sql
      // A number with an exponent is written without one first, with more digits than are kept.
      const digitsMax = Math.min(37, Math.max(38 - (precision - scale), scale + 10))
      const digits = `(CASE WHEN regexp_matches(${text}, '[eE]') THEN CAST(${cast}(${text} AS DECIMAL(38, ${digitsMax})) AS VARCHAR) ELSE ${text} END)`
      return cutText(digits, scale)
    }
    case 'decimal':
      return given.type.scale <= scale ? given.sql : cutText(`CAST(${given.sql} AS VARCHAR)`, scale)
    default:
      return plainSql(given)
  }
}

function cutText(text: string, scale: number): string {
  return `regexp_replace(${text}, '^([+-]?\\d*\\.\\d{${scale}})\\d+$', '\\1')`
}

/** A text without the digits after the scale. */
export function cutDigits(text: string, scale: number): string {
  return /^[+-]?\d*\.\d+$/.test(text) ? text.slice(0, text.indexOf('.') + 1 + scale) : text
}

/** A quotient with the scale of the dividend; of a whole number with that of the divisor. */
export function divideDecimals(a: Value, b: Value): Value {
  const [p, q] = [decimalOf(a.type), decimalOf(b.type)]
  const type = quotientType(a.type, b.type)
  const factor = 10n ** BigInt(type.scale - p.scale + q.scale)
  const quotient = `(${unscaled(a)} * CAST(${factor} AS HUGEINT) // ${unscaled(b)})`
  const sql = `CAST(CAST(${quotient} AS VARCHAR) || 'e-${type.scale}' AS ${duckType(type)})`
  return value(
    `(CASE WHEN ${numberSql(b)} = 0 THEN error('sluice ILLEGAL_DIVISION: Division by zero') ELSE ${sql} END)`,
    type,
  )
}

/** Of two decimals the size of the larger one, with all digits that this size has. */
function quotientType(a: Type, b: Type): DecimalType {
  if (a.kind !== 'decimal') return { kind: 'decimal', ...digitsOf(b) }
  if (b.kind !== 'decimal') return { kind: 'decimal', ...digitsOf(a) }
  const digits = Math.max(a.precision, b.precision)
  return { kind: 'decimal', precision: digits <= 9 ? 9 : digits <= 18 ? 18 : 38, scale: a.scale }
}

function digitsOf(type: Type): { readonly precision: number; readonly scale: number } {
  const { precision, scale } = decimalOf(type)
  return { precision, scale }
}

/** All digits as a whole number. */
function unscaled(given: Value): string {
  if (asInt(given.type) !== undefined) return `CAST(${numberSql(given)} AS HUGEINT)`
  return `CAST(replace(CAST(${given.sql} AS VARCHAR), '.', '') AS HUGEINT)`
}
