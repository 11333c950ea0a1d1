import type { OrderItem } from './syntax.ts'
import type { Type } from './types.ts'
import { isAnyNullable, type Value } from './value.ts'

/** For the engine not a number (NaN) is equal to itself and above all other numbers; for ClickHouse it is neither, and sorted behind them. */

/** A comparison of two expressions, of which `a` and `b` are the values. */
export function compareSql(x: string, operator: string, y: string, [a, b]: readonly [Value, Value]): string {
  const plain = `${x} ${operator} ${y}`
  const [isFirst, isSecond] = [mayBeNaN(a), mayBeNaN(b)]
  const areBoth = isFirst && isSecond
  switch (operator) {
    case '>':
    case '>=':
      return isFirst ? `(${plain} AND ${isOther(x, y, b)})` : `(${plain})`
    case '<':
    case '<=':
      return isSecond ? `(${plain} AND ${isOther(y, x, a)})` : `(${plain})`
    case '=':
      return areBoth ? `(${plain} AND ${isOther(x, y, b)})` : `(${plain})`
    case '<>':
      return areBoth ? `(${plain} OR NOT ${isOther(x, y, b)})` : `(${plain})`
    case 'IS NOT DISTINCT FROM':
      return areBoth ? `(${plain} AND NOT coalesce(isnan(${x}), false))` : `(${plain})`
    case 'IS DISTINCT FROM':
      return areBoth ? `(${plain} OR coalesce(isnan(${x}), false))` : `(${plain})`
    default:
      return `(${plain})`
  }
}

/** The comparison as one operator, which is not true of NaN either: false or NULL. Undefined where it is none. */
export function matchSql(x: string, operator: string, y: string, [a, b]: readonly [Value, Value]): string | undefined {
  const [isFirst, isSecond] = [mayBeNaN(a), mayBeNaN(b)]
  switch (operator) {
    case '>':
    case '>=':
      return isFirst ? `(${withoutNaN(x)} ${operator} ${y})` : undefined
    case '<':
    case '<=':
      return isSecond ? `(${x} ${operator} ${withoutNaN(y)})` : undefined
    case '=':
      return isFirst && isSecond ? `(${withoutNaN(x)} = ${y})` : undefined
    case 'IS NOT DISTINCT FROM':
      // In lists NULL is equal to NULL.
      return isFirst && isSecond ? `((CASE WHEN isnan(${x}) THEN [] ELSE [${x}] END) = [${y}])` : undefined
    default:
      return undefined
  }
}

/** Whether the first is another number than NaN. Beside NULL it does not matter: the comparison stays NULL. */
function isOther(x: string, y: string, second: Value): string {
  return isAnyNullable([second]) ? `(NOT isnan(${x}) OR ${y} IS NULL)` : `(NOT isnan(${x}))`
}

function mayBeNaN({ type, constant }: Value): boolean {
  if (type.kind === 'string') return typeof constant === 'string' && /^[+-]?nan$/i.test(constant.trim())
  return type.kind === 'float' && typeof constant !== 'number' && typeof constant !== 'bigint'
}

/** An element of ORDER BY: values, then NaN, then NULL, or with NULLS FIRST the other way round. */
export function orderSql(
  column: string,
  type: Type,
  { isDescending, nulls }: Pick<OrderItem, 'isDescending' | 'nulls'>,
): string {
  const order = `${column} ${isDescending ? 'DESC' : 'ASC'} NULLS ${nulls}`
  // In the other two directions the place of the largest number is the right one.
  const isElsewhere = isDescending === (nulls === 'LAST')
  if (type.kind !== 'float' || !isElsewhere) return order
  return `isnan(${column}) ${nulls === 'LAST' ? 'ASC' : 'DESC'} NULLS ${nulls}, ${order}`
}

/** The number, or NULL in the place of NaN. */
export function withoutNaN(sql: string): string {
  return `(CASE WHEN isnan(${sql}) THEN NULL ELSE ${sql} END)`
}
