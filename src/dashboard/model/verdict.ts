/** Reading guide of the specification: 90 and above, 70 to 90, below 70. */
export type Verdict = 'good' | 'fair' | 'poor' | 'none'

export function verdictOf(efficiencyPct: number | undefined): Verdict {
  if (efficiencyPct === undefined || !Number.isFinite(efficiencyPct)) return 'none'
  if (efficiencyPct >= 90) return 'good'
  return efficiencyPct >= 70 ? 'fair' : 'poor'
}

export const VERDICT_TEXT: Readonly<Record<Verdict, string>> = {
  good: 'excellent parallelization',
  fair: 'some waiting on conflicts',
  poor: 'much runs one after the other',
  none: 'no block yet',
}
