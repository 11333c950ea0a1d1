/** Values of one statement: far below the limits of the engines. Events of one turn of the event loop, on which the embedded engine runs. */
const VALUES_MAX = 200

/** As many values as one statement takes. */
export function* inParts<T>(values: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < values.length; at += VALUES_MAX) yield values.slice(at, at + VALUES_MAX)
}

/** The placeholders of the values in a statement. */
export function placeholders(values: readonly string[]): string {
  return values.map(() => '?').join(', ')
}
