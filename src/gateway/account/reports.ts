import type { UsageGrouping, UsageLine } from '../../access/usage/report.ts'
import type { EndpointResponse } from './endpoint.ts'

/** What a report is about; `fromMs` and `toMs` are at full hours, or at full days where its lines are days. */
export type UsageQuery = { readonly by: UsageGrouping; readonly fromMs: number; readonly toMs: number }

/** Why there is no report: too many are being read, or the store did not respond in time. */
export type NoReport = { readonly ok: false; readonly reason: 'busy' | 'late' | 'failed' }

/** The lines are grouped and in order. */
export type UsageReport =
  | { readonly ok: true; readonly lines: readonly UsageLine[]; readonly asOfMs: number }
  | NoReport

/** A token that is valid or retiring; never its text. */
export type TokenReport = {
  readonly last4: string
  readonly state: 'active' | 'retiring'
  readonly created_at: string
  /** When a replaced token ends. */
  readonly valid_until: string | null
}
export type TokenReports = { readonly ok: true; readonly tokens: readonly TokenReport[] } | NoReport

/** What was sent to the destination of the shreds, in the fields of the API. */
export type DeliveryReport =
  | {
      readonly ok: true
      readonly state: string | null
      readonly last_fault: string | null
      readonly delivery: object | null
    }
  | NoReport

/**
 * What the account endpoints show beside what the gateway has in memory. It is read by the control plane, which has the store; it never throws and always
 * responds within its deadline.
 */
export type AccountReports = {
  usage(request: UsageQuery & { readonly subscriptionId: string }): Promise<UsageReport>
  tokens(subscriptionId: string): Promise<TokenReports>
  delivery(subscriptionId: string): Promise<DeliveryReport>
}

/** What a gateway without a control plane reports. */
const NONE: NoReport = { ok: false, reason: 'failed' }
export const NO_REPORTS: AccountReports = {
  usage: async () => NONE,
  tokens: async () => NONE,
  delivery: async () => NONE,
}

const RETRY_SECONDS = 2
const MESSAGES: Readonly<Record<NoReport['reason'], string>> = {
  busy: 'limit reached: too many account reports are being read',
  late: 'the report could not be read in time',
  failed: 'the report cannot be read now',
}

export function unavailable(reason: NoReport['reason'], requestId: string): EndpointResponse {
  const limit = reason === 'busy' ? { limit: 'accountReports' } : {}
  return {
    status: 503,
    headers: { 'retry-after': String(RETRY_SECONDS) },
    body: {
      error: 'overloaded',
      message: `${MESSAGES[reason]}; retry after ${RETRY_SECONDS} s`,
      ...limit,
      request_id: requestId,
    },
  }
}
