/** A value or a promise of it: most calls need no I/O and are decided synchronously. */
export type Awaitable<Value> = Value | Promise<Value>

/** Calls `map` at once when the value is there, so that a synchronous call stays synchronous. */
export function mapAwaitable<From, To>(value: Awaitable<From>, map: (value: From) => Awaitable<To>): Awaitable<To> {
  return value instanceof Promise ? value.then(map) : map(value)
}
