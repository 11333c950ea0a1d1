import { LIMIT_LABELS, type NumberLimit } from '../../contract/limits.ts'

export type LimitRow = {
  /** Its name on the wire: `units_per_second`. */
  readonly name: string
  readonly label: string
  readonly value: number | null
  readonly source: 'plan' | 'override'
}

const NUMBERS = (Object.keys(LIMIT_LABELS) as (keyof typeof LIMIT_LABELS)[]).filter(
  (name): name is NumberLimit => name !== 'methodPerSecond',
)
const ALWAYS_LIMITED: readonly NumberLimit[] = ['requestBytes', 'batchItems']

type WireLimits = Readonly<Record<string, unknown>>

/** The limits in effect with their source, in the order of the contract. */
export function limitRows(limits: WireLimits, overrides: WireLimits): LimitRow[] {
  return NUMBERS.flatMap((limit): LimitRow[] => {
    const name = wireName(limit)
    const value = limits[name]
    if (value !== null && typeof value !== 'number') return []
    const isOwn = Object.hasOwn(overrides, name)
    return [{ name, label: LIMIT_LABELS[limit], value, source: isOwn ? 'override' : 'plan' }]
  })
}

export type ParsedLimit =
  | { readonly ok: true; readonly value: number | null | 'plan' }
  | { readonly ok: false; readonly message: string }

/** A limit as typed: a whole number, `unlimited`, or nothing for that of the plan. */
export function parseLimit(name: string, text: string): ParsedLimit {
  const typed = text
    .trim()
    .replaceAll(/[\s,_]/g, '')
    .toLowerCase()
  if (typed === '' || typed === 'plan') return { ok: true, value: 'plan' }
  const mayBeUnlimited = !ALWAYS_LIMITED.some((limit) => wireName(limit) === name)
  if (typed === 'unlimited' && mayBeUnlimited) return { ok: true, value: null }
  const value = Number(typed)
  if (/^[1-9]\d*$/.test(typed) && Number.isSafeInteger(value)) return { ok: true, value }
  const also = mayBeUnlimited ? ', “unlimited”' : ''
  return { ok: false, message: `Write a whole number above zero${also}, or leave it empty for the value of the plan.` }
}

export function showLimit(value: number | null): string {
  return value === null ? 'unlimited' : value.toLocaleString('en-US')
}

function wireName(limit: string): string {
  return limit.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
