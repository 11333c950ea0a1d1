import type { AdminRole } from '../../contract/admin-routes.ts'
import type { Limits } from '../../contract/limits.ts'
import type { ProductKey } from '../../contract/products.ts'

/**
 * The records of the access store. Every record has an id with the prefix of its kind, and `revision`: the revision of the store at its last change,
 * so that followers read only changed records. Records are never deleted; an ended one keeps its final state. Times are unix milliseconds.
 */

export type Customer = {
  readonly id: string // cus_…
  readonly revision: number
  readonly name: string
  /** How the operator reaches the customer; free text. */
  readonly contact: string
  /** A removed customer has only cancelled subscriptions; its record stays, so that usage and audit log keep its name. */
  readonly state: 'active' | 'suspended' | 'removed'
  readonly createdAt: number
}

export type Subscription = {
  readonly id: string // sub_…
  readonly revision: number
  readonly customerId: string
  readonly name: string
  readonly plan: string
  readonly products: readonly ProductKey[]
  /** Limits that differ from the plan's. */
  readonly overrides: Partial<Limits>
  readonly state: 'active' | 'suspended' | 'cancelled'
  readonly createdAt: number
  /** Null means no end. */
  readonly validUntil: number | null
}

export type Token = {
  readonly id: string // tok_…
  readonly revision: number
  readonly subscriptionId: string
  /** SHA-256 of the token, hex. The token itself is not stored. */
  readonly sha256: string
  readonly last4: string
  readonly state: 'active' | 'retiring' | 'revoked'
  readonly createdAt: number
  readonly createdBy: string
  /** A retiring token ends here; null for none. */
  readonly notAfter: number | null
}

export type Destination = {
  readonly id: string // the id of the subscription, or `<subscription>/pending` for one that is not proven yet
  readonly revision: number
  readonly ip: string
  readonly port: number
  /** `vouched`: accepted by the operator; `proven`: the destination echoed its challenge. */
  readonly proof: 'unproven' | 'vouched' | 'proven'
  readonly paused: boolean
  readonly setAt: number
}

export type IndexerCredential = {
  readonly id: string // idx_…
  readonly revision: number
  readonly subscriptionId: string
  readonly username: string
  /** SHA-256 of the generated password, hex. */
  readonly sha256: string
  readonly state: 'active' | 'revoked'
  readonly createdAt: number
}

/** An address is a URL without a secret, or a reference to one (`file:…` or `env:…`); empty where there is none. A removed node has none at all. */
export type DedicatedNode = {
  readonly id: string // node_…
  readonly revision: number
  /** The id, for a removed node. */
  readonly name: string
  readonly rpc: string
  readonly ws: string
  readonly grpc: string
  /** Reference to the node's own credential (`file:…` or `env:…`), never the credential. */
  readonly credential: string | null
  readonly subscriptionId: string | null
  readonly createdAt: number
}

/** A note of the operator about a customer or subscription. */
export type Note = {
  readonly id: string // note_…
  readonly revision: number
  readonly subjectId: string
  readonly text: string
  readonly createdAt: number
}

/** A refund that was paid elsewhere, recorded here. */
export type Refund = {
  readonly id: string // ref_…
  readonly revision: number
  readonly subscriptionId: string
  /** Decimal text, so that no amount is rounded. */
  readonly amount: string
  readonly currency: string
  readonly reason: string
  readonly createdAt: number
}

/** An administrator: who may use the admin API, and in which role. A removed one stays, so that the audit log keeps its name. */
export type Admin = {
  readonly id: string // adm_…
  readonly revision: number
  readonly name: string
  readonly role: AdminRole
  /** SHA-256 of the token, hex. The token itself is not stored. */
  readonly sha256: string
  readonly last4: string
  readonly state: 'active' | 'revoked'
  readonly createdAt: number
  readonly createdBy: string
  /** The token ends here; null for none. */
  readonly expiresAt: number | null
}

export type Records = {
  customers: Customer
  subscriptions: Subscription
  tokens: Token
  destinations: Destination
  indexerCredentials: IndexerCredential
  nodes: DedicatedNode
  notes: Note
  refunds: Refund
  admins: Admin
}

export type RecordKind = keyof Records

/** The author of a change, as in an audit line. */
export type Actor = {
  readonly uid: number
  readonly user: string
  readonly sudoUser: string | null
  readonly tty: string | null
  /**
   * The administrator of a change over the admin API; absent on the command line. The other fields are then those of the process. The id of a person
   * who signed in with OpenID Connect begins with `oidc:`.
   */
  readonly admin?: { readonly id: string; readonly name: string; readonly role: AdminRole; readonly address: string }
}

/** The author as records name it. */
export function actorName({ admin, sudoUser, user }: Actor): string {
  if (admin === undefined) return sudoUser ?? user
  // The issuer chooses the names of its people: they cannot pass for administrators of the store.
  return `${admin.id.startsWith('oidc:') ? 'oidc' : 'admin'}:${admin.name}`
}

export type UsageCounts = { readonly calls: number; readonly units: number; readonly refused: number }

/** Usage of all subscriptions in one hour. */
export type HourUsage = Pick<UsageCounts, 'calls' | 'units' | 'refused'>

/** Usage of one subscription on one interface in one hour. */
export type UsageRow = UsageCounts & {
  readonly subscriptionId: string
  /** Start of the hour, unix ms. */
  readonly hour: number
  readonly interface: UsageInterface
  /** Payload bytes sent to the customer (docs/billing.md). Not counted by method: the messages of a stream have none. */
  readonly bytes: number
  /** The same usage by method, where it is added to the store. Its names are those of `access/terms.ts`, and `other`. */
  readonly methods?: Readonly<Record<string, UsageCounts>>
}

/** Usage as it is added to the store. Rows of spools and backups that were written before bytes were counted have none. */
export type AddedUsage = Omit<UsageRow, 'bytes'> & { readonly bytes?: number }

/** Usage of a period, of all subscriptions or of one. */
export type UsageSelection = { readonly fromMs: number; readonly toMs: number; readonly subscriptionId?: string }

/** Usage of one method on one interface in one UTC day. */
export type MethodUsageRow = UsageCounts & {
  readonly subscriptionId: string
  /** Start of the day, unix ms. */
  readonly day: number
  readonly interface: UsageInterface
  readonly method: string
}

export type UsageInterface = 'rpc' | 'ws' | 'grpc' | 'indexer' | 'shreds'
