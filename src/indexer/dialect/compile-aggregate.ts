import { QueryError } from '../query/error.ts'
import { foldName } from '../query/sql-tokens.ts'
import type { Context } from './context.ts'
import { aggregateNamed, type FoundAggregate, functionNotOffered } from './function-list.ts'
import type { AggregateInput } from './functions/aggregates.ts'
import { WINDOW_FUNCTIONS } from './functions/aggregates.ts'
import { reduced } from './functions/array-reduce.ts'
import type { CallArguments } from './functions/definition.ts'
import { orderSql } from './not-a-number.ts'
import type { Bound, Call, Expression, Frame, Window } from './syntax.ts'
import { asInt, defaultOf, duckType, isTime, notNull, nullable, plain, type Type, UNKNOWN } from './types.ts'
import { conditionSql, constantNumber, convert, plainSql, type Value, value } from './value.ts'

/** The functions of the expression compiler that aggregates need; they are mutually recursive. */
export type Recursion = {
  compile(expression: Expression, context: Context): Value
  expressionKey(expression: Expression, context: Context): string
  inputOf(call: Pick<Call, 'name' | 'at'>, args: readonly Value[], context: Context): CallArguments
  wrongCount(call: Pick<Call, 'name' | 'at'>, min: number, max: number, given: number): QueryError
}

export function compileAggregate(call: Call, found: FoundAggregate, context: Context, recursion: Recursion): Value {
  const { grouped } = context
  if (grouped === undefined)
    throw new QueryError(
      'ILLEGAL_AGGREGATION',
      `Aggregate function ${call.name} at position ${call.at} is not allowed here: not in WHERE, and not inside of another aggregate function.`,
    )
  return grouped.aggregate(recursion.expressionKey(call, context), () =>
    aggregateValue(call, found, grouped.inner, recursion, { over: '', mayBeEmpty: grouped.mayBeEmpty }),
  )
}

type Place = { readonly over: string; readonly mayBeEmpty: boolean }

function aggregateValue(
  call: Call,
  { definition, combinators }: FoundAggregate,
  context: Context,
  recursion: Recursion,
  { over, mayBeEmpty }: Place,
): Value {
  const isStar = call.args[0]?.kind === 'star'
  let args = isStar ? [] : call.args.map((each) => recursion.compile(each, context))
  const conditions: string[] = []
  if (combinators.has('If')) {
    const condition = args.at(-1)
    if (condition === undefined) throw recursion.wrongCount(call, definition.argsMin + 1, definition.argsMax + 1, 0)
    conditions.push(conditionSql(condition))
    args = args.slice(0, -1)
  }
  if (call.filter !== undefined) conditions.push(conditionSql(recursion.compile(call.filter, context)))
  const parameters = (call.parameters ?? []).map((each) => recursion.compile(each, context))
  const input = recursion.inputOf(call, args, context)
  if (args.length < definition.argsMin || args.length > definition.argsMax)
    throw recursion.wrongCount(call, definition.argsMin, definition.argsMax, args.length)
  if (parameters.length > definition.parametersMax)
    throw input.fail(`takes at most ${definition.parametersMax} parameters`)
  const filter = conditions.length === 0 ? '' : ` FILTER (WHERE ${conditions.join(' AND ')})`
  const isDistinct = call.isDistinct === true || combinators.has('Distinct')
  if (isDistinct && definition.takesDistinct === false)
    throw input.fail('does not take DISTINCT; read from a subquery with SELECT DISTINCT')
  if (combinators.has('Array')) return overElements(call, definition.name, combinators, args, `${filter}${over}`)
  const aggregate: AggregateInput = {
    ...input,
    parameters,
    isDistinct,
    mayBeEmpty: (mayBeEmpty || conditions.length > 0) && !combinators.has('OrNull'),
    engine: (name, list, distinct = isDistinct) => `${name}(${distinct ? 'DISTINCT ' : ''}${list})${filter}${over}`,
  }
  const result = definition.compile(aggregate)
  const empty = `${aggregate.engine('count', '*', false)} = 0`
  // The average of no rows is not a number.
  if (combinators.has('OrDefault') && result.type.kind === 'float' && result.type.isNullable !== true)
    return value(`(CASE WHEN ${empty} THEN ${defaultOf(result.type)} ELSE ${plainSql(result)} END)`, result.type)
  if (!combinators.has('OrNull')) return result
  return value(`(CASE WHEN ${empty} THEN NULL ELSE ${plainSql(result)} END)`, nullable(result.type))
}

/** The ending -Array: the aggregate of the elements of all arrays. */
function overElements(
  { name, at, parameters, isDistinct }: Call,
  aggregate: string,
  combinators: ReadonlySet<string>,
  args: readonly Value[],
  rows: string,
): Value {
  const [array] = args
  if (isDistinct === true)
    throw new QueryError(
      'BAD_ARGUMENTS',
      `Function ${name} at position ${at} does not take DISTINCT with the ending -Array; use ARRAY JOIN.`,
    )
  const isPlain = parameters === undefined && [...combinators].every((each) => each === 'Array' || each === 'If')
  const all = array?.type.kind === 'array' && args.length === 1 && isPlain ? array.type.of : undefined
  const elements = `flatten(coalesce(list(${array?.sql ?? ''})${rows}, []))`
  const made = all === undefined ? undefined : reduced(aggregate, elements, plain(all))
  if (made === undefined)
    throw new QueryError(
      'UNKNOWN_FUNCTION',
      `Function ${name} is not offered, at position ${at}: not with the ending -Array; use ARRAY JOIN.`,
    )
  return made
}

/** A call with OVER. */
export function compileWindowCall(call: Call, context: Context, recursion: Recursion): Value {
  const window = resolveWindow(call.over as Window | string, context, call.at)
  const [first] = window.order
  const ordered = first === undefined ? undefined : recursion.compile(first.of, context).type
  const frame = frameOf(window.frame, context, recursion, ordered)
  const partition = window.partition.map((each) => plainSql(recursion.compile(each, context)))
  const isWide = ordered !== undefined && asInt(ordered) !== undefined && isRangeWithOffset(window.frame)
  const order = window.order.map((item) => {
    const given = recursion.compile(item.of, context)
    const sql = plainSql(given)
    // The engine computes the bounds of the frame in the type of the column: 0 - 1 would be out of the range of UInt64.
    const column = isWide ? `CAST(${sql} AS HUGEINT)` : sql
    // Such a frame has one column of the engine, too.
    return orderSql(column, isRangeWithOffset(window.frame) ? UNKNOWN : given.type, item)
  })
  const spec = [
    partition.length === 0 ? '' : `PARTITION BY ${partition.join(', ')}`,
    order.length === 0 ? '' : `ORDER BY ${order.join(', ')}`,
  ]
  const over = (frameText: string): string => ` OVER (${[...spec, frameText].filter((part) => part !== '').join(' ')})`
  const own = WINDOW_FUNCTIONS.get(foldName(call.name))
  if (own !== undefined) return ownWindow(call, own, { ...context }, recursion, { over, frame, window })
  const found = aggregateNamed(call.name)
  if (found === undefined) throw functionNotOffered(call.name, call.at)
  return aggregateValue(call, found, context, recursion, { over: over(frame), mayBeEmpty: frame !== '' })
}

type Own = { readonly engine: string; readonly type: Type | 'same' }
type Windowing = { over(frame: string): string; readonly frame: string; readonly window: Window }

function ownWindow(
  call: Call,
  { engine, type }: Own,
  context: Context,
  recursion: Recursion,
  { over, frame, window }: Windowing,
): Value {
  const args = call.args.map((each) => recursion.compile(each, context))
  const input = recursion.inputOf(call, args, context)
  if (type !== 'same') {
    const isNtile = engine === 'ntile'
    if (args.length !== (isNtile ? 1 : 0))
      throw input.fail(isNtile ? 'takes the number of groups' : 'takes no arguments')
    const list = args.map(({ sql }) => `CAST(${sql} AS BIGINT)`).join(', ')
    // A rank is one of the whole partition: the frame does not apply.
    return value(`CAST(${engine}(${list})${over('')} AS ${duckType(type)})`, type)
  }
  const of = input.arg(0)
  const result = plain(of.type)
  if (engine === 'nth_value')
    return value(
      filled(`nth_value(${plainSql(of)}, CAST(${input.arg(1).sql} AS BIGINT))${over(frame)}`, result),
      result,
    )
  const offset = args.length > 1 ? constantNumber(args[1]) : 1
  if (offset === undefined || !Number.isInteger(offset) || offset < 0)
    throw input.fail('takes a constant whole number as its offset')
  checkShiftFrame(call, window, offset)
  const fallback = args[2] === undefined ? defaultOf(result) : convert(args[2], result)
  const moved =
    result.isNullable === true
      ? `${engine}(${plainSql(of)}, ${offset}, ${fallback})${over('')}`
      : `coalesce(${engine}(${plainSql(of)}, ${offset})${over('')}, ${fallback})`
  return value(moved, result)
}

/** The engine moves within the whole partition: frames in which the row to move to may be missing are refused. */
function checkShiftFrame({ name, at }: Call, { frame, order }: Window, offset: number): void {
  const isWhole =
    frame === undefined
      ? order.length === 0
      : frame.from.kind === 'UNBOUNDED PRECEDING' && frame.to.kind === 'UNBOUNDED FOLLOWING'
  if (isWhole) return
  const offered: Readonly<Record<string, boolean>> = {
    lag: frame === undefined,
    lead: frame === undefined,
    laginframe: frame === undefined || (reaches(frame, 'from', offset) && reaches(frame, 'to', 0)),
    leadinframe: frame !== undefined && reaches(frame, 'to', offset) && reaches(frame, 'from', 0),
  }
  if (offered[foldName(name)] !== true)
    throw new QueryError(
      'NOT_IMPLEMENTED',
      `Function ${name} with this frame is not offered, at position ${at}; offered: ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING.`,
    )
}

/** Whether a frame contains the row that is `count` rows before (from) or after (to) the current one. */
function reaches({ mode, from, to }: Frame, side: 'from' | 'to', count: number): boolean {
  const { kind, offset } = side === 'from' ? from : to
  const away = side === 'from' ? 'PRECEDING' : 'FOLLOWING'
  if (kind === `UNBOUNDED ${away}`) return true
  if (kind === 'CURRENT ROW') return count === 0
  return mode === 'ROWS' && kind === away && offset?.kind === 'number' && Number(offset.text) >= count
}

function filled(sql: string, type: Type): string {
  return type.isNullable === true || type.kind === 'unknown' ? sql : `coalesce(${sql}, ${defaultOf(notNull(type))})`
}

function resolveWindow(over: Window | string, { scope }: Context, at: number): Window {
  if (typeof over !== 'string') {
    if (over.base === undefined) return over
    const base = named(over.base)
    return {
      partition: over.partition.length > 0 ? over.partition : base.partition,
      order: over.order.length > 0 ? over.order : base.order,
      frame: over.frame ?? base.frame,
    }
  }
  return named(over)
  function named(name: string): Window {
    const found = scope.windows.get(name)
    if (found === undefined || found.base !== undefined)
      throw new QueryError('BAD_ARGUMENTS', `Window ${name} at position ${at} is not defined.`)
    return found
  }
}

/** `RANGE BETWEEN 5 PRECEDING AND …`, which has one column in ORDER BY. */
function isRangeWithOffset(frame: Frame | undefined): boolean {
  return frame?.mode === 'RANGE' && (frame.from.offset ?? frame.to.offset) !== undefined
}

function frameOf(frame: Frame | undefined, context: Context, recursion: Recursion, ordered: Type | undefined): string {
  if (frame === undefined) return ''
  const bound = ({ kind, offset }: Bound): string => {
    if (offset === undefined) return kind
    const given = recursion.compile(offset, context)
    const count = given.type.kind === 'interval' ? undefined : constantNumber(given)
    if (count === undefined || !Number.isInteger(count) || count < 0)
      throw new QueryError(
        'BAD_ARGUMENTS',
        'The bounds of a window frame are whole numbers; over times they count seconds, over dates days.',
      )
    // A number of seconds before a time, of days before a date.
    if (frame.mode === 'RANGE' && ordered !== undefined && isTime(ordered))
      return `${ordered.kind === 'date' ? 'to_days' : 'to_seconds'}(${count}) ${kind}`
    return `${count} ${kind}`
  }
  return `${frame.mode} BETWEEN ${bound(frame.from)} AND ${bound(frame.to)}`
}
