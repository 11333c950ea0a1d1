/** A value or a promise of it: most calls need no I/O and are decided synchronously. */
export type Soon<Value> = Value | Promise<Value>

export function after<From, To>(value: Soon<From>, make: (value: From) => Soon<To>): Soon<To> {
  return value instanceof Promise ? value.then(make) : make(value)
}
