import type { ThreadAccessStart } from '../../../access/thread-access.ts'
import type { LimitMemory } from '../../../gateway/limits.ts'
import type { SharedFamily } from '../../../platform/telemetry/metric-memory.ts'
import type { NodeStreamsMemory } from '../../../shreds/decoded/node-streams/follow-nodes.ts'
import type { NodeOptions } from '../../../upstreams/options.ts'
import type { NodeStatus } from '../../../upstreams/status.ts'
import type { ServiceSettings } from '../process/service-context.ts'

export type Address = { readonly host: string; readonly port: number }

/** What a thread is started with. Everything is plain data or shared memory. */
export type ThreadStart = {
  /** As in log lines, metrics and `sluice status`. */
  readonly name: string
  /** Its place in shared memory; a restarted thread keeps it. */
  readonly index: number
  readonly settings: ServiceSettings
  /** The nodes of the configuration, or the embedded chain. */
  readonly nodes: NodeOptions[]
  /** Missing for a service that takes no tokens. */
  readonly access: ThreadAccessStart | undefined
  readonly limits: LimitMemory
  readonly memory: SharedArrayBuffer
  /** The metrics of the instance before, which the next one continues. */
  readonly metrics: ReadonlyMap<string, SharedFamily>
  /** What the engine of ShredStream Decoded writes, where it runs. */
  readonly decodedOutput?: SharedArrayBuffer | undefined
  /** Where the streams of nodes are merged into it. */
  readonly decodedNodeStreams?: NodeStreamsMemory | undefined
  /** Nodes that the operator has taken out of rotation. */
  readonly drainedNodes: readonly string[]
}

/** Posted once, when the service of the thread serves. */
export type ThreadReady = {
  readonly addresses: Readonly<Record<string, Address>>
  /** What the control plane shows of the service. */
  readonly details: unknown
}

/** Posted every second: a heartbeat with the state of the nodes as this thread sees them. */
export type ThreadReport = { readonly nodes: readonly NodeStatus[] }
