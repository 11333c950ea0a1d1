import type { LimitChanges } from '../../../access/provisioning/subscriptions.ts'
import { GRPC_KINDS, LIMIT_LABELS, type Limits, type NumberLimit } from '../../../contract/limits.ts'
import { didYouMean } from '../../../core/did-you-mean.ts'
import { ServiceError } from '../../../core/error.ts'

/** Flags that set a limit of a subscription, as typed. */
export type LimitFlags = { readonly [Name in NumberLimit | keyof typeof STREAM_RULES]?: string }

const ALWAYS_LIMITED: readonly NumberLimit[] = ['requestBytes', 'batchItems']

/** The limits that have a flag. */
const FLAGGED = (Object.keys(LIMIT_LABELS) as (keyof typeof LIMIT_LABELS)[]).filter(
  (name): name is NumberLimit => name !== 'methodPerSecond',
)

/** Every flag that sets a limit, as typed. */
export const LIMIT_FLAG_NAMES = [...FLAGGED, 'grpcKinds', 'grpcBlockedOwners', 'grpcResume'].map(
  (name) => `--${flagName(name)}`,
)

/** The overrides that `--clear` names, by flag or by limit: `units-per-second`, `unitsPerSecond`, or `all`. */
export function parseCleared(text: string, overrides: Partial<Limits>): (keyof Limits)[] {
  const present = Object.keys(overrides) as (keyof Limits)[]
  if (text === 'all') return present
  const known: readonly string[] = [...FLAGGED, 'grpcKinds', 'grpcBlockedOwners', 'grpcResume', 'methods']
  return listed(text).map((word) => {
    const name = word.replace(/^--/, '').replaceAll(/-([a-z])/g, (_all, letter: string) => letter.toUpperCase())
    if (known.includes(name)) return name as keyof Limits
    const flags = known.map(flagName)
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
export function overridesOf(flags: LimitFlags): LimitChanges & Partial<Limits> {
  const overrides: Record<string, Limits[keyof Limits] | undefined> = {}
  const wrong: string[] = []
  for (const name of FLAGGED) {
    const given = flags[name]
    if (given === undefined) continue
    const value = parseLimit(name, given)
    if (value === 'wrong') wrong.push(`"${given}" is not a limit for ${LIMIT_LABELS[name]}: write ${allowedFor(name)}`)
    else overrides[name] = value
  }
  for (const [name, { parse, message }] of Object.entries(STREAM_RULES)) {
    const given = flags[name as keyof typeof STREAM_RULES]
    if (given === undefined) continue
    const value = given === 'plan' ? undefined : parse(given)
    if (value === 'wrong') wrong.push(`"${given}" is not ${message} or plan`)
    else overrides[name] = value
  }
  if (wrong.length > 0) throw new ServiceError('invalid-value', wrong.join('; '))
  return overrides as LimitChanges & Partial<Limits>
}

type StreamRule<Name extends keyof Limits> = { parse(given: string): Limits[Name] | 'wrong'; readonly message: string }

const isKind = (word: string) => GRPC_KINDS.some((kind) => kind === word)
const listed = (given: string) => given.split(',').map((word) => word.trim())

/** Rules of gRPC streams, from flags. */
const STREAM_RULES: { readonly [Name in 'grpcKinds' | 'grpcBlockedOwners' | 'grpcResume']: StreamRule<Name> } = {
  grpcKinds: {
    parse: (given) =>
      given === 'unlimited' ? null : listed(given).every(isKind) ? (listed(given) as Limits['grpcKinds']) : 'wrong',
    message: `a list of kinds of gRPC filters: write some of ${GRPC_KINDS.join(',')}, unlimited`,
  },
  // `checkLimits` validates the addresses.
  grpcBlockedOwners: {
    parse: (given) => (given === 'none' ? [] : listed(given)),
    message: 'a list of addresses, none',
  },
  grpcResume: {
    parse: (given) => (given === 'yes' ? true : given === 'no' ? false : 'wrong'),
    message: 'a value for --grpc-resume: write yes, no',
  },
}

function parseLimit(name: NumberLimit, given: string): number | null | undefined | 'wrong' {
  if (given === 'plan') return undefined
  if (given === 'unlimited' && !ALWAYS_LIMITED.includes(name)) return null
  const value = Number(given)
  return /^[1-9][0-9]*$/.test(given) && Number.isSafeInteger(value) ? value : 'wrong'
}

function allowedFor(name: NumberLimit): string {
  return `a whole number above zero${ALWAYS_LIMITED.includes(name) ? '' : ', unlimited,'} or plan`
}

/** Every limit in effect, one line each; overrides are marked. */
export function printLimits(limits: Limits, overrides: Partial<Limits>): (readonly [string, string])[] {
  const own = (name: keyof Limits) => (Object.hasOwn(overrides, name) ? '  (override)' : '')
  const numbers = FLAGGED.map((name) => {
    const value = limits[name] === null ? 'unlimited' : String(limits[name])
    return ['limit', `${value} ${LIMIT_LABELS[name]}${own(name)}`] as const
  })
  return [...numbers, ...streamRules(limits).map(([name, words]) => ['rule', `${words}${own(name)}`] as const)]
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
