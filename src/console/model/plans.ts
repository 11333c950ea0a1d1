import type { MethodCost, PlanRecord } from '../client/wire.ts'
import { type LimitRow, limitRows, showLimit } from './limits.ts'

/** One limit in all plans, in the order of the plans. */
export type ComparedLimit = {
  readonly name: string
  readonly label: string
  readonly values: readonly string[]
}

/** The limits of plans side by side, in the order of the contract. A limit that a plan does not have is a dash. */
export function compareLimits(plans: readonly PlanRecord[]): ComparedLimit[] {
  const byPlan = plans.map(({ limits }) => limitRows(limits, {}))
  const all = new Map<string, LimitRow>()
  for (const row of byPlan.flat()) if (!all.has(row.name)) all.set(row.name, row)
  return [...all.values()].map(({ name, label }) => {
    const values = byPlan.map((rows) => {
      const found = rows.find((row) => row.name === name)
      return found === undefined ? '–' : showLimit(found.value)
    })
    return { name, label, values }
  })
}

export type CostGroup = { readonly cost: number; readonly methods: readonly string[] }

/** Methods by what they cost, the cheapest first. */
export function groupCosts(costs: readonly MethodCost[]): CostGroup[] {
  const groups = Map.groupBy(costs, ({ cost }) => cost)
  return [...groups]
    .toSorted(([a], [b]) => a - b)
    .map(([cost, members]) => ({ cost, methods: members.map(({ method }) => method).toSorted() }))
}
