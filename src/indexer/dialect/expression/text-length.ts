import type { Expression } from '../syntax.ts'

/** Characters of the constant or name that an expression itself is, without its parts. */
export function textLength(expression: Expression): number {
  switch (expression.kind) {
    case 'number':
    case 'string':
      return expression.text.length
    case 'identifier':
      return expression.path.reduce((sum, { length }) => sum + length, 0)
    case 'call':
    case 'resolved':
    case 'alias':
      return expression.name.length
    case 'cast':
      return expression.type.length
    case 'parameter':
      return expression.name.length + expression.type.length
    default:
      return 0
  }
}
