import type { LiveRecord, OverviewRecord } from '../client/wire.ts'

/** What happened between two responses, per second; null where it is not known. */
export type LivePoint = {
  readonly atMs: number
  readonly calls: number | null
  readonly refused: number | null
  readonly transactions: number | null
  readonly landed: number | null
  readonly slots: number | null
  /** The lag of the node that is furthest behind. */
  readonly lagSlots: number | null
}

type Counts = 'calls' | 'refused' | 'transactions' | 'landed'

/** A quarter of an hour at the interval of the overview. */
const POINTS_MAX = 300

/** Figures of the process while the page is open, oldest first. */
export class LiveLog {
  #last: { readonly live: LiveRecord; readonly slot: number | null } | undefined
  #points: readonly LivePoint[] = []

  get points(): readonly LivePoint[] {
    return this.#points
  }

  add({ live, chain, nodes }: Pick<OverviewRecord, 'live' | 'chain' | 'nodes'>, nowMs: number): void {
    if (live === undefined) return
    const before = this.#last
    if (before?.live.at_ms === live.at_ms && before.live.pid === live.pid) return
    this.#last = { live, slot: chain.slot }
    // A restarted process counts from 0.
    const isSame = before !== undefined && before.live.pid === live.pid && before.live.at_ms < live.at_ms
    const seconds = isSame ? (live.at_ms - before.live.at_ms) / 1000 : 0
    const perSecond = (was: number | null | undefined, is: number | null): number | null =>
      !isSame || was == null || is === null ? null : Math.max(0, (is - was) / seconds)
    const rate = (name: Counts): number | null => perSecond(before?.live[name], live[name])
    const point: LivePoint = {
      atMs: nowMs,
      calls: rate('calls'),
      refused: rate('refused'),
      transactions: rate('transactions'),
      landed: rate('landed'),
      slots: perSecond(before?.slot, chain.slot),
      lagSlots: nodes.length === 0 ? null : Math.max(...nodes.map(({ lag_slots }) => lag_slots)),
    }
    this.#points = [...this.#points, point].slice(-POINTS_MAX)
  }
}

/** `1,204`, `12.3`, `0.4`: three digits are enough for a rate. */
export function showRate(perSecond: number | null | undefined): string {
  if (perSecond == null || !Number.isFinite(perSecond)) return '–'
  if (perSecond === 0) return '0'
  return perSecond.toLocaleString('en-US', { maximumFractionDigits: perSecond < 100 ? 1 : 0 })
}
