import { QueryError } from '../../query/error.ts'
import { foldName } from '../../query/sql-tokens.ts'
import { compile } from '../compile-expression.ts'
import type { Context } from '../context.ts'
import type { Expression } from '../syntax.ts'
import { constantNumber } from '../value.ts'

/** The operators that a count may have; the numbers are those of doubles, of which only whole ones are taken. */
const OPERATORS: ReadonlyMap<string, (a: number, b: number) => number> = new Map([
  ['plus', (a, b) => a + b],
  ['minus', (a, b) => a - b],
  ['multiply', (a, b) => a * b],
  ['divide', (a, b) => a / b],
  ['modulo', (a, b) => a % b],
  ['intdiv', (a, b) => Math.trunc(a / b)],
])

/** The number of rows of LIMIT or OFFSET: a constant, or a calculation with constants. */
export function rowCount(expression: Expression, context: Context): number {
  const count = constantOf(expression, context)
  if (count === undefined || !Number.isSafeInteger(count) || count < 0)
    throw new QueryError(
      'INVALID_LIMIT_EXPRESSION',
      `LIMIT and OFFSET take a whole number, at position ${expression.at}.`,
    )
  return count
}

function constantOf(expression: Expression, context: Context): number | undefined {
  if (expression.kind === 'parameter') return context.compilation.numberParameter(expression.name, expression.at)
  const operator =
    expression.kind === 'call' && expression.args.length === 2 && OPERATORS.get(foldName(expression.name))
  if (!operator) return exact(constantNumber(compile(expression, context)))
  const [a, b] = expression.args.map((each) => constantOf(each, context))
  return a === undefined || b === undefined ? undefined : exact(operator(a, b))
}

/** Larger numbers are rounded ones. */
function exact(count: number | undefined): number | undefined {
  return count !== undefined && Math.abs(count) <= Number.MAX_SAFE_INTEGER ? count : undefined
}
