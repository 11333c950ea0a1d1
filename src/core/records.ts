/** A record with a value for each name. */
export function recordOf<Name extends string, Value>(
  names: readonly Name[],
  valueOf: (name: Name, at: number) => Value,
): Record<Name, Value> {
  return Object.fromEntries(names.map((name, at) => [name, valueOf(name, at)])) as Record<Name, Value>
}

/** For the code that owns an object whose fields are read-only to all others. */
export type Writable<T> = { -readonly [Name in keyof T]: T[Name] }
