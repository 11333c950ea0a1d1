import type { ListedNotice } from '../../../contract/notice-wire.ts'
import type { ConnectionReport, OperatorConnectionReport } from '../../../gateway/account/connections.ts'
import type { SlotRange } from '../../../indexer/ingest/slot-ranges.ts'
import type { Indexer } from '../../../indexer/service.ts'
import type { ChainChange } from '../../../localnet/chain-change.ts'
import type { Consensus } from '../../../localnet/options.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { SenderStats } from '../../../sender/receipts/stats.ts'
import type { DecodedReport } from '../../../shreds/decoded/slot-history.ts'
import type { ShredsStatus } from '../../../shreds/report/status.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { Reloaded } from '../config/reload.ts'
import type { SenderPart } from '../services/sender.ts'
import type { TopReport } from '../top/report.ts'
import type { LogRequest } from './log-lines.ts'
import type { SettingsReport } from './settings-report.ts'
import type { StatusReport } from './status.ts'

/**
 * What a running process offers on its control socket. The methods of a service are missing where a process of another service runs; in `serve` they
 * respond with null, or as noted, where the service is off. The command line may call a process of another version.
 */
export type ControlProtocol = {
  status(): StatusReport
  settings(): SettingsReport
  top(): TopReport
  logs(request: LogRequest): AsyncIterable<string>
  reload(): Reloaded
  drain(): Draining
  upstreams(): readonly NodeStatus[]
  'upstream-drain'(node: Named): Found
  'upstream-undrain'(node: Named): Found
  connections(filter?: { readonly subscription?: string }): ConnectionList
  'connection-close'(connection: Named): Found
  shreds(): ShredsStatus | null
  decoded(): DecodedReport | null
  'tip-stats'(): TipStats
  indexer(): IndexerStatus | null
  'indexer-query'(query: { readonly query: string; readonly format: string }): QueryResponse | null
  'indexer-backfill'(range: SlotRange): { readonly outcome: ReturnType<Indexer['backfill']> | undefined }
  'indexer-backfill-stop'(): object
  notices(): readonly ListedNotice[]
  'notice-test'(): ListedNotice
  'localnet-set'(change: ChainChange): ChainSettings
}

/** Implementations of these methods. */
export type ControlMethodsOf<Name extends keyof ControlProtocol> = ControlMethods<Pick<ControlProtocol, Name>>

/** What a gateway thread implements: of the connections of all threads, its own. */
export type GatewayControlProtocol = Pick<ControlProtocol, 'connections' | 'connection-close'> & {
  /** Called by another gateway thread, for a customer. */
  'connections-of'(owner: { readonly subscription: string }): readonly ConnectionReport[]
  'close-connection-of'(connection: { readonly subscription: string; readonly id: string }): boolean
}

type Named = { readonly name: string }
type Found = { readonly found: boolean }

export type Draining = {
  readonly draining: true
  readonly pid: number
  /** Whether the process leaves a stop report. */
  readonly reportsStop: boolean
  /** Usage rows that are not in the store yet. */
  readonly waitingRows: number
}

/** The oldest first; `total` also counts those beyond the maximum of the list. */
export type ConnectionList = { readonly total: number; readonly connections: readonly OperatorConnectionReport[] }

/** Without a sender there are no paths, and `accepted` is undefined. */
export type TipStats = (SenderStats | { readonly accepted?: undefined }) & {
  readonly pathStates: ReturnType<SenderPart['paths']>
  readonly schedule?: SenderPart['schedule']
}

export type IndexerStatus = ReturnType<Indexer['status']>
export type QueryResponse =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly message: string }

/** The settings from the next slot on. */
export type ChainSettings = { readonly slotMs: number; readonly consensus: Consensus; readonly fromSlot: number }
