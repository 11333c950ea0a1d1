import { LIMIT_LABELS, type NumberLimit } from '../contract/limits.ts'
import type { AccountRecord } from './wire.ts'

export type LimitUse = {
  readonly name: string
  readonly label: string
  /** Null is unlimited. */
  readonly max: number | null
  /** Undefined where nothing is in use of it at a time. */
  readonly used?: number | undefined
}

const NUMBERS = (Object.keys(LIMIT_LABELS) as (keyof typeof LIMIT_LABELS)[]).filter(
  (name): name is NumberLimit => name !== 'methodPerSecond',
)

/** The limits of the plan in the order of the contract, with what is used of them now. */
export function limitUse({ limits, month, open }: Pick<AccountRecord, 'limits' | 'month' | 'open'>): LimitUse[] {
  return NUMBERS.flatMap((name): LimitUse[] => {
    const max = limits[name]
    if (max !== null && typeof max !== 'number') return []
    const used = name === 'unitsPerMonth' ? month.used : open[name]
    return [{ name, label: LIMIT_LABELS[name], max, used }]
  })
}
