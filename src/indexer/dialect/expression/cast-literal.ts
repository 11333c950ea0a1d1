import type { Cast, Expression, Literal } from '../syntax.ts'

/** `0.29::Decimal(9, 2)`: a decimal is read from the text of the number, all other types from its value. */
export function castLiteral(literal: Literal, type: string, at: number): Cast {
  const isRead = /^(Nullable\()?Decimal/i.test(type) && !/^0[xb]/i.test(literal.text)
  const of: Literal = isRead ? { ...literal, kind: 'string', text: literal.text.replaceAll('_', '') } : literal
  return { kind: 'cast', of, type, at }
}

/** The same with a minus, which is part of the text; undefined where none is read. */
export function negativeLiteral(cast: Expression): Cast | undefined {
  if (cast.kind !== 'cast') return undefined
  if (cast.of.kind === 'string') return { ...cast, of: { ...cast.of, text: `-${cast.of.text}` } }
  const of = negativeLiteral(cast.of)
  return of === undefined ? undefined : { ...cast, of }
}
