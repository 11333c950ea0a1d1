import type { Actor } from '../../access/store/model.ts'
import type { AdminRouteId } from '../../contract/admin-routes.ts'

/** A request of the admin API after it was authorized and validated. */
export type AdminCall = {
  /** The parameters of the path, decoded. */
  readonly params: Readonly<Record<string, string>>
  readonly query: URLSearchParams
  /** The body as the schema of the route has it; undefined where the route has none. */
  readonly body: unknown
  readonly actor: Actor
  readonly nowMs: number
  /** From `?dry_run=true`: performs all checks, changes nothing. */
  readonly isDryRun: boolean
  /** From `If-Match`: the change is refused with 412 if the record has another revision. */
  readonly ifRevision: number | undefined
  readonly signal: AbortSignal
}

export type AdminReply = {
  /** 200 by default; 201 for a new record. */
  readonly status?: number
  /** JSON with names in snake_case and times in ISO 8601; a string with `contentType` is sent as it is. */
  readonly body: unknown
  readonly contentType?: string
  /** Sent instead of the body, as fast as the client reads. Needs `contentType`. */
  readonly lines?: AsyncIterable<string>
  /** The revision of the record, sent as `ETag`. */
  readonly revision?: number
}

export type AdminHandler = (call: AdminCall) => Promise<AdminReply>

export type AdminHandlers = { readonly [Id in AdminRouteId]: AdminHandler }
