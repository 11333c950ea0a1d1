import { LIMIT_LABELS } from '../../contract/limits.ts'
import type { ScanProblem } from '../../solana/geyser/protobuf-scan.ts'
import type { MessageSchema } from './request-shape.ts'

/** A limit of the plan, or a rule for every plan: the gateway and every node must read a request in the same way. */
export type PolicyRule =
  | 'grpcAccountsPerStream'
  | 'grpcKinds'
  | 'grpcBlockedOwners'
  | 'readable'
  | 'knownFields'
  | 'singleFields'
  | 'grpcRequestFields'
  | 'grpcRequestFilters'

export type PolicyRefusal = {
  readonly ok: false
  readonly rule: PolicyRule
  /** Kind and name of the filter that breaks the rule. */
  readonly filter: { readonly kind: string; readonly name: string } | undefined
  readonly message: string
}

/** What a request may have, as its refusal names it. */
type RequestBounds = {
  readonly fieldsMax: number
  readonly filtersMax: number
  /** The limit of the plan that decides what may be selected. */
  readonly selectionLimit: string | undefined
}

/** A refusal of the request as a whole. */
export function requestRefusal(
  { name }: MessageSchema,
  problem: ScanProblem,
  { fieldsMax, filtersMax, selectionLimit }: RequestBounds,
): PolicyRefusal {
  const where = `field ${problem.field} of ${problem.message}`
  const refusal = (rule: PolicyRule, message: string): PolicyRefusal => ({
    ok: false,
    rule,
    filter: undefined,
    message: `request refused: ${message}`,
  })
  switch (problem.rule) {
    case 'known-fields': {
      const filter = problem.entry === undefined ? '' : `in the filter "${shownText(problem.entry)}", `
      const why =
        selectionLimit === undefined
          ? ', so it would be ignored'
          : ` and could select updates, which ${selectionLimit} of the plan limits`
      return refusal('knownFields', `${filter}${where} is not known here${why}; rule knownFields, leave it out`)
    }
    case 'single-fields':
      return refusal('singleFields', `${where} comes twice; rule singleFields, send it once`)
    case 'fields-max':
      return refusal('grpcRequestFields', `it has more than the ${fieldsMax} fields grpcRequestFields allows`)
    case 'entries-max':
      return refusal('grpcRequestFilters', `it has more than the ${filtersMax} filters grpcRequestFilters allows`)
    case 'readable':
      return refusal('readable', `it is not a ${name}, at ${where}`)
  }
}

/** A refusal of one filter. */
export function filterRefusal(rule: PolicyRule, kind: string, name: string, message: string): PolicyRefusal {
  return { ok: false, rule, filter: { kind, name }, message: `filter refused: ${kind} "${shownText(name)}" ${message}` }
}

/** Characters shown of a text that the customer chose, such as the name of a filter. */
export const TEXT_SHOWN_MAX = 64

/** A text of the customer as a refusal shows it. */
export function shownText(text: string): string {
  return text.length > TEXT_SHOWN_MAX ? `${text.slice(0, TEXT_SHOWN_MAX)}…` : text
}

export function accountsRefusal(kind: string, name: string, accounts: number, max: number): PolicyRefusal {
  const words = LIMIT_LABELS.grpcAccountsPerStream
  const message = `brings the request to ${accounts} accounts; grpcAccountsPerStream allows ${max} ${words}`
  return filterRefusal('grpcAccountsPerStream', kind, name, message)
}

export function unknownAccountsRefusal(accounts: number, max: number): PolicyRefusal {
  const words = LIMIT_LABELS.grpcAccountsPerStream
  const message = `request refused: fields that are not known here could hold ${accounts} accounts; grpcAccountsPerStream allows ${max} ${words}`
  return { ok: false, rule: 'grpcAccountsPerStream', filter: undefined, message }
}

export function kindRefusal(kind: string, name: string, allowed: readonly string[]): PolicyRefusal {
  return filterRefusal(
    'grpcKinds',
    kind,
    name,
    `is of a kind the plan does not have; grpcKinds allows ${allowed.join(', ')}`,
  )
}

export function blockedRefusal(kind: string, name: string, reason: BlockReason): PolicyRefusal {
  return filterRefusal('grpcBlockedOwners', kind, name, `${reason}; grpcBlockedOwners does not allow it`)
}

/** Why a filter could select blocked accounts. */
export type BlockReason =
  | `asks for ${string}`
  | 'names nothing, so it asks for everything'
  | 'holds a set of accounts that cannot be looked into'
