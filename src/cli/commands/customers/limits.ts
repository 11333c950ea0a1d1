import type { LimitChanges } from '../../../access/limit-rules.ts'
import { GRPC_KINDS, LIMIT_LABELS, type Limits, type NumberLimit } from '../../../contract/limits.ts'
import { numberLimitForm, parseMethodLimit, parseNumberLimit } from '../../../contract/typed-limits.ts'
import { didYouMean } from '../../../core/did-you-mean.ts'
import { ServiceError } from '../../../core/error.ts'

/** Flags that set a limit of a subscription, as typed. */
export type LimitFlags = { readonly [Name in NumberLimit | RuleName]?: string }

type RuleName = (typeof RULES_FLAGGED)[number]

/** The limits that have a flag and are a number. */
const FLAGGED = (Object.keys(LIMIT_LABELS) as (keyof typeof LIMIT_LABELS)[]).filter(
  (name): name is NumberLimit => name !== 'methodPerSecond',
)

/** The other limits that have a flag. */
const RULES_FLAGGED = ['grpcKinds', 'grpcBlockedOwners', 'grpcResume', 'methods'] as const
const ALL_FLAGGED: readonly string[] = [...FLAGGED, ...RULES_FLAGGED]

/** Every flag that sets a limit, as typed. */
export const LIMIT_FLAG_NAMES = ALL_FLAGGED.map((name) => `--${flagName(name)}`)

/** The overrides that `--clear` names, by flag or by limit: `units-per-second`, `unitsPerSecond`, or `all`. */
export function parseCleared(text: string, overrides: Partial<Limits>): (keyof Limits)[] {
  const present = Object.keys(overrides) as (keyof Limits)[]
  if (text === 'all') return present
  return listed(text).map((word) => {
    const name = word.replace(/^--/, '').replaceAll(/-([a-z])/g, (_all, letter: string) => letter.toUpperCase())
    if (ALL_FLAGGED.includes(name)) return name as keyof Limits
    const flags = ALL_FLAGGED.map(flagName)
    const near = didYouMean(word.replace(/^--/, ''), [...flags, 'all'])
    throw new ServiceError(
      'invalid-value',
      `"${word}" is not a limit${near === undefined ? '' : `, did you mean "${near}"?`}`,
      {
        fix: `Limits: ${flags.join(', ')}, or all`,
      },
    )
  })
}

function flagName(limit: string): string {
  return limit.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** Limits from flags. `plan` removes an override; `unlimited` removes the limit. Throws with all invalid values at once. */
export function overridesOf(flags: LimitFlags): LimitChanges {
  const overrides: Record<string, LimitChanges[keyof Limits]> = {}
  const wrong: string[] = []
  for (const name of FLAGGED) {
    const given = flags[name]
    if (given === undefined) continue
    const value = parseLimit(name, given)
    if (value === 'wrong') wrong.push(`"${given}" is not a limit for ${LIMIT_LABELS[name]}: write ${allowedFor(name)}`)
    else overrides[name] = value
  }
  for (const name of RULES_FLAGGED) {
    const { parse, message } = RULES[name]
    const given = flags[name]
    if (given === undefined) continue
    const value = given === 'plan' ? undefined : parse(given)
    if (value === 'wrong') wrong.push(`"${given}" is not ${message} or plan`)
    else overrides[name] = value
  }
  if (wrong.length > 0) throw new ServiceError('invalid-value', wrong.join('; '))
  return overrides as LimitChanges
}

type Rule<Name extends RuleName> = { parse(given: string): LimitChanges[Name] | 'wrong'; readonly message: string }

const isKind = (word: string) => GRPC_KINDS.some((kind) => kind === word)
const listed = (given: string) => given.split(',').map((word) => word.trim())

/** Rules of gRPC streams and limits of methods, from flags. */
const RULES: { readonly [Name in RuleName]: Rule<Name> } = {
  grpcKinds: {
    parse: (given) =>
      given === 'unlimited' ? null : listed(given).every(isKind) ? (listed(given) as Limits['grpcKinds']) : 'wrong',
    message: `a list of kinds of gRPC filters: write some of ${GRPC_KINDS.join(',')}, unlimited`,
  },
  // `checkOverrides` validates the addresses.
  grpcBlockedOwners: {
    parse: (given) => (given === 'none' ? [] : listed(given)),
    message: 'a list of addresses, none',
  },
  grpcResume: {
    parse: (given) => (given === 'yes' ? true : given === 'no' ? false : 'wrong'),
    message: 'a value for --grpc-resume: write yes, no',
  },
  methods: {
    parse: parseMethods,
    message: 'a list of methods with their limits: write METHOD:cost=N:per-second=N, METHOD:plan',
  },
}

function parseMethods(given: string): LimitChanges['methods'] | 'wrong' {
  const parsed = listed(given).map(parseMethodLimit)
  const valid = parsed.filter((each) => each !== undefined)
  if (valid.length < parsed.length) return 'wrong'
  return Object.fromEntries(valid.map(({ method, limit }) => [method, limit]))
}

function parseLimit(name: NumberLimit, given: string): number | null | undefined | 'wrong' {
  if (given === 'plan') return undefined
  const value = parseNumberLimit(name, given)
  return value === undefined ? 'wrong' : value
}

function allowedFor(name: NumberLimit): string {
  const { number, isAlwaysLimited } = numberLimitForm(name)
  return `${number}${isAlwaysLimited ? '' : ', unlimited,'} or plan`
}

/** Every limit in effect, one line each; overrides are marked. */
export function printLimits(limits: Limits, overrides: Partial<Limits>): (readonly [string, string])[] {
  const own = (name: keyof Limits) => (Object.hasOwn(overrides, name) ? '  (override)' : '')
  const numbers = FLAGGED.map((name) => {
    const value = limits[name] === null ? 'unlimited' : String(limits[name])
    return ['limit', `${value} ${LIMIT_LABELS[name]}${own(name)}`] as const
  })
  const rules = streamRules(limits).map(([name, words]) => ['rule', `${words}${own(name)}`] as const)
  return [...numbers, ...methodLimits(limits, overrides), ...rules]
}

/** Rates of single methods, and costs that this subscription has of its own. */
function methodLimits({ methods }: Limits, overrides: Partial<Limits>): (readonly [string, string])[] {
  return Object.entries(methods).flatMap(([method, { cost, perSecond }]) => {
    const isOwn = Object.hasOwn(overrides.methods ?? {}, method)
    return [
      ...(perSecond === undefined
        ? []
        : [['limit', `${perSecond} calls of ${method} per second${isOwn ? '  (override)' : ''}`] as const]),
      ...(cost === undefined || !isOwn ? [] : [['cost', `${cost} units  ${method}  (override)`] as const]),
    ]
  })
}

/** Rules of gRPC streams that are set. */
function streamRules({ grpcKinds, grpcBlockedOwners, grpcResume }: Limits): (readonly [keyof Limits, string])[] {
  const rules: (readonly [keyof Limits, string])[] = []
  if (grpcKinds !== null) rules.push(['grpcKinds', `allowed gRPC filters: ${grpcKinds.join(', ')}`])
  if (grpcBlockedOwners.length > 0) {
    rules.push(['grpcBlockedOwners', `${grpcBlockedOwners.length} accounts and programs blocked in gRPC filters`])
  }
  if (grpcResume) rules.push(['grpcResume', 'gRPC streams resume when their node is lost'])
  return rules
}
