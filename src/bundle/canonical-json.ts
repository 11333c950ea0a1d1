/** A number that a double does not hold exactly keeps its text. */
export class ExactNumber {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** JSON as values; the text is known to be well-formed. */
export function parseExact(text: string): unknown {
  const reviver = (_name: string, value: unknown, context?: { source?: string }) =>
    typeof value === 'number' && !Number.isSafeInteger(value) ? new ExactNumber(context?.source ?? '') : value
  return JSON.parse(text, reviver)
}

/** One text for equal values: members in one order, lists as they are. It is only compared, never sent. */
export function canonicalJson(value: unknown): string {
  if (value instanceof ExactNumber) return value.text
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value ?? null)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(',')}}`
}
