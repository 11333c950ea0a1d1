import type { AccessUpdate } from '../../../access/thread-access.ts'
import type { ConnectionReport } from '../../../gateway/account/connections.ts'
import type { DeliveryReport, TokenReports, UsageQuery, UsageReport } from '../../../gateway/account/reports.ts'
import type { Offered, PostedError, ThreadChannel } from '../../../platform/process/thread-channel.ts'
import type { SharedFamily } from '../../../platform/telemetry/metric-memory.ts'
import type { RefusedRequest } from '../../../platform/telemetry/refusal-log.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { ProbeResult } from '../../../upstreams/probes/probe.ts'
import type { Rendered } from '../documents/documents.ts'
import type { PageFile } from '../pages/bundle.ts'
import type { ThreadReady, ThreadReport } from './start-data.ts'

/** What the thread of a service offers to the control plane. */
export type ThreadSide = {
  readonly methods: {
    report(): ThreadReport
    'refresh-metrics'(): void
    'reload-nodes'(options: NodesOptions): void
    /** Runs a method of the control socket that the service implements. */
    control(call: { readonly method: string; readonly params: unknown }): unknown
    /** Resolves when the service has no clients any more. */
    drain(deadlineMs: number): void
    close(): void
  }
  readonly notifications: {
    'access-update'(update: AccessUpdate): void
    documents(rendered: Rendered): void
    'log-level'(level: string): void
    'drain-node'(change: { readonly node: string; readonly isDrained: boolean }): void
    /** The control plane probes the nodes for all threads. */
    'node-probed'(probed: { readonly key: string; readonly result: ProbeResult }): void
    'lame-duck'(): void
  }
}

/** What the control plane offers to every thread. */
export type ControlPlaneSide = {
  readonly methods: {
    /** What the last probe of a node has found. */
    'node-health'(key: string): ProbeResult | undefined
  }
  readonly notifications: {
    /** Every second until it serves: the start may take long, and its event loop runs. */
    alive(): void
    /** The service serves. */
    ready(ready: ThreadReady): void
    /** The service could not be started. */
    failed(error: PostedError): void
    /** Every second, as a heartbeat. */
    report(report: ThreadReport): void
    log(line: string): void
    metric(family: SharedFamily): void
    refused(refused: RefusedRequest): void
    degraded(health: { readonly part: string; readonly reason: string }): void
    recovered(part: string): void
    'probe-requested'(key: string): void
    /** A subscription has used up the part of its shared quota that this process has drawn. */
    'bookings-requested'(): void
    'child-started'(pid: number): void
    'child-ended'(pid: number): void
  }
}

/** What the control plane offers to gateway threads besides. */
export type ControlPlaneGatewaySide = {
  readonly methods: {
    'decoded-report'(): object | undefined
    'connections-in-other-threads'(subscription: string): readonly ConnectionReport[]
    'close-in-other-threads'(connection: { readonly subscription: string; readonly id: string }): boolean
    'account-usage'(request: UsageQuery & { readonly subscriptionId: string }): UsageReport
    'account-tokens'(subscriptionId: string): TokenReports
    'account-delivery'(subscriptionId: string): DeliveryReport
    'account-page'(): readonly PageFile[]
  }
  readonly notifications: Record<never, never>
}

/** From a thread to the control plane. */
export type ControlPlaneChannel = ThreadChannel<ControlPlaneSide & ControlPlaneGatewaySide>
/** From the control plane to a thread. */
export type ServiceChannel = ThreadChannel<ThreadSide>

export type GatewayMethods = Offered<ControlPlaneGatewaySide>['methods']
/** Those of the account endpoints and the account page. */
export type AccountMethods = Pick<GatewayMethods, Extract<keyof GatewayMethods, `account-${string}`>>
