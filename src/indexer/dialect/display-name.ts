import type { Expression, OrderItem, Window } from './syntax.ts'

/**
 * The text that ClickHouse gives a column without an alias, such as `plus(fee, 1)`. With `partName` the parts of the expression are named by it.
 */
export function displayName(expression: Expression, partName?: (part: Expression) => string): string {
  const name = partName ?? ((each: Expression): string => displayName(each))
  const list = (items: readonly Expression[]): string => items.map(name).join(', ')
  switch (expression.kind) {
    case 'number':
      return expression.text
    case 'string':
      return `'${expression.text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
    case 'null':
      return 'NULL'
    case 'bool':
      return expression.text
    case 'identifier':
      return expression.path.at(-1) ?? ''
    case 'resolved':
    case 'alias':
      return expression.name
    case 'lambda':
      return `lambda(tuple(${expression.names.join(', ')}), ${name(expression.body)})`
    case 'cast':
      return `CAST(${name(expression.of)}, '${expression.type.replaceAll("'", "\\'")}')`
    case 'in':
      return `${expression.isNot ? 'notIn' : 'in'}(${name(expression.value)}, ${'kind' in expression.set ? `_subquery${expression.at}` : inSet(expression.set.map(name))})`
    case 'subquery':
      return `_subquery${expression.at}`
    case 'parameter':
      return `{${expression.name}:${expression.type}}`
    case 'star':
      return '*'
    case 'call':
      return callName(expression, name, list)
  }
}

function inSet(names: readonly string[]): string {
  return names.length === 1 ? (names[0] ?? '') : `(${names.join(', ')})`
}

function callName(
  call: Extract<Expression, { kind: 'call' }>,
  name: (each: Expression) => string,
  list: (items: readonly Expression[]) => string,
): string {
  const isLiteral = call.args.every(({ kind }) => kind === 'number' || kind === 'string')
  if (call.name === 'array' && isLiteral) return `[${list(call.args)}]`
  if (call.name === 'tuple' && isLiteral) return `(${list(call.args)})`
  const isStar = call.name.toLowerCase() === 'count' && call.args[0]?.kind === 'star'
  const shown = call.isDistinct === true && call.name.toLowerCase() === 'count' ? 'countDistinct' : call.name
  const parameters = call.parameters === undefined ? '' : `(${list(call.parameters)})`
  const filter = call.filter === undefined ? '' : ` FILTER(WHERE ${name(call.filter)})`
  return `${shown}${call.isDistinct === true && shown !== 'countDistinct' ? 'Distinct' : ''}${parameters}(${isStar ? '' : list(call.args)})${filter}${overName(call.over, name, list)}`
}

function overName(
  over: Window | string | undefined,
  name: (each: Expression) => string,
  list: (items: readonly Expression[]) => string,
): string {
  if (over === undefined) return ''
  if (typeof over === 'string') return ` OVER ${over}`
  const partition = over.partition.length === 0 ? '' : `PARTITION BY ${list(over.partition)}`
  const order =
    over.order.length === 0
      ? ''
      : `ORDER BY ${over.order.map((item: OrderItem) => `${name(item.of)} ${item.isDescending ? 'DESC' : 'ASC'}`).join(', ')}`
  const bound = ({ kind, offset }: { kind: string; offset?: Expression | undefined }): string =>
    `${offset === undefined ? '' : `${name(offset)} `}${kind}`
  const frame =
    over.frame === undefined ? '' : `${over.frame.mode} BETWEEN ${bound(over.frame.from)} AND ${bound(over.frame.to)}`
  return ` OVER (${[over.base ?? '', partition, order, frame].filter((part) => part !== '').join(' ')})`
}
