import type { Expression } from '../syntax.ts'
import type { Value } from '../value.ts'

type Lambdas = ReadonlyMap<string, Value>
type Keys = WeakMap<Expression, string>
/** What is known while certain aliases are being resolved, in their order. */
type Level = { readonly keys: WeakMap<Lambdas, Keys>; readonly inside: Map<string, Level> }

/**
 * Aliases that are being resolved: inside of its own definition an alias is a column. What an expression means depends on them, so they also hold the
 * keys that are known of expressions.
 */
export class Resolving {
  readonly #names = new Set<string>()
  #level: Level = { keys: new WeakMap(), inside: new Map() }

  has(alias: string): boolean {
    return this.#names.has(alias)
  }

  run<Result>(alias: string, inner: () => Result): Result {
    if (this.#names.has(alias)) return inner()
    const outer = this.#level
    const level = outer.inside.get(alias) ?? { keys: new WeakMap(), inside: new Map() }
    outer.inside.set(alias, level)
    this.#names.add(alias)
    this.#level = level
    try {
      return inner()
    } finally {
      this.#level = outer
      this.#names.delete(alias)
    }
  }

  /** Keys of expressions, while these are the parameters of the lambdas around them. */
  keysOf(lambdas: Lambdas): Keys {
    const known = this.#level.keys.get(lambdas)
    if (known !== undefined) return known
    const made: Keys = new WeakMap()
    this.#level.keys.set(lambdas, made)
    return made
  }
}
