import { QueryError } from '../../query/error.ts'
import { compile } from '../compile-expression.ts'
import type { Context } from '../context.ts'
import { guarded } from '../functions/numbers.ts'
import { intervalSql } from '../functions/time-arithmetic.ts'
import type { Expression, Fill, OrderItem } from '../syntax.ts'
import { asInt, defaultOf, duckType, isTime, type Type } from '../types.ts'
import { constantNumber, plainSql, type Value } from '../value.ts'
import type { Item } from './items.ts'

/** Most rows that WITH FILL adds. */
const FILL_ROWS_MAX = 100_000

/** An expression of ORDER BY, and the column of the inner SELECT that has its value. */
export type Ordered = { readonly item: OrderItem; readonly column: string }

/**
 * WITH FILL: adds a row with defaults for each step of the column that has none, for each group of rows that are equal in the columns of ORDER BY
 * before it (use_with_fill_by_sorting_prefix).
 */
export function fillSql(
  order: readonly Ordered[],
  items: readonly Item[],
  context: Context,
): ((rows: string) => string) | undefined {
  const found = filledColumn(order, items)
  if (found === undefined) return undefined
  const { column, prefix, type } = found
  const name = context.compilation.freshName('fill')
  const { low, high, steps } = stepsOf(found, context)
  const own = `CAST(v.c1 AS ${duckType(type)})`
  const before = new Set(prefix)
  const filled = items.map(({ value: { type: other } }, index) => {
    const each = `o${index + 1}`
    const rest = before.has(each) ? `v.${each}` : `CAST(${defaultOf(other)} AS ${duckType(other)})`
    return `${each === column ? own : rest} AS ${each}`
  })
  return (rows) => {
    const by = prefix.length === 0 ? '' : ` GROUP BY ${prefix.join(', ')}`
    const groups = `SELECT ${[...prefix, `${low} AS low`, `${high} AS high`].join(', ')} FROM ${name}${by}`
    const lists = `SELECT ${[...prefix, `${steps} AS steps`].join(', ')} FROM (${groups}) AS g`
    const values = `SELECT ${[...prefix, 'unnest(steps) AS c1'].join(', ')} FROM (${lists}) AS l`
    const same = [
      `CAST(${name}.${column} AS ${duckType(type)}) = ${own}`,
      ...prefix.map((each) => `${name}.${each} IS NOT DISTINCT FROM v.${each}`),
    ]
    const added = `SELECT ${filled.join(', ')} FROM (${values}) AS v WHERE NOT EXISTS (SELECT 1 FROM ${name} WHERE ${same.join(' AND ')})`
    const names = items.map((_, index) => `o${index + 1}`).join(', ')
    return `WITH ${name} AS MATERIALIZED (${rows}) SELECT ${names} FROM ${name} UNION ALL ${added}`
  }
}

type Filled = Ordered & {
  readonly fill: Fill
  /** The columns of ORDER BY before it. */
  readonly prefix: readonly string[]
  readonly type: Type
}

function filledColumn(order: readonly Ordered[], items: readonly Item[]): Filled | undefined {
  const [at, other] = order.flatMap(({ item }, index) => (item.fill === undefined ? [] : [index]))
  const found = at === undefined ? undefined : order[at]
  if (found?.item.fill === undefined) return undefined
  if (other !== undefined)
    throw new QueryError('NOT_IMPLEMENTED', 'Clause WITH FILL is offered for one column of ORDER BY.')
  const outside = order.find(({ column }) => !column.startsWith('o'))
  if (outside !== undefined)
    throw new QueryError(
      'NOT_IMPLEMENTED',
      `WITH FILL needs the columns of ORDER BY in the SELECT list: not so at position ${outside.item.of.at}.`,
    )
  const prefix = [...new Set(order.slice(0, at).map(({ column }) => column))]
  const type = items[Number(found.column.slice(1)) - 1]?.value.type
  if (type === undefined || prefix.includes(found.column))
    throw new QueryError(
      'NOT_IMPLEMENTED',
      `WITH FILL at position ${found.item.of.at} needs a column that ORDER BY has once.`,
    )
  if (!isTime(type) && asInt(type) === undefined)
    throw new QueryError(
      'NOT_IMPLEMENTED',
      `WITH FILL at position ${found.item.of.at} is offered for whole numbers, dates and times.`,
    )
  return { ...found, fill: found.item.fill, prefix, type }
}

/** The first and the last value of a group, and the values of the group `g` that has them, with those that are missing. */
function stepsOf(
  { item: { of, isDescending }, column, fill, type }: Filled,
  context: Context,
): { readonly low: string; readonly high: string; readonly steps: string } {
  const isTimed = isTime(type)
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
  const start = from === undefined ? 'g.low' : bound(from)
  // The last value is not part of the range.
  const end = to === undefined ? 'g.high' : bound(to)
  const width = isTimed
    ? `abs(epoch(${end}) - epoch(${start})) / ${Math.abs(count) * secondsOf(unit)}`
    : `abs(${end} - ${start}) / ${Math.abs(count)}`
  const steps = guarded(
    `range(${start}, ${end}, ${one})`,
    `sum(${width}) OVER () > ${FILL_ROWS_MAX}`,
    `WITH FILL adds at most ${FILL_ROWS_MAX} rows (fill_rows)`,
  )
  const [low, high] = isDescending ? ['max', 'min'] : ['min', 'max']
  return { low: `${low}(${own})`, high: `${high}(${own})`, steps }
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
