import { overridesSchema } from '../../access/options.ts'
import { findPlanFaults } from '../../access/plan.ts'
import type { LimitChanges } from '../../access/provisioning/subscriptions.ts'
import { LIMIT_WORDS, type Limits, type NumberLimit } from '../../contract/limits.ts'
import { ServiceError } from '../../core/service-error.ts'
import type { LimitFlags } from './sub.ts'

const ALWAYS_LIMITED: readonly NumberLimit[] = ['requestBytes', 'batchItems']

/** Limits given as flags. `plan` takes an own limit back; `unlimited` lifts it. */
export function overridesOf(flags: LimitFlags): LimitChanges & Partial<Limits> {
  const overrides: Record<string, number | null | undefined> = {}
  for (const name of Object.keys(LIMIT_WORDS) as (keyof LimitFlags)[]) {
    const given = flags[name]
    if (given !== undefined) overrides[name] = parseLimit(name, given)
  }
  return overrides as LimitChanges & Partial<Limits>
}

function parseLimit(name: NumberLimit, given: string): number | null | undefined {
  if (given === 'plan') return undefined
  if (given === 'unlimited' && !ALWAYS_LIMITED.includes(name)) return null
  const value = Number(given)
  if (/^[1-9][0-9]*$/.test(given) && Number.isSafeInteger(value)) return value
  throw new ServiceError(
    'invalid-value',
    `"${given}" is not a limit for ${LIMIT_WORDS[name]}: write a whole number above zero${ALWAYS_LIMITED.includes(name) ? '' : ', unlimited,'} or plan`,
  )
}

/** Limits as JSON has them: methods are a list, since their names are data and not keys of ours. */
export function wireLimits(limits: Partial<Limits>): object {
  const { methods, ...rest } = limits
  if (methods === undefined) return rest
  return { ...rest, methods: Object.entries(methods).map(([method, limit]) => ({ method, ...limit })) }
}

/** Whether these own limits can be kept together with the plan's: the same rules a plan in the config must pass. */
export function checkLimits(limits: Limits, overrides: LimitChanges): void {
  const given = Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== undefined))
  const [issue] = overridesSchema.safeParse(given).error?.issues ?? []
  if (issue !== undefined) {
    throw new ServiceError('invalid-value', `${issue.path.join('.')}: ${issue.message.replace(/^[A-Z][a-z ]+: /, '')}`)
  }
  const [fault] = findPlanFaults(limits)
  if (fault === undefined) return
  throw new ServiceError('invalid-value', `${fault.limit} ${fault.says}`, { fix: 'Change the two limits together.' })
}

/** Every limit in force, a line each; own ones are marked. */
export function printLimits(limits: Limits, overrides: Partial<Limits>): (readonly [string, string])[] {
  const own = (name: keyof Limits) => (Object.hasOwn(overrides, name) ? '  (own)' : '')
  const numbers = (Object.keys(LIMIT_WORDS) as (keyof typeof LIMIT_WORDS)[])
    .filter((name): name is NumberLimit => name !== 'methodPerSecond')
    .map((name) => {
      const value = limits[name] === null ? 'unlimited' : String(limits[name])
      return ['limit', `${value} ${LIMIT_WORDS[name]}${own(name)}`] as const
    })
  return [...numbers, ...streamRules(limits).map(([name, words]) => ['rule', `${words}${own(name)}`] as const)]
}

/** Rules for gRPC streams, those that differ from none. */
function streamRules({ grpcKinds, grpcBlockedOwners, grpcResume }: Limits): (readonly [keyof Limits, string])[] {
  const rules: (readonly [keyof Limits, string])[] = []
  if (grpcKinds !== null) rules.push(['grpcKinds', `gRPC filters only of ${grpcKinds.join(', ')}`])
  if (grpcBlockedOwners.length > 0) {
    rules.push(['grpcBlockedOwners', `${grpcBlockedOwners.length} accounts and programs no gRPC filter may ask for`])
  }
  if (grpcResume) rules.push(['grpcResume', 'gRPC streams go on when their node is lost'])
  return rules
}
