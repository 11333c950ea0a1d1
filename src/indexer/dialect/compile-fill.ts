import { QueryError } from '../query/error.ts'
import { compile } from './compile-expression.ts'
import type { Context } from './context.ts'
import { guarded } from './functions/numbers.ts'
import { intervalSql } from './functions/time-arithmetic.ts'
import type { Expression, OrderItem } from './syntax.ts'
import { asInt, defaultOf, duckType, isTime } from './types.ts'
import { constantNumber, plainSql, type Value } from './value.ts'

/** A column of the SELECT list. */
export type Item = {
  readonly expression: Expression
  readonly name: string
  readonly value: Value
  readonly text: string
}

/** Most rows that WITH FILL adds. */
const FILL_ROWS_MAX = 100_000

/** WITH FILL: adds a row with defaults for each step of the column that has none. */
export function fillSql(
  { of, fill, isDescending }: OrderItem,
  column: string,
  items: readonly Item[],
  context: Context,
): (rows: string) => string {
  const at = Number(column.slice(1)) - 1
  const item = column.startsWith('o') ? items[at] : undefined
  if (item === undefined || fill === undefined)
    throw new QueryError('NOT_IMPLEMENTED', `WITH FILL at position ${of.at} needs the column in the SELECT list.`)
  const { type } = item.value
  const isTimed = isTime(type)
  if (!isTimed && asInt(type) === undefined)
    throw new QueryError(
      'NOT_IMPLEMENTED',
      `WITH FILL at position ${of.at} is offered for whole numbers, dates and times.`,
    )
  const read = (each: Expression | undefined): Value | undefined =>
    each === undefined ? undefined : compile(each, context)
  const [from, to, step] = [read(fill.from), read(fill.to), read(fill.step)]
  const bound = (given: Value): string =>
    isTimed ? `CAST(${given.sql} AS TIMESTAMP)` : `CAST(${plainSql(given)} AS BIGINT)`
  const own = isTimed ? `CAST(${column} AS TIMESTAMP)` : `CAST(${column} AS BIGINT)`
  const count = step === undefined ? (isDescending ? -1 : 1) : constantNumber(step)
  if (count === undefined || count === 0 || !Number.isInteger(count))
    throw new QueryError(
      'BAD_ARGUMENTS',
      `STEP of WITH FILL at position ${of.at} is a whole number or an interval, not zero.`,
    )
  const unit = step?.type.kind === 'interval' ? step.type.unit : type.kind === 'date' ? 'Day' : 'Second'
  const one = isTimed ? intervalSql(unit, String(count)) : String(count)
  const name = context.statement.fresh('f')
  const [low, high] = isDescending ? ['max', 'min'] : ['min', 'max']
  const start = from === undefined ? `(SELECT ${low}(${own}) FROM ${name})` : bound(from)
  // The last value is not part of the range.
  const end = to === undefined ? `(SELECT ${high}(${own}) FROM ${name})` : bound(to)
  const width = isTimed
    ? `abs(epoch(${end}) - epoch(${start})) / ${Math.abs(count) * secondsOf(unit)}`
    : `abs(${end} - ${start}) / ${Math.abs(count)}`
  const steps = guarded(
    `range(${start}, ${end}, ${one})`,
    `${width} > ${FILL_ROWS_MAX}`,
    `WITH FILL adds at most ${FILL_ROWS_MAX} rows (fill_rows)`,
  )
  const filled = items.map((each, index) => {
    const sql =
      index === at
        ? `CAST(v.c1 AS ${duckType(type)})`
        : `CAST(${defaultOf(each.value.type)} AS ${duckType(each.value.type)})`
    return `${sql} AS o${index + 1}`
  })
  return (rows) => {
    const added = `SELECT ${filled.join(', ')} FROM (SELECT unnest(${steps}) AS c1) AS v WHERE CAST(v.c1 AS ${duckType(type)}) NOT IN (SELECT CAST(${column} AS ${duckType(type)}) FROM ${name})`
    const names = items.map((_, index) => `o${index + 1}`).join(', ')
    return `WITH ${name} AS MATERIALIZED (${rows}) SELECT ${names} FROM ${name} UNION ALL ${added}`
  }
}

const SECONDS: Readonly<Record<string, number>> = {
  Minute: 60,
  Hour: 3600,
  Day: 86_400,
  Week: 604_800,
  Month: 2_592_000,
  Quarter: 7_776_000,
  Year: 31_536_000,
}

function secondsOf(unit: string): number {
  return SECONDS[unit] ?? 1
}
