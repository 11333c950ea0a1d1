import { LIMIT_LABELS, type NumberLimit } from '../../contract/limits.ts'
import { numberLimitForm, parseMethodLimit, parseNumberLimit, printMethodLimit } from '../../contract/typed-limits.ts'

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

/** A limit as typed: a number, `unlimited`, or nothing for that of the plan. */
export function parseLimit(name: string, text: string): ParsedLimit {
  const typed = text
    .trim()
    .replaceAll(/[\s,_]/g, '')
    .toLowerCase()
  if (typed === '' || typed === 'plan') return { ok: true, value: 'plan' }
  const limit = NUMBERS.find((each) => wireName(each) === name)
  if (limit === undefined) return { ok: false, message: 'This limit is not known.' }
  const value = parseNumberLimit(limit, typed)
  if (value !== undefined) return { ok: true, value }
  const { number, isAlwaysLimited } = numberLimitForm(limit)
  const also = isAlwaysLimited ? '' : ', “unlimited”'
  return { ok: false, message: `Write ${number}${also}, or leave it empty for the value of the plan.` }
}

export function showLimit(value: number | null): string {
  return value === null ? 'unlimited' : value.toLocaleString('en-US')
}

type WireMethod = { readonly method: string; readonly cost?: number; readonly per_second?: number }

function methodsOf({ methods }: WireLimits): readonly WireMethod[] {
  return Array.isArray(methods) ? (methods as WireMethod[]) : []
}

/** Cost and rate of methods that have their own, with their source. */
export function methodRows(limits: WireLimits, overrides: WireLimits): LimitRow[] {
  const own = new Set(methodsOf(overrides).map(({ method }) => method))
  return methodsOf(limits).flatMap(({ method, cost, per_second: rate }): LimitRow[] => {
    const source = own.has(method) ? 'override' : 'plan'
    const row = (label: string, value: number | undefined) =>
      value === undefined ? [] : [{ name: `${method} ${label}`, label: `${method} ${label}`, value, source } as const]
    return [...row('calls per second', rate), ...row('units per call', cost)]
  })
}

/** The limits of methods that a subscription has of its own, as they are typed. */
export function showMethods(overrides: WireLimits): string {
  return methodsOf(overrides)
    .map(({ method, cost, per_second: perSecond }) => printMethodLimit(method, { cost, perSecond }))
    .join(', ')
}

/** What the body of a change has for the typed methods: those that are not typed any more are removed. */
export function parseMethods(text: string, overrides: WireLimits): readonly WireMethod[] | 'plan' | undefined {
  if (text.trim() === '') return 'plan'
  const parsed = text.split(',').map((each) => parseMethodLimit(each.trim()))
  const typed = parsed.filter((each) => each !== undefined)
  if (typed.length < parsed.length) return undefined
  const named = new Set(typed.map(({ method }) => method))
  const removed = methodsOf(overrides).filter(({ method }) => !named.has(method))
  return [
    ...typed.map(({ method, limit: { cost, perSecond } = {} }) => ({
      method,
      ...(cost === undefined ? {} : { cost }),
      ...(perSecond === undefined ? {} : { per_second: perSecond }),
    })),
    ...removed.map(({ method }) => ({ method })),
  ]
}

function wireName(limit: string): string {
  return limit.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
