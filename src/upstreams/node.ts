import type { NodeState } from '../contract/node-states.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { Secret } from '../platform/config/secret-ref.ts'
import type { createHttpPool, HttpPool } from '../platform/http/client/pool.ts'
import type { PinnedAddress, PinnedAddressDeps } from '../platform/net/pinned-address.ts'
import type { AddressBackoff } from './address-backoff.ts'
import type { Breaker } from './breaker.ts'
import type { SlotHealth } from './health.ts'
import type { Candidate } from './pool/pick.ts'

export type EndpointKind = 'rpc' | 'ws' | 'grpc'

/** The address of one service of a node. The headers hold the credential, the path of the address may hold one; neither is ever printed. */
export type Endpoint = {
  readonly address: PinnedAddress
  readonly headers: Readonly<Record<string, string>>
  readonly backoff: AddressBackoff
  /** Active while it ends or ignores what is opened there: it is used only where no other node is left. */
  readonly refusals: AddressBackoff
}

/** A node with its secrets resolved. An address may hold a secret in its path and query. */
export type NodeSpec = {
  readonly name: string
  readonly label: string
  readonly rpc: string | undefined
  readonly ws: string | undefined
  readonly grpc: string | undefined
  readonly credential: Secret | undefined
  readonly credentialHeader: string
  readonly allowPrivate: boolean
  readonly weight: number
}

export type NodeDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly lookup?: PinnedAddressDeps['lookup']
  /** Certificates to trust instead of the system's. */
  readonly ca?: string | undefined
  /** The HTTP client; the simulator passes its own. */
  readonly createHttp?: typeof createHttpPool
  /** The length of a slot, where it is learned. */
  readonly slotMs?: (() => number) | undefined
}

/** What a node reports to the pool that owns it. */
export type NodeEvents = {
  /** The breaker requests a probe. */
  readonly requestProbe: () => void
  /** It has become silent: calls in flight may move to other nodes. */
  readonly onSilent: () => void
  /** The state may have changed. */
  readonly onChange: () => void
}

/** One node behind the gateway: its endpoints, its health, and its load. Its fields change by its methods only. */
export type UpstreamNode = Disposable & {
  readonly name: string
  /** Its label in metrics. */
  readonly label: string
  readonly http: HttpPool | undefined
  /** Connections for its probes alone: where calls hold all others, a probe does not wait for them, and the node is not taken for a silent one. */
  openProbeHttp(): HttpPool | undefined
  readonly ws: Endpoint | undefined
  readonly grpc: Endpoint | undefined
  readonly breaker: Breaker
  readonly health: SlotHealth
  /** What `pick` compares, for each kind of endpoint. */
  readonly candidates: Readonly<Record<EndpointKind, NodeCandidate>>
  /** Its share of the load. */
  readonly weight: number
  setWeight(weight: number): void
  readonly isDrained: boolean
  setDrained(isDrained: boolean): void
  /** Monotonic time of its last response to a call or probe. */
  readonly heardAtMs: number
  recordHeard(nowMs: number): void
  /** It has not responded to anything for `health.silentMs`. */
  readonly isSilent: boolean
  markSilent(silentMs: number): void
  /** The reason of the last failure, without address and secret. */
  readonly lastFailure: string
  /** Whether the failure counts is recorded at the breaker. */
  setLastFailure(reason: string): void
  /** At least one WebSocket connection to it is open. */
  readonly isWsUp: boolean
  /** None is open, and the last attempt to open one has failed. */
  readonly isWsDown: boolean
  setWs(state: { readonly isUp: boolean; readonly hasFailed: boolean }): void
  readonly openStreams: OpenStreams
  /** Moving average over calls with a response; undefined before the first. */
  readonly latencyMs: number | undefined
  recordLatency(latencyMs: number): void
  state(): { readonly state: NodeState; readonly reason: string }
}

/** Open WebSocket subscriptions and gRPC streams. */
export type OpenStreams = {
  readonly ws: number
  readonly grpc: number
  add(kind: 'ws' | 'grpc'): void
  remove(kind: 'ws' | 'grpc', count?: number): void
}

export type NodeCandidate = Candidate & { readonly node: UpstreamNode }
