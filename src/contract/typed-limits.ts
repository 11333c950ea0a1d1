import type { MethodLimit, NumberLimit } from './limits.ts'

/** Limits as a person types them, on the command line and in the console. `access/options.ts` has their bounds. */

type NumberRule = { readonly isFraction: boolean; readonly hasZero: boolean; readonly isAlwaysLimited: boolean }

/** Where a limit is not a whole number above zero, or unlimited. */
const NUMBER_RULES: { readonly [Name in NumberLimit]?: Partial<NumberRule> } = {
  unitsPerSecond: { isFraction: true },
  sendsPerSecond: { isFraction: true, hasZero: true },
  unitsPerMonth: { hasZero: true },
  wsSubscriptions: { hasZero: true },
  requestBytes: { isAlwaysLimited: true },
  batchItems: { isAlwaysLimited: true },
}

// `numberIn` refuses those of 16 digits that a number does not hold exactly.
const WHOLE = /^(?:0|[1-9][0-9]{0,15})$/
const FRACTION = /^(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,9})?$/

/** The name of a method, without the characters that separate it from its limits. */
export const METHOD_NAME = /^[^\s:,=]{1,64}$/

/** The number, null for unlimited, or undefined where the text is neither. */
export function parseNumberLimit(name: NumberLimit, text: string): number | null | undefined {
  const { isFraction, hasZero, isAlwaysLimited } = ruleOf(name)
  if (text === 'unlimited') return isAlwaysLimited ? undefined : null
  const value = numberIn(text, isFraction ? FRACTION : WHOLE)
  return value !== undefined && (value > 0 || hasZero) ? value : undefined
}

function numberIn(text: string, form: RegExp): number | undefined {
  const value = Number(text)
  return form.test(text) && value <= Number.MAX_SAFE_INTEGER ? value : undefined
}

/** `a whole number above zero`, and whether the limit can be removed. */
export function numberLimitForm(name: NumberLimit): { readonly number: string; readonly isAlwaysLimited: boolean } {
  const { isFraction, hasZero, isAlwaysLimited } = ruleOf(name)
  return { number: `a ${isFraction ? '' : 'whole '}number${hasZero ? '' : ' above zero'}`, isAlwaysLimited }
}

function ruleOf(name: NumberLimit): NumberRule {
  return { isFraction: false, hasZero: false, isAlwaysLimited: false, ...NUMBER_RULES[name] }
}

/** The limits of one method; undefined are those of the plan. */
export type TypedMethod = { readonly method: string; readonly limit: MethodLimit | undefined }

/** Parses `getProgramAccounts:cost=30:per-second=1` or `getSlot:plan`; undefined where the text is neither. */
export function parseMethodLimit(typed: string): TypedMethod | undefined {
  const [method = '', ...parts] = typed.split(':')
  if (!METHOD_NAME.test(method) || parts.length === 0) return undefined
  if (parts.length === 1 && parts[0] === 'plan') return { method, limit: undefined }
  const limit: { cost?: number; perSecond?: number } = {}
  for (const part of parts) {
    const [name, text = ''] = part.split('=')
    const value = numberIn(text, name === 'cost' ? WHOLE : FRACTION)
    if (value === undefined) return undefined
    if (name === 'cost') limit.cost = value
    else if (name === 'per-second') limit.perSecond = value
    else return undefined
  }
  return { method, limit }
}

/** The reverse of `parseMethodLimit`. */
export function printMethodLimit(method: string, { cost, perSecond }: MethodLimit): string {
  const parts = [
    ...(cost === undefined ? [] : [`cost=${cost}`]),
    ...(perSecond === undefined ? [] : [`per-second=${perSecond}`]),
  ]
  return [method, ...parts].join(':')
}
