import { JsonScanner } from '../../solana/json/scan.ts'

/**
 * One text for all params that every node reads alike: no spaces, members sorted by name, strings with the fewest escapes, numbers as
 * written. Undefined for text with a duplicate member at any depth, which parsers read differently, and for text nested deeper than
 * `depthMax`. Shared work is keyed by this text, and the same text is forwarded: equal keys are equal bytes on the wire.
 */
export function canonicalJson(text: string, depthMax: number): string | undefined {
  const scan = new JsonScanner(text, depthMax)
  const canonical = writeValue(scan, text)
  scan.expectEnd()
  return scan.fault === undefined ? canonical : undefined
}

/** The depth limit of the scanner bounds the recursion. */
function writeValue(scan: JsonScanner, text: string): string | undefined {
  scan.skipSpace()
  switch (scan.peek()) {
    case '{':
      return writeObject(scan, text)
    case '[':
      return writeArray(scan, text)
    default: {
      const from = scan.at
      scan.skipValue()
      if (scan.fault !== undefined) return undefined
      const raw = text.slice(from, scan.at)
      return raw.startsWith('"') ? JSON.stringify(JSON.parse(raw)) : raw
    }
  }
}

function writeObject(scan: JsonScanner, text: string): string | undefined {
  /** A Map, because `__proto__` is a name like any other. */
  const members = new Map<string, string>()
  let isCanonical = true
  scan.eachMember((name) => {
    const value = writeValue(scan, text)
    if (value === undefined || members.has(name)) isCanonical = false
    else members.set(name, value)
  })
  if (!isCanonical) return undefined
  const names = [...members.keys()].toSorted()
  return `{${names.map((name) => `${JSON.stringify(name)}:${members.get(name)}`).join(',')}}`
}

function writeArray(scan: JsonScanner, text: string): string | undefined {
  const elements: string[] = []
  let isCanonical = true
  scan.eachElement(() => {
    const value = writeValue(scan, text)
    if (value === undefined) isCanonical = false
    else elements.push(value)
    return 'go on'
  })
  return isCanonical ? `[${elements.join(',')}]` : undefined
}
