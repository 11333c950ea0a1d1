import type { Context } from '../context.ts'
import { displayName } from '../display-name.ts'
import { lookUpName } from '../scope.ts'
import type { Expression, Identifier } from '../syntax.ts'
import { textLength } from './text-length.ts'

/**
 * A short text that identifies an expression within its statement: aliases are replaced by what they stand for, columns by their SQL, and the parts of an
 * expression by their own keys. Each expression is visited once, so the work does not grow with its depth.
 */
export function expressionKey(expression: Expression, context: Context): string {
  // A constant is no step of its own: a list may have thousands.
  if (expression.kind === 'number' || expression.kind === 'string') return context.compilation.constantKey(expression)
  const known = context.scope.resolving.keysOf(context.lambdas)
  const found = known.get(expression)
  if (found !== undefined) return found
  context.compilation.countStep()
  context.compilation.countText(textLength(expression))
  const key = newKey(expression, context)
  known.set(expression, key)
  return key
}

function newKey(expression: Expression, context: Context): string {
  const { compilation, scope } = context
  if (expression.kind === 'alias')
    return scope.resolving.run(expression.name, () => expressionKey(expression.of, context))
  if (expression.kind === 'identifier') return nameKey(expression, context)
  if (expression.kind === 'resolved') return compilation.shortText(expression.value.sql)
  return compilation.shortText(displayName(expression, (part) => expressionKey(part, context)))
}

function nameKey(identifier: Identifier, context: Context): string {
  const { compilation, scope, lambdas } = context
  const [first = ''] = identifier.path
  const parameter = identifier.path.length === 1 ? lambdas.get(first) : undefined
  if (parameter !== undefined) return compilation.shortText(parameter.sql)
  const found = lookUpName(scope, identifier)
  if ('missing' in found) return compilation.shortText(identifier.path.join('.'))
  if ('column' in found) return compilation.shortText(found.column.value.sql)
  return scope.resolving.run(found.alias, () => expressionKey(found.of, context))
}
