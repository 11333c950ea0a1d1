import { createAddressSet } from '../net/client-address.ts'

/** Which of the allowed sources an address belongs to, as its place in the list; -1 for none. */
export type SourceFilter = {
  /** An IPv4 address as a number, most significant byte first. */
  ofV4(address: number): number
  ofText(address: string): number
  /** Answers remembered now. */
  remembered(): number
}

const SOURCES_MAX = 64
/** Answers remembered of each form. A flood from made-up addresses fills it, and it begins anew. */
const KNOWN_MAX = 4096

export function createSourceFilter(entries: readonly string[]): SourceFilter {
  const sets = entries.slice(0, SOURCES_MAX).map((entry) => createAddressSet([entry]))
  const byText = new Map<string, number>()
  const byNumber = new Map<number, number>()

  function ofText(address: string): number {
    const known = byText.get(address)
    if (known !== undefined) return known
    if (byText.size >= KNOWN_MAX) byText.clear()
    const position = sets.findIndex((includes) => includes(address))
    byText.set(address, position)
    return position
  }
  return {
    ofText,
    remembered: () => byText.size + byNumber.size,
    ofV4(address) {
      const known = byNumber.get(address)
      if (known !== undefined) return known
      if (byNumber.size >= KNOWN_MAX) byNumber.clear()
      const position = ofText(`${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`)
      byNumber.set(address, position)
      return position
    },
  }
}
