import type { ConnectionLine } from '../ui/model/connection.ts'
import type { UsageLine } from '../ui/model/usage.ts'

/** Responses of the account endpoints, as far as the page uses them. */

export type AccountRecord = {
  readonly customer: string | null
  readonly subscription: string
  readonly plan: string
  readonly products: readonly string[]
  readonly valid_until: string | null
  readonly limits: Readonly<Record<string, unknown>>
  readonly budget: { readonly limit: number | null; readonly remaining: number | null; readonly resets_at: string }
  readonly month: { readonly limit: number | null; readonly used: number; readonly resets_at: string }
  readonly open: Readonly<Record<string, number>>
  readonly token: { readonly last4: string; readonly valid_until: string | null } | null
  /** Null while the store is busy. */
  readonly tokens: readonly TokenRecord[] | null
  readonly endpoints: Readonly<Record<string, string>>
}

export type TokenRecord = {
  readonly last4: string
  readonly state: 'active' | 'retiring'
  readonly created_at: string
  readonly valid_until: string | null
}

export type UsageRecord = {
  readonly from: string
  readonly to: string
  readonly as_of: string
  readonly lines: readonly UsageLine[]
}

export type ConnectionsRecord = { readonly total: number; readonly connections: readonly ConnectionLine[] }

type Destination = { readonly address: string; readonly verified: boolean; readonly paused: boolean }

export type ShredsRecord = {
  readonly destination: Destination | null
  readonly pending: Destination | null
  readonly state: string | null
  readonly last_fault: string | null
  readonly delivery: {
    readonly lines: readonly (DeliveryCounts & { readonly hour: string })[]
    readonly totals: DeliveryCounts | null
  } | null
}

export type DeliveryCounts = {
  readonly packets: number
  readonly bytes: number
  readonly unsent: number
  /** From receipt to sending, of all destinations. */
  readonly delay_p50_ms: number | null
  readonly delay_p99_ms: number | null
  readonly slots: number
  readonly last_slot: number | null
}
