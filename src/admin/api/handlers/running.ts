/**
 * The control methods of the running process that the handlers call, and what they read of the results. The process has more: the compiler checks that
 * its methods have these types. Null where a service is off.
 */
export type RunningProtocol = {
  status(): object
  top(): Top
  upstreams(): readonly { readonly name: string }[]
  'upstream-drain'(node: { readonly name: string }): Found
  'upstream-undrain'(node: { readonly name: string }): Found
  connections(filter?: { readonly subscription?: string }): ConnectionList | null
  'connection-close'(connection: { readonly name: string }): Found | null
  shreds(): LiveDestinations | null
  indexer(): { readonly ingest?: { readonly transactions: number } | undefined } | null
  'indexer-query'(query: { readonly query: string; readonly format: string }): QueryResponse | null
  'tip-stats'(): { readonly accepted?: number | undefined } | null
}

export type RunningProcess = {
  call<Method extends keyof RunningProtocol>(
    method: Method,
    ...params: Parameters<RunningProtocol[Method]>
  ): Promise<ReturnType<RunningProtocol[Method]>>
  /** Units of this month by subscription, from the accounts in memory. */
  monthUnits(): Iterable<{ readonly subscriptionId: string; readonly units: number }>
}

type Found = { readonly found: boolean }
type QueryResponse = { readonly ok: true; readonly text: string } | { readonly ok: false }

export type ConnectionList = {
  readonly total: number
  readonly connections: readonly { readonly id: string; readonly subscription_id: string }[]
}

/** What the relay reports of destinations. */
export type LiveDestinations = {
  readonly destinations: readonly {
    readonly subscriptionId: string
    readonly state: string
    readonly packets: number
    readonly unsent: number
    readonly lastFault: string | null
    readonly destinationIndex: number | null
  }[]
  readonly refused: readonly { readonly subscriptionId: string; readonly reason: string }[]
}

export type Refusal = { readonly part: string; readonly reason: string; readonly count: number }

export type Top = {
  readonly atMs: number
  readonly status: { readonly slotLength?: { readonly ms: number }; readonly pid?: number }
  readonly calls: Readonly<Record<string, number>>
  readonly units: number
  readonly streams: { readonly ws: number; readonly grpc: number }
  readonly sender: { readonly landed: number; readonly expired: number } | null
  readonly indexer: { readonly tipSlot: number | null } | null
  readonly execution: { readonly tps: number } | null
  readonly upstreams: readonly {
    readonly name: string
    readonly state: string
    readonly slot: number
    readonly lagSlots: number
    readonly owner: string | null
  }[]
  readonly refusals: readonly Refusal[]
}
