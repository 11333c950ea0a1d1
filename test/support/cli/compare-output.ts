/** Output of two runs of a command without what differs between two stores: ids, secrets, times, ports, the author, widths of columns. */
export function createOutputMask() {
  const ids = new Map<string, string>()
  const idOf = (id: string) => {
    const known = ids.get(id) ?? `${id.slice(0, id.indexOf('_'))}#${ids.size}`
    ids.set(id, known)
    return known
  }
  return (text: string): string =>
    text
      .replaceAll(/\b(?:cus|sub|tok|idx|node|note|ref|adm)_[0-9a-z]{16}\b/g, idOf)
      .replaceAll(/\bsl[ac]_[0-9A-Za-z]{38}\b/g, 'TOKEN')
      .replaceAll(/\bsl[ac]_\S{0,3}[0-9A-Za-z]{4}\b/g, 'TOKEN-END')
      .replaceAll(/("(?:last4|password|created_by|username)": )"[^"]*"/g, '$1"*"')
      .replaceAll(/\bu_[0-9a-z]{12}\b/g, 'USER')
      .replaceAll(/\b[0-9A-Za-z]{32,44}\b/g, 'RANDOM')
      .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3}Z)?/g, 'TIME')
      .replaceAll(/127\.0\.0\.1:\d+/g, 'ADDRESS')
      .replaceAll(/ {2,}/g, '  ')
}

/** The names in a JSON text, without the values. */
export function shapeOf(json: string): unknown {
  const shape = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.slice(0, 1).map(shape)
    if (value === null || typeof value !== 'object') return typeof value === 'number' ? 'number' : typeof value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shape(inner)]))
  }
  return shape(JSON.parse(json))
}
