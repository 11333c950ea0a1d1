import type { AdminPermission, AdminRole } from '../../contract/admin-routes.ts'
import type { ConnectionLine } from '../../ui/model/connection.ts'
import type { UsageLine } from '../../ui/model/usage.ts'

/** What the admin API responds with, as far as the console shows it. Fields that a process may not have are optional. */

export type SessionRecord = {
  readonly csrf_token: string
  readonly id: string
  readonly name: string
  readonly role: AdminRole
  readonly permissions?: readonly AdminPermission[]
}

/** A method to sign in besides a token. */
export type SignInMethod = { readonly kind: string; readonly label?: string; readonly path?: string }

export type Page<Item> = { readonly items: readonly Item[]; readonly next_cursor?: string | null }

export type NoteRecord = { readonly id: string; readonly text: string; readonly created_at: string }
export type RefundRecord = {
  readonly id: string
  readonly amount: string
  readonly currency: string
  readonly reason: string
  readonly created_at: string
}

export type CustomerRecord = {
  readonly id: string
  readonly name: string
  readonly contact: string
  readonly state: string
  readonly created_at: string
  readonly subscriptions?: number
}

export type CustomerDetails = Omit<CustomerRecord, 'subscriptions'> & {
  readonly subscriptions: readonly SubscriptionRecord[]
  readonly has_more_subscriptions: boolean
  readonly notes: readonly NoteRecord[]
}

export type SubscriptionRecord = {
  readonly id: string
  readonly name: string
  readonly customer?: string
  readonly customer_id?: string
  readonly plan: string
  readonly products: readonly string[]
  readonly state: string
  readonly valid_until: string | null
  readonly created_at?: string
}

export type TokenRecord = {
  readonly id: string
  readonly last4: string
  readonly state: string
  readonly created_at: string
  readonly not_after?: string | null
  readonly last_used_at?: string | null
}

export type DestinationRecord = {
  readonly ip: string
  readonly port: number
  readonly proof: string
  readonly paused: boolean
  readonly set_at?: string
}

type WireLimits = Readonly<Record<string, unknown>>

export type SubscriptionDetails = SubscriptionRecord & {
  readonly limits: WireLimits
  readonly overrides: WireLimits
  readonly tokens: readonly TokenRecord[]
  readonly destination: DestinationRecord | null
  readonly indexer_users?: readonly string[]
  readonly nodes?: readonly string[]
  readonly notes: readonly NoteRecord[]
  readonly refunds: readonly RefundRecord[]
}

/** What a response contains once. */
export type SecretRecord = {
  readonly token?: string
  /** The handover card. */
  readonly card?: string
  readonly name?: string
  readonly subscription?: string
  readonly indexer?: { readonly username: string; readonly password: string }
  readonly username?: string
  readonly password?: string
}

export type PlanRecord = {
  readonly name: string
  readonly limits: WireLimits
  readonly price?: {
    readonly currency: string
    readonly per_month: string
    readonly per_million_units: string
    readonly per_gigabyte: string
  } | null
}
export type PlanDetails = PlanRecord & { readonly costs: readonly MethodCost[] }
export type MethodCost = { readonly method: string; readonly cost: number }
export type ProductRecord = {
  readonly key: string
  readonly title: string
  readonly authorization?: string
  readonly needs_subscription?: boolean
  readonly is_offered: boolean
  /** `offered`, `preview` or `coming-soon`. */
  readonly status?: string
}

export type UsageRow = UsageLine & {
  /** Null for the sum of those that used least, where there are very many. */
  readonly subscription: string | null
  readonly customer?: string | null
}

export type ConnectionRecord = ConnectionLine & {
  readonly subscription_id: string
  readonly subscription?: string
  readonly customer?: string
}

export type UpstreamRecord = {
  readonly name: string
  readonly owner: string | null
  readonly state: string
  readonly reason?: string
  readonly slot: number
  readonly lag_slots: number
  readonly latency_ms: number | null
  readonly recent_calls: number
  readonly recent_failures: number
  readonly breaker?: string
}

export type NodeRecord = {
  readonly name: string
  readonly id: string
  readonly subscription: string | null
  readonly rpc: string
  readonly ws?: string | null
  readonly grpc?: string | null
}

export type DestinationRow = DestinationRecord & {
  readonly subscription: string
  readonly subscription_id?: string
  /** A new address that has not echoed its challenge yet. */
  readonly is_pending?: boolean
  /** What the running process does with it; null where it sends no shreds. */
  readonly state?: string | null
  readonly sent?: number | null
  readonly unsent?: number | null
  readonly last_fault?: string | null
}

export type DeliveryRow = {
  readonly from?: string
  readonly subscription: string
  readonly packets: number
  readonly bytes: number
  readonly slots: number
  readonly unsent_rate?: number
  readonly unsent_total_rate?: number
  readonly unsent_buffer?: number
  readonly unsent_paused?: number
  readonly unsent_error?: number
}

export type SenderRecord = {
  readonly accepted?: number
  readonly landed: number
  readonly failed: number
  readonly expired: number
  readonly ended: number
  readonly pending: number
  readonly tip_lamports: string | number
  readonly paths: readonly {
    readonly path: string
    readonly taken: number
    readonly landed: number
    readonly landing_rate: number | null
    readonly p50_ms: number | null
    readonly p95_ms: number | null
  }[]
  readonly path_states?: readonly { readonly path: string; readonly is_open: boolean; readonly message?: string }[]
}

export type IndexerRecord = {
  readonly state: string
  readonly ingests?: boolean
  readonly running_queries?: number
  readonly restarts?: number
  readonly ingest?: {
    readonly head_slot?: number | null
    readonly tip_slot?: number | null
    readonly blocks?: number
    readonly transactions?: number
    readonly held?: number
  } | null
  readonly coverage?: readonly unknown[]
}

export type AuditRecord = {
  readonly seq: number
  readonly time: string
  readonly actor: {
    readonly user: string
    readonly sudo_user?: string | null
    readonly admin?: { readonly name: string; readonly role: string }
  }
  readonly action: string
  readonly after?: { readonly name?: unknown } | null
  readonly subjects: readonly string[]
  readonly subject_names?: Readonly<Record<string, string>>
}

export type AuditVerification = {
  readonly ok: boolean
  readonly lines: number
  readonly notes?: readonly string[]
  readonly findings?: readonly { readonly location?: string; readonly line?: number; readonly what: string }[]
}

export type AdminRecord = {
  readonly id: string
  readonly name: string
  readonly role: AdminRole
  readonly state: string
  readonly last4?: string
  readonly created_at: string
  readonly expires_at?: string | null
}

export type StatusRecord = {
  readonly state: string
  readonly reasons?: readonly { readonly part: string; readonly reason: string }[]
}

export type OverviewRecord = {
  readonly customers: number
  /** By state. */
  readonly subscriptions: Readonly<Record<string, number>>
  readonly ending_14d: {
    readonly count: number
    readonly next: readonly { readonly name: string; readonly customer: string; readonly valid_until: string | null }[]
  }
  readonly near_month_limit: {
    readonly count: number
    readonly next: readonly {
      readonly name: string
      readonly customer: string
      readonly units: number
      readonly limit: number
    }[]
  }
  readonly refusals_last_minute: {
    /** How long they were counted: less than a minute after the first request. */
    readonly seconds: number
    readonly items: readonly { readonly part: string; readonly reason: string; readonly count: number }[]
  }
  readonly nodes: readonly { readonly name: string; readonly state: string; readonly lag_slots: number }[]
  readonly chain: {
    readonly slot: number | null
    readonly slot_ms: number | null
    readonly transactions_per_second?: number | null
    readonly execution_transactions_per_second?: number | null
  }
  readonly sender: { readonly landed_share: number | null } | null
  /** Those that are not cancelled. */
  readonly subscriptions_by_plan?: Readonly<Record<string, number>>
  readonly live?: LiveRecord
}

/** Counts since the start of the process: rates are differences. */
export type LiveRecord = {
  /** Monotonic time of the process. */
  readonly at_ms: number
  readonly pid: number | null
  readonly calls: number
  readonly units: number
  readonly refused: number
  readonly connections: number
  readonly transactions: number | null
  readonly landed: number | null
}

export type SeriesRecord = {
  readonly is_complete: boolean
  readonly items: readonly {
    readonly from: string
    /** Null while the hour is not added up yet. */
    readonly calls: number | null
    readonly units: number | null
    readonly refused: number | null
  }[]
}

export type BillingRecord = {
  /** Null where no billing system is configured; then there is nothing else. */
  readonly sink: string | null
  readonly state?: string
  readonly planned_until?: string | null
  readonly waiting?: number
  readonly behind_seconds?: number
  readonly last_success_at?: string | null
  readonly failing?: string | null
  readonly customers_without_billing_id?: readonly string[]
  readonly dead_letters?: number
  readonly dead?: readonly {
    readonly id: string
    readonly subscription: string
    readonly subscription_name?: string | null
    readonly hour: string
    readonly interface: string
    readonly quantity: string
    readonly amount: number
    readonly reason: string
    readonly outcome_unknown: boolean
  }[]
}

export type InvoiceLine = {
  readonly customer: string
  readonly subscription: string
  readonly subscription_id: string
  readonly plan: string
  readonly currency: string
  readonly days: number
  readonly days_of_month: number
  readonly units: number
  /** Payload sent to the customer. */
  readonly bytes: number
  /** These three add up to the amount. */
  readonly base: string
  readonly usage: string
  readonly transfer: string
  readonly amount: string
}

export type InvoiceRecord = {
  readonly lines: readonly InvoiceLine[]
  readonly totals: readonly { readonly currency: string; readonly amount: string }[]
  /** Subscriptions whose plan has no price. */
  readonly without_price: number
}
