import { type Signal, signal } from '@preact/signals'
import { cleanName, isAddress } from '../../ui/safe-text.ts'

/** Names of contracts: those served by the operator, overridden by those of the user, which are stored in this browser. */
export type Labels = {
  readonly all: Signal<ReadonlyMap<string, string>>
  set(address: string, name: string): void
  /** Names from the service: an object from address to name. */
  addServed(names: unknown): void
}

const KEY = 'sluice-labels'
const LABELS_MAX = 500
const SERVED_MAX = 5000

export function createLabels(): Labels {
  let own = readKept()
  let served = new Map<string, string>()
  const all = signal<ReadonlyMap<string, string>>(own)
  const join = (): void => {
    all.value = new Map([...served, ...own])
  }
  return {
    all,
    addServed(names) {
      served = typeof names === 'object' && names !== null ? readNames(Object.entries(names), SERVED_MAX) : new Map()
      join()
    },
    set(address, name) {
      const next = new Map(own)
      next.delete(address)
      const cleaned = cleanName(name)
      if (cleaned !== '') next.set(address, cleaned)
      // At the limit the oldest label is dropped.
      for (const oldest of next.keys()) {
        if (next.size <= LABELS_MAX) break
        next.delete(oldest)
      }
      own = next
      join()
      try {
        localStorage.setItem(KEY, JSON.stringify([...next]))
      } catch {
        // Without storage the label lasts until the page is closed.
      }
    },
  }
}

/** Stored labels may have been written by any page of this origin, so they are untrusted. */
function readKept(): Map<string, string> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(kept) ? readNames(kept, LABELS_MAX) : new Map()
  } catch {
    return new Map()
  }
}

function readNames(entries: readonly unknown[], max: number): Map<string, string> {
  return new Map(
    entries.slice(0, max).flatMap((entry): [string, string][] => {
      if (!Array.isArray(entry)) return []
      const [address, name] = entry as unknown[]
      const cleaned = cleanName(name)
      return typeof address === 'string' && isAddress(address) && cleaned !== ''
        ? [[address.toLowerCase(), cleaned]]
        : []
    }),
  )
}
