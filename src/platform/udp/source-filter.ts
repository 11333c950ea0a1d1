import { createAddressSet } from '../net/client-address.ts'

/** Finds the allowed source of an address, as its index in the list; -1 for none. */
export type SourceFilter = {
  /** An IPv4 address as a number, most significant byte first. */
  ofV4(address: number): number
  ofText(address: string): number
  /** Cached results. */
  cached(): number
}

const SOURCES_MAX = 64
/** Cached results of each form. A cache that is full, as in a flood from forged addresses, is cleared. */
const CACHED_MAX = 4096

export function createSourceFilter(entries: readonly string[]): SourceFilter {
  const sets = entries.slice(0, SOURCES_MAX).map((entry) => createAddressSet([entry]))
  const byText = new Map<string, number>()
  const byNumber = new Map<number, number>()

  function ofText(address: string): number {
    const cached = byText.get(address)
    if (cached !== undefined) return cached
    if (byText.size >= CACHED_MAX) byText.clear()
    const index = sets.findIndex((includes) => includes(address))
    byText.set(address, index)
    return index
  }
  return {
    ofText,
    cached: () => byText.size + byNumber.size,
    ofV4(address) {
      const cached = byNumber.get(address)
      if (cached !== undefined) return cached
      if (byNumber.size >= CACHED_MAX) byNumber.clear()
      const index = ofText(`${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`)
      byNumber.set(address, index)
      return index
    },
  }
}
