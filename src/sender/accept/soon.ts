/** A value that is there at once where nothing has to be waited for: most transactions are decided without a turn of the loop. */
export type Soon<Value> = Value | Promise<Value>

export function after<From, To>(value: Soon<From>, make: (value: From) => Soon<To>): Soon<To> {
  return value instanceof Promise ? value.then(make) : make(value)
}
