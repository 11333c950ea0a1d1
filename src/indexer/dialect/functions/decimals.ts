import { asInt, decimalOf, duckType, type Type } from '../types.ts'
import { constantText, numberSql, plainSql, type Value, value } from '../value.ts'

/** Decimals are whole numbers with a scale: digits after it are cut off, where the engine would round. */

export type DecimalType = Extract<Type, { kind: 'decimal' }>

/** A number or a text as a decimal. */
export function decimalSql(given: Value, type: DecimalType, cast: 'CAST' | 'TRY_CAST' = 'CAST'): string {
  return `${cast}(${cutSql(given, type.scale)} AS ${duckType(type)})`
}

function cutSql(given: Value, scale: number): string {
  switch (given.type.kind) {
    case 'float':
      return `trunc(${given.sql} * CAST(${10 ** scale} AS DOUBLE)) / CAST(${10 ** scale} AS DOUBLE)`
    case 'string': {
      const text = given.isBytes === true ? `decode(${given.sql})` : given.sql
      const mayBeExponential = /e/i.test(constantText(given) ?? 'e')
      return cutText(mayBeExponential ? withoutExponent(text) : text, scale)
    }
    case 'decimal':
      return given.type.scale <= scale ? given.sql : cutText(`CAST(${given.sql} AS VARCHAR)`, scale)
    default:
      return plainSql(given)
  }
}

/** More zeros than a decimal has digits. */
const ZEROS_MAX = 80
const EXPONENTIAL = '^[+-]?(\\d+\\.?\\d*|\\.\\d+)[eE][+-]?0*\\d{1,9}$'
const PARTS = '^\\+?(-?)(\\d*)\\.?(\\d*)[eE]\\+?(-?\\d+)$'

/** A number with an exponent is written without one, digit for digit: the engine would round it, or refuse it for its zeros. */
function withoutExponent(text: string): string {
  const part = (group: number): string => `regexp_extract(t_, '${PARTS}', ${group})`
  const [sign, whole, fraction] = [part(1), part(2), part(3)]
  const places = `greatest(-${ZEROS_MAX} - strlen(${whole}), least(${ZEROS_MAX} + strlen(${fraction}), CAST(${part(4)} AS INTEGER)))`
  const zeros = (count: string): string => `lpad('', CAST(greatest(0, ${count}) AS INTEGER), '0')`
  const digits = `${zeros(`-${places}`)} || ${whole} || ${fraction} || ${zeros(places)}`
  const before = `strlen(${whole}) + greatest(0, ${places})`
  const written = `${sign} || left(${digits}, ${before}) || '.' || substring(${digits}, ${before} + 1)`
  return `list_extract(list_transform([${text}], lambda t_: CASE WHEN regexp_matches(t_, '${EXPONENTIAL}') THEN ${written} ELSE t_ END), 1)`
}

function cutText(text: string, scale: number): string {
  return `regexp_replace(${text}, '^([+-]?\\d*\\.\\d{${scale}})\\d+$', '\\1')`
}

/** A text without the digits after the scale. */
export function cutDigits(text: string, scale: number): string {
  return /^[+-]?\d*\.\d+$/.test(text) ? text.slice(0, text.indexOf('.') + 1 + scale) : text
}

/**
 * A decimal rounded to some digits in one direction, or undefined where the type has no such digit. The engine rounds decimals exactly to the nearest
 * number only, so one unit of the last digit is added or taken where that was the wrong direction.
 */
export function roundDecimal(
  mode: 'floor' | 'ceil' | 'trunc',
  {
    sql,
    digits,
    type: { precision, scale },
  }: { readonly sql: string; readonly digits: number; readonly type: DecimalType },
): string | undefined {
  if (digits >= scale) return sql
  if (digits === 0) return `${mode}(${sql})`
  if (-digits >= precision - scale) return undefined
  const unit =
    digits > 0
      ? `CAST('0.${'1'.padStart(digits, '0')}' AS DECIMAL(${digits + 1}, ${digits}))`
      : `CAST(${10n ** BigInt(-digits)} AS DECIMAL(${1 - digits}, 0))`
  const nearest = `round(${sql}, ${digits})`
  const down = `(${nearest} - CASE WHEN ${nearest} > ${sql} THEN ${unit} ELSE 0 END)`
  const up = `(${nearest} + CASE WHEN ${nearest} < ${sql} THEN ${unit} ELSE 0 END)`
  if (mode === 'trunc') return `(CASE WHEN ${sql} < 0 THEN ${up} ELSE ${down} END)`
  return mode === 'floor' ? down : up
}

/** A quotient with the scale of the dividend; of a whole number with that of the divisor. */
export function divideDecimals(a: Value, b: Value): Value {
  const [p, q] = [decimalOf(a.type), decimalOf(b.type)]
  const type = quotientType(a.type, b.type)
  const factor = 10n ** BigInt(type.scale - p.scale + q.scale)
  const quotient = `(${unscaled(a)} * CAST(${factor} AS HUGEINT) // ${unscaled(b)})`
  const sql = `CAST(${scaledDown(quotient, type.scale)} AS ${duckType(type)})`
  return value(
    `(CASE WHEN ${numberSql(b)} = 0 THEN error('sluice ILLEGAL_DIVISION: Division by zero') ELSE ${sql} END)`,
    type,
  )
}

/** A whole number with the point before its last digits. With an exponent in its place the engine would count the digits before that one. */
function scaledDown(sql: string, scale: number): string {
  if (scale === 0) return sql
  const padded = `regexp_replace(CAST(${sql} AS VARCHAR), '(\\d+)$', '${'0'.repeat(scale)}\\1')`
  return `regexp_replace(${padded}, '(\\d{${scale}})$', '.\\1')`
}

/** The type of a quotient: the size of the larger decimal, with all digits that this size has. */
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
