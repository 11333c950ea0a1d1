import type { Compilation } from '../compilation.ts'
import { type Value, value } from '../value.ts'

/** The arrays of arrayJoin in one SELECT: each becomes rows by a lateral join, once for equal expressions. */
export class ArrayRows {
  readonly #compilation: Compilation
  readonly #columns = new Map<string, Value>()
  readonly #joins = { beforeGroups: '', afterGroups: '' }

  constructor(compilation: Compilation) {
    this.#compilation = compilation
  }

  /** The lateral joins to append to the source of the rows, and to the groups. */
  get joins(): { readonly beforeGroups: string; readonly afterGroups: string } {
    return this.#joins
  }

  /** The column of the elements of an array. */
  elementOf(array: Value, key: string, joinedTo: 'beforeGroups' | 'afterGroups'): Value {
    const known = this.#columns.get(key)
    if (known !== undefined) return known
    const alias = this.#compilation.freshName('lateral')
    this.#joins[joinedTo] += ` CROSS JOIN LATERAL (SELECT unnest(${array.sql}) AS c1) AS ${alias}`
    const column = value(`${alias}.c1`, array.type.kind === 'array' ? array.type.of : array.type)
    this.#columns.set(key, column)
    return column
  }
}
