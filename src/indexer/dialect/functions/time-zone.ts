/** Names in lower case, in which case they do not differ: the listed ones, and others that were found to be valid. Invalid ones are not kept. */
let known: Set<string> | undefined

/** Whether a name is that of a time zone: `Europe/Berlin`, `UTC`. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+/-]{0,40}$/.test(name)) return false
  const folded = name.toLowerCase()
  known ??= new Set(Intl.supportedValuesOf('timeZone').map((each) => each.toLowerCase()))
  if (known.has(folded)) return true
  try {
    // Takes a tenth of a millisecond, and a statement may name thousands of zones.
    new Intl.DateTimeFormat('en', { timeZone: name })
  } catch {
    return false
  }
  known.add(folded)
  return true
}
