import type { TopAccesses } from '../../contract/stream-events.ts'

export type TopRow = {
  readonly key: string
  readonly address: string
  readonly slot: string | undefined
  readonly count: number
  /** Accesses from one report to the next, oldest first. */
  readonly steps: readonly number[]
  /** Ranks gained (positive) or lost since the first report after the last reset; undefined for a key that was not in it. */
  readonly ranksGained: number | undefined
}

export type TopBoard = {
  add(data: TopAccesses, atMs: number): void
  accounts(): readonly TopRow[]
  slots(): readonly TopRow[]
  /** When the service reset its counters, as far as this page has seen it. */
  resetAtMs(): number | undefined
  reports(): number
}

const STEPS_MAX = 24
const ROWS_MAX = 10

type Item = { key: string; address: string; slot: string | undefined; count: number }
type Known = { count: number; steps: number[] }

export function createTopBoard(): TopBoard {
  const accounts = createColumn()
  const slots = createColumn()
  let resetAtMs: number | undefined
  let reports = 0
  return {
    add(data, atMs) {
      reports += 1
      const wasReset = [
        accounts.add(data.account.map(({ key, count }) => ({ key, address: key, slot: undefined, count }))),
        slots.add(
          data.storage.map(({ key: [address, slot], count }) => ({ key: `${address} ${slot}`, address, slot, count })),
        ),
      ]
      if (wasReset.includes(true)) resetAtMs = atMs
    },
    accounts: accounts.rows,
    slots: slots.rows,
    resetAtMs: () => resetAtMs,
    reports: () => reports,
  }
}

function createColumn(): { add(items: readonly Item[]): boolean; rows(): readonly TopRow[] } {
  let known = new Map<string, Known>()
  let firstRanks = new Map<string, number>()
  let rows: readonly TopRow[] = []
  return {
    rows: () => rows,
    add(all) {
      const items = all.slice(0, ROWS_MAX)
      // Counts only grow between resets, so a lower count of a known key means a reset.
      const wasReset = items.some(({ key, count }) => count < (known.get(key)?.count ?? 0))
      if (wasReset || firstRanks.size === 0) firstRanks = new Map(items.map(({ key }, rank) => [key, rank]))
      const next = new Map<string, Known>()
      rows = items.map((item, rank) => {
        const before = known.get(item.key)
        const step = before === undefined ? undefined : wasReset ? item.count : item.count - before.count
        const steps = [...(before?.steps ?? []), ...(step === undefined ? [] : [step])].slice(-STEPS_MAX)
        next.set(item.key, { count: item.count, steps })
        const first = firstRanks.get(item.key)
        return { ...item, steps, ranksGained: first === undefined ? undefined : first - rank }
      })
      known = next
      return wasReset
    },
  }
}
