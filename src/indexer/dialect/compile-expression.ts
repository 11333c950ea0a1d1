import { QueryError, type QueryErrorName } from '../query/error.ts'
import { foldName, shownName } from '../query/sql-tokens.ts'
import { compileAggregate, compileWindowCall } from './compile-aggregate.ts'
import type { Context } from './context.ts'
import { expressionKey } from './expression/key.ts'
import { numberConstant } from './expression/number-constant.ts'
import { textLength } from './expression/text-length.ts'
import { aggregateNamed, functionNotOffered, scalarNamed } from './function-list.ts'
import { WINDOW_FUNCTIONS } from './functions/aggregates.ts'
import { LAMBDA_FUNCTIONS } from './functions/arrays.ts'
import { castValue } from './functions/cast.ts'
import { type CallArguments, withNulls } from './functions/definition.ts'
import { listContains, sameTuples } from './functions/sets.ts'
import { comparable, NULL_VALUE } from './functions/values.ts'
import { parseType } from './parse-type.ts'
import { type Compiled, findName } from './scope.ts'
import type { Call, Expression, Identifier, Query } from './syntax.ts'
import { BOOL, nullable, type Type, typeSize, UINT64, UNKNOWN, zoneOf } from './types.ts'
import { condition, constantText, isAnyNullable, localSql, plainSql, textConstant, type Value, value } from './value.ts'

/** Planning lambdas inside each other grows steeply, and cannot be interrupted. */
const LAMBDAS_MAX = 5

export function compile(expression: Expression, context: Context): Value {
  const { compilation } = context
  compilation.countStep()
  compilation.countText(textLength(expression))
  const result = groupKey(expression, context) ?? compileKind(expression, context)
  compilation.checkLength(result.sql)
  compilation.countEntries(typeSize(result.type))
  compilation.checkZone(result.type)
  return result
}

function groupKey(expression: Expression, context: Context): Value | undefined {
  if (context.grouped === undefined || expression.kind === 'number' || expression.kind === 'string') return undefined
  return context.grouped.key(expressionKey(expression, context))
}

function compileKind(expression: Expression, context: Context): Value {
  switch (expression.kind) {
    case 'number':
      return context.compilation.constant(expression, numberConstant)
    case 'string':
      return context.compilation.constant(expression, textConstant)
    case 'null':
      return NULL_VALUE
    case 'bool':
      return { sql: expression.text, type: BOOL, constant: expression.text === 'true', isConstant: true }
    case 'identifier':
      return compileName(expression, context)
    case 'resolved':
      if (context.grouped !== undefined) throw notGrouped(expression.name, expression.at)
      return expression.value
    case 'alias':
      return context.scope.resolving.run(expression.name, () => compile(expression.of, context))
    case 'cast': {
      const given = compile(expression.of, context)
      // What is taken apart is written beside each of its elements.
      context.compilation.countWritten(given.sql.length * (typeSize(given.type) - 1))
      return withNulls(castValue(given, parseType(expression.type), failOf('CAST', expression.at)), [])
    }
    case 'parameter':
      return context.compilation.parameter(expression.name, expression.type)
    case 'in':
      return compileIn(expression, context)
    case 'subquery':
      return compileSubquery(expression, context)
    case 'call':
      return compileCall(expression, context)
    case 'lambda':
      throw new QueryError(
        'BAD_ARGUMENTS',
        `The lambda at position ${expression.at} stands only as the first argument of a function of arrays that takes one.`,
      )
    case 'star':
      throw new QueryError(
        'SYNTAX_ERROR',
        `Syntax error at position ${expression.at}: * stands alone or inside of count(*).`,
      )
  }
}

function notGrouped(name: string, at: number): QueryError {
  return new QueryError(
    'NOT_AN_AGGREGATE',
    `Column ${shownName(name)} at position ${at} is neither under an aggregate function nor in GROUP BY.`,
  )
}

function compileName(identifier: Identifier, context: Context): Value {
  const { compilation, scope, lambdas, grouped } = context
  const [first = '', ...rest] = identifier.path
  const parameter = lambdas.get(first)
  if (parameter !== undefined) return rest.reduce((of, field) => elementOf(of, field, identifier.at), parameter)
  const found = findName(scope, identifier, !compilation.isTrial)
  if ('column' in found) {
    if (grouped !== undefined && found.isOuter !== true) throw notGrouped(found.column.name, identifier.at)
    return found.column.value
  }
  return scope.resolving.run(found.alias, () => compile(found.of, context))
}

function elementOf(of: Value, field: string, at: number): Value {
  const place = of.type.kind === 'tuple' ? (of.type.names?.indexOf(field) ?? -1) : -1
  const type = of.type.kind === 'tuple' ? of.type.items[place] : undefined
  if (type === undefined)
    throw new QueryError('UNKNOWN_IDENTIFIER', `Unknown element ${shownName(field)} at position ${at}.`)
  return value(`struct_extract(${of.sql}, '${place + 1}')`, type)
}

function compileLambda(expression: Extract<Expression, { kind: 'lambda' }>, context: Context): Value {
  if (context.lambdaDepth >= LAMBDAS_MAX)
    throw new QueryError(
      'TOO_DEEP_AST',
      `Lambdas are nested too deeply at position ${expression.at}. Maximum: ${LAMBDAS_MAX} levels (lambda_nesting).`,
    )
  const lambda = (parameters: readonly Value[]): Value => {
    context.compilation.countEntries(context.lambdas.size + expression.names.length)
    const lambdas = new Map(context.lambdas)
    for (const [at, name] of expression.names.entries()) {
      const given = parameters[at]
      if (given === undefined)
        throw new QueryError(
          'BAD_ARGUMENTS',
          `The lambda at position ${expression.at} has more parameters than there are arrays.`,
        )
      lambdas.set(name, given)
    }
    const inner =
      context.grouped === undefined
        ? undefined
        : { ...context.grouped.inner, lambdas: new Map([...context.grouped.inner.lambdas, ...lambdas]) }
    const grouped = context.grouped === undefined || inner === undefined ? undefined : { ...context.grouped, inner }
    return compile(expression.body, { ...context, lambdas, grouped, lambdaDepth: context.lambdaDepth + 1 })
  }
  return { sql: '', type: UNKNOWN, lambda, lambdaNames: expression.names }
}

function failOf(name: string, at: number, type: QueryErrorName = 'BAD_ARGUMENTS'): (reason: string) => QueryError {
  return (reason) => new QueryError(type, `Function ${shownName(name)} at position ${at} ${reason}.`)
}

/** The error for a number of arguments that a function does not take. */
function wrongCount({ name, at }: Pick<Call, 'name' | 'at'>, min: number, max: number, given: number): QueryError {
  const taken = min === max ? String(min) : `${min} to ${max}`
  return failOf(name, at, 'NUMBER_OF_ARGUMENTS_DOESNT_MATCH')(`takes ${taken} arguments, not ${given}`)
}

function inputOf(call: Pick<Call, 'name' | 'at'>, args: readonly Value[], { compilation }: Context): CallArguments {
  const fail = failOf(call.name, call.at)
  // Functions take a tuple apart, and write it beside each of its elements.
  for (const { sql, type } of args) compilation.countWritten(sql.length * (typeSize(type) - 1))
  return {
    name: call.name,
    args,
    at: call.at,
    fail,
    outOfBound: failOf(call.name, call.at, 'ARGUMENT_OUT_OF_BOUND'),
    noCommonType: failOf(call.name, call.at, 'NO_COMMON_TYPE'),
    wrongType: failOf(call.name, call.at, 'ILLEGAL_TYPE_OF_ARGUMENT'),
    freshName: () => compilation.freshName('lambdaParameter'),
    countCopies: (sql, copies) => compilation.countWritten(sql.length * copies),
    arg(index) {
      const given = args[index]
      if (given === undefined)
        throw failOf(call.name, call.at, 'NUMBER_OF_ARGUMENTS_DOESNT_MATCH')(`takes an argument ${index + 1}`)
      return given
    },
  }
}

function compileCall(call: Call, context: Context): Value {
  if (call.over !== undefined) return compileWindowCall(call, context, { compile, expressionKey, inputOf, wrongCount })
  const lower = foldName(call.name)
  if (lower === 'arrayjoin' || lower === 'unnest') return compileArrayJoin(call, context)
  if (lower === 'in' || lower === 'notin') {
    const [of, set] = call.args
    if (of === undefined || set === undefined) throw failOf(call.name, call.at)('takes a value and a set')
    const items = set.kind === 'call' && (set.name === 'tuple' || set.name === 'array') ? set.args : [set]
    return compileIn({ kind: 'in', value: of, isNot: lower === 'notin', set: items, at: call.at }, context)
  }
  if (lower === 'grouping') return compileGrouping(call, context)
  const scalar = scalarNamed(call.name)
  if (scalar === undefined) {
    const aggregate = aggregateNamed(call.name)
    if (aggregate !== undefined)
      return compileAggregate(call, aggregate, context, { compile, expressionKey, inputOf, wrongCount })
    if (WINDOW_FUNCTIONS.has(lower)) throw failOf(call.name, call.at)('needs OVER')
    const own = context.scope.aliases.get(call.name)
    if (own?.kind === 'lambda') return compileOwnFunction(call, own, context)
    throw functionNotOffered(call.name, call.at)
  }
  if (call.parameters !== undefined || call.isDistinct === true || call.filter !== undefined)
    throw failOf(call.name, call.at)('is not an aggregate function')
  const args = call.args.map((each, at) =>
    each.kind === 'lambda' && at === 0 && LAMBDA_FUNCTIONS.has(lower)
      ? compileLambda(each, context)
      : compile(each, context),
  )
  const input = inputOf(call, args, context)
  if (args.length < scalar.argsMin || args.length > scalar.argsMax)
    throw wrongCount(call, scalar.argsMin, scalar.argsMax, args.length)
  const compiled = scalar.compile(input)
  const values = args.filter((each) => each.lambda === undefined)
  const result = scalar.passesNull ? withNulls(compiled, values) : compiled
  return {
    ...result,
    type: lowCardinality(result.type, values, scalar.keepsLowCardinality),
    isConstant: result.isConstant ?? values.every((each) => each.isConstant === true),
  }
}

/** Which keys a subtotal leaves out, one bit for each, the last key in the lowest bit. */
function compileGrouping(call: Call, context: Context): Value {
  const { grouped } = context
  const keys = call.args.map((each) => grouped?.keySql(expressionKey(each, context)))
  if (grouped === undefined || keys.length === 0 || keys.includes(undefined))
    throw failOf(call.name, call.at)('takes keys of GROUP BY')
  for (const key of keys) context.compilation.checkLength(key ?? '')
  return grouped.aggregate(expressionKey(call, context), () =>
    value(`CAST(grouping(${keys.join(', ')}) AS UBIGINT)`, UINT64),
  )
}

/** A lambda of WITH that is called by its name: `WITH x -> x * 2 AS twice SELECT twice(fee)`. */
function compileOwnFunction(call: Call, own: Extract<Expression, { kind: 'lambda' }>, context: Context): Value {
  if (call.args.length !== own.names.length)
    throw wrongCount(call, own.names.length, own.names.length, call.args.length)
  const args = call.args.map((each) => compile(each, context))
  return (compileLambda(own, context).lambda as NonNullable<Value['lambda']>)(args)
}

/** LowCardinality stays when it is the only argument that is not constant. */
function lowCardinality(type: Type, args: readonly Value[], isKept: boolean): Type {
  if (!isKept) return type
  const varying = args.filter((each) => each.isConstant !== true)
  const isLow = varying.length === 1 && varying[0]?.type.isLowCardinality === true
  const canBe =
    type.kind === 'string' ||
    type.kind === 'int' ||
    type.kind === 'float' ||
    type.kind === 'date' ||
    type.kind === 'datetime'
  return isLow && canBe
    ? { ...type, isLowCardinality: true }
    : type.isLowCardinality === true
      ? { ...type, isLowCardinality: false }
      : type
}

function compileArrayJoin(call: Call, context: Context): Value {
  const [of, ...rest] = call.args
  if (of === undefined || rest.length > 0) throw failOf(call.name, call.at)('takes one array')
  const array = compile(of, context)
  if (array.type.kind !== 'array') throw failOf(call.name, call.at)('takes an array')
  return context.rowsOf(array, expressionKey(call, context))
}

/** A scalar subquery: NULL without a row, a tuple of several columns. */
function compileSubquery({ query, isExists, at }: Extract<Expression, { kind: 'subquery' }>, context: Context): Value {
  const { sql, columns } = context.compilation.compileQuery(query, context.scope, context.grouped === undefined)
  if (isExists) return condition(`EXISTS (${sql})`)
  const [only, ...others] = columns
  if (only === undefined) throw new QueryError('BAD_ARGUMENTS', `The subquery at position ${at} has no columns.`)
  const name = context.compilation.freshName('subquery')
  if (others.length === 0)
    return {
      ...value(`(SELECT ${name}.o1 FROM (${sql}) AS ${name})`, nullable({ ...only.type, isLowCardinality: false })),
      isConstant: true,
    }
  const fields = columns.map((_, index) => `"${index + 1}" := ${name}.o${index + 1}`)
  return {
    ...value(`(SELECT struct_pack(${fields.join(', ')}) FROM (${sql}) AS ${name})`, {
      kind: 'tuple',
      items: columns.map(({ type }) => type),
    }),
    isConstant: true,
  }
}

function compileIn({ value: of, isNot, set, at }: Extract<Expression, { kind: 'in' }>, context: Context): Value {
  const left = compile(of, context)
  const not = isNot ? 'NOT ' : ''
  const isLow = left.type.isLowCardinality === true
  const result = (sql: string): Value => {
    const made = condition(sql, isAnyNullable([left]) && left.type.kind !== 'unknown')
    return isLow ? { ...made, type: { ...made.type, isLowCardinality: true } } : made
  }
  if ('kind' in set) return result(`(${inSubquery(left, set, not, context, at)})`)
  // Each value is compared with the text or the tuple on the left.
  context.compilation.countText((constantText(left)?.length ?? 0) * set.length)
  context.compilation.countWritten(left.sql.length * (typeSize(left.type) - 1) * set.length)
  const given = set.map((each) => compile(each, context))
  // The parentheses around a single tuple do not count: `(a, b) IN ((1, 2))`.
  const isOneTuple =
    left.type.kind === 'tuple' &&
    left.type.items.length === given.length &&
    given.some(({ type }) => type.kind !== 'tuple' && type.kind !== 'unknown')
  const items = isOneTuple ? [compile({ kind: 'call', name: 'tuple', args: set, at }, context)] : given
  const [only] = items
  // A set in a variable: `x IN array`.
  if (items.length === 1 && only?.type.kind === 'array' && left.type.kind !== 'array')
    return result(`(${not}${listContains(only, left)})`)
  if (only === undefined) return result(String(isNot))
  if (left.type.kind === 'tuple' && items.some(({ type }) => type.kind !== 'tuple' && type.kind !== 'unknown'))
    throw new QueryError(
      'INCORRECT_ELEMENT_OF_SET',
      `IN at position ${at} compares a tuple with values that are not tuples; write (…, …) around the elements of each.`,
    )
  // A date is not converted, so an item of its set counts with the time in the zone of the item.
  const isLocal = (type: Type): boolean => left.type.kind === 'date' && zoneOf(type) !== undefined
  const shown = items.map((each) =>
    each.type.kind === 'nothing' ? 'NULL' : isLocal(each.type) ? localSql(each) : comparable(each, left)[0],
  )
  const subject = left.type.kind === 'tuple' ? comparable(left, only)[0] : plainSql(left)
  const sql = `(${subject} ${not}IN (${shown.join(', ')}))`
  if (!isAnyNullable(items)) return result(sql)
  // ClickHouse ignores NULL in a set (transform_null_in = 0); in the engine it makes the result NULL.
  const known = `coalesce(${sql}, ${isNot})`
  return result(isAnyNullable([left]) ? `(CASE WHEN ${plainSql(left)} IS NULL THEN NULL ELSE ${known} END)` : known)
}

function inSubquery(left: Value, query: Query, not: string, { compilation, scope }: Context, at: number): string {
  const { sql, columns } = compilation.compileQuery(query, scope)
  const name = compilation.freshName('subquery')
  if (left.type.kind === 'tuple') {
    if (left.type.items.length !== columns.length)
      throw new QueryError(
        'NUMBER_OF_COLUMNS_DOESNT_MATCH',
        `IN at position ${at} compares ${left.type.items.length} columns with ${columns.length}.`,
      )
    const found = columns.map(({ type }, index) => value(`${name}.o${index + 1}`, type))
    const [subject, item] = sameTuples(left.sql, left.type.items, found)
    // NULL is found nowhere.
    const known = found.filter((each) => isAnyNullable([each])).map((each) => `${each.sql} IS NOT NULL`)
    const where = known.length === 0 ? '' : ` WHERE ${known.join(' AND ')}`
    return `${subject} ${not}IN (SELECT ${item} FROM (${sql}) AS ${name}${where})`
  }
  if (columns.length !== 1)
    throw new QueryError(
      'NUMBER_OF_COLUMNS_DOESNT_MATCH',
      `IN at position ${at} compares one column with ${columns.length}.`,
    )
  // NULL in a set is ignored, as above.
  const where = columns.some(({ type }) => isAnyNullable([value('', type)])) ? ` WHERE ${name}.o1 IS NOT NULL` : ''
  const found = value(`${name}.o1`, (columns[0] as Compiled['columns'][number]).type)
  const [subject, item] = comparable(left, found)
  return `${subject} ${not}IN (SELECT ${item} FROM (${sql}) AS ${name}${where})`
}
