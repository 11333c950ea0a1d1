import assert from 'node:assert/strict'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { Writable } from '../core/writable.ts'
import { credentialText } from '../platform/config/credential-text.ts'
import type { Secret } from '../platform/config/secret-ref.ts'
import { createHttpPool, type HttpPool, type HttpPoolOptions } from '../platform/http/client/pool.ts'
import {
  createPinnedAddress,
  type PinnedAddress,
  type PinnedAddressDeps,
  parseRemoteAddress,
} from '../platform/net/pinned-address.ts'
import { type AddressBackoff, createAddressBackoff } from './address-backoff.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import { createSlotHealth, type SlotHealth } from './health.ts'
import { lagLimitsOf } from './lag-limits.ts'
import type { UpstreamsOptions } from './options.ts'
import type { Candidate } from './pool/pick.ts'

export type EndpointKind = 'rpc' | 'ws' | 'grpc'
export type NodeState = 'healthy' | 'lagging' | 'failing' | 'drained'

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

const HTTP = ['http:', 'https:']
const WS = ['ws:', 'wss:']
/** A probe sends so many requests at a time. */
const PROBE_CONNECTIONS = { connectionsMax: 3, waitingMax: 3 }
/** Weight of a new sample in the average. */
const LATENCY_SHARE = 0.1

/** Without events: of a node that no pool owns. */
const NO_EVENTS: NodeEvents = { requestProbe() {}, onSilent() {}, onChange() {} }

export function createNode(
  spec: NodeSpec,
  options: UpstreamsOptions,
  deps: NodeDeps,
  events: NodeEvents = NO_EVENTS,
): UpstreamNode {
  const { clock, random } = deps
  const headers = credentialHeaders(spec)
  const endpointAt = (address: string | undefined, protocols: readonly string[]) =>
    openEndpoint(spec, { address, protocols, headers }, options, deps)
  const rpc = endpointAt(spec.rpc, HTTP)
  const openHttp = (connections: Pick<HttpPoolOptions, 'connectionsMax' | 'waitingMax'>) =>
    rpc &&
    (deps.createHttp ?? createHttpPool)({ headers, ca: deps.ca, ...connections }, { clock, address: rpc.address })
  const { rpcPerNodeMax, rpcWaitingMax } = options.connections
  const http = openHttp({ connectionsMax: rpcPerNodeMax, waitingMax: rpcWaitingMax })
  const ws = endpointAt(spec.ws, WS)
  const grpc = endpointAt(spec.grpc, HTTP)
  const { requestProbe, onChange } = events
  const breaker = createBreaker(options.breaker, { clock, random, requestProbe, onChange })
  const openStreams = createOpenStreams()

  const candidate = (
    hasEndpoint: () => boolean,
    work: () => number,
    { isRefusing = never, isSuspect = never }: Partial<EndpointReadings>,
  ): NodeCandidate =>
    new EndpointCandidate(() => node, { hasEndpoint, isRefusing, isSuspect, load: () => work() / node.weight })

  const node: Writable<UpstreamNode> = {
    name: spec.name,
    label: spec.label,
    http,
    openProbeHttp: () => openHttp(PROBE_CONNECTIONS),
    ws,
    grpc,
    breaker,
    health: createSlotHealth(lagLimitsOf(options.health), deps.slotMs),
    candidates: {
      rpc: candidate(
        () => http !== undefined,
        () => http?.inFlight ?? 0,
        { isSuspect: () => breaker.isSuspect },
      ),
      ws: candidate(
        () => node.isWsUp && ws?.backoff.isActive === false,
        () => openStreams.ws,
        { isRefusing: () => ws?.refusals.isActive === true },
      ),
      grpc: candidate(
        () => grpc !== undefined && !grpc.backoff.isActive,
        () => openStreams.grpc,
        { isRefusing: () => grpc?.refusals.isActive === true },
      ),
    },
    weight: spec.weight,
    setWeight(weight) {
      node.weight = weight
    },
    isDrained: false,
    setDrained(isDrained) {
      node.isDrained = isDrained
      onChange()
    },
    heardAtMs: Number.NEGATIVE_INFINITY,
    recordHeard(nowMs) {
      node.heardAtMs = nowMs
      if (!node.isSilent) return
      node.isSilent = false
      onChange()
    },
    isSilent: false,
    // How calls leave a silent node: a probe finds it silent, `onSilent` of its pool calls `http.giveUp`, which fails the exchanges of calls that may
    // move with the cause `silent`, and `#settleFailure` of http-call.ts retries them on another node.
    markSilent(silentMs) {
      if (node.isSilent) return
      node.isSilent = true
      node.lastFailure = `no response for ${silentMs} ms`
      onChange()
      events.onSilent()
    },
    lastFailure: '',
    setLastFailure(reason) {
      node.lastFailure = reason
    },
    isWsUp: false,
    isWsDown: false,
    setWs({ isUp, hasFailed }) {
      const isDown = !isUp && (hasFailed || node.isWsDown)
      const isChanged = isDown !== node.isWsDown
      node.isWsUp = isUp
      node.isWsDown = isDown
      if (isChanged) onChange()
    },
    openStreams,
    latencyMs: undefined,
    recordLatency(tookMs) {
      const { latencyMs } = node
      node.latencyMs = latencyMs === undefined ? tookMs : latencyMs + LATENCY_SHARE * (tookMs - latencyMs)
    },
    state: () => stateOf(node),
    [Symbol.dispose]() {
      breaker[Symbol.dispose]()
      http?.[Symbol.dispose]()
    },
  }
  return node
}

function stateOf(node: UpstreamNode): ReturnType<UpstreamNode['state']> {
  const { health } = node
  if (node.isDrained) return { state: 'drained', reason: 'by the operator' }
  if (node.breaker.state !== 'closed' || node.isSilent) return { state: 'failing', reason: node.lastFailure }
  if (health.lagReason === 'behind-best')
    return { state: 'lagging', reason: `${health.lagSlots} slots behind the best` }
  if (health.lagReason === 'ahead-of-all') {
    return { state: 'lagging', reason: `its slot ${health.slot} is far above those of all other nodes` }
  }
  if (health.lagReason === 'no-slot') return { state: 'lagging', reason: 'it responds to getSlot without a slot' }
  if (health.lagReason === 'behind-own-shreds') {
    return { state: 'lagging', reason: `${health.shredSlot - health.slot} slots behind its own shreds` }
  }
  if (node.isWsDown) return { state: 'healthy', reason: 'no WebSocket connection' }
  if (node.breaker.isSuspect)
    return { state: 'healthy', reason: `it fails many calls (${node.lastFailure}), though its probes succeed` }
  return { state: 'healthy', reason: health.slot === 0 ? 'slot not known yet' : '' }
}

function createOpenStreams(): OpenStreams {
  const open: Writable<OpenStreams> = {
    ws: 0,
    grpc: 0,
    add(kind) {
      open[kind] += 1
    },
    remove(kind, count = 1) {
      open[kind] -= count
    },
  }
  return open
}

type EndpointSpec = {
  readonly address: string | undefined
  readonly protocols: readonly string[]
  readonly headers: Endpoint['headers']
}

function openEndpoint(
  { name, allowPrivate }: NodeSpec,
  { address, protocols, headers }: EndpointSpec,
  options: UpstreamsOptions,
  deps: NodeDeps,
): Endpoint | undefined {
  if (address === undefined) return undefined
  const remote = parseRemoteAddress(address, protocols, { mayHaveQuery: true })
  assert(remote !== undefined, `the address of node ${name} was checked before`)
  const pinned = createPinnedAddress(remote, { allowPrivate }, { lookup: deps.lookup, clock: deps.clock })
  const backoff = createAddressBackoff(options.breaker, deps)
  return { address: pinned, headers, backoff, refusals: createAddressBackoff(options.breaker, deps) }
}

const never = (): boolean => false

type EndpointReadings = {
  readonly hasEndpoint: () => boolean
  readonly isRefusing: () => boolean
  readonly isSuspect: () => boolean
  readonly load: () => number
}

/** A class, so that V8 sees one shape wherever candidates are compared. */
class EndpointCandidate implements NodeCandidate {
  readonly #nodeOf: () => UpstreamNode
  readonly #endpoint: EndpointReadings

  constructor(nodeOf: () => UpstreamNode, endpoint: EndpointReadings) {
    this.#nodeOf = nodeOf
    this.#endpoint = endpoint
  }

  get node(): UpstreamNode {
    return this.#nodeOf()
  }

  get isAvailable(): boolean {
    const { isDrained, breaker } = this.node
    return !isDrained && breaker.state === 'closed' && this.#endpoint.hasEndpoint()
  }

  get isSilent(): boolean {
    return this.node.isSilent || this.#endpoint.isRefusing()
  }

  get isSuspect(): boolean {
    return this.#endpoint.isSuspect()
  }

  get isLagging(): boolean {
    return this.node.health.isLagging
  }

  get slot(): number {
    const { lagReason, slot } = this.node.health
    // A slot far above all others is not credible: it does not count as having reached the client's slot.
    return lagReason === 'ahead-of-all' ? 0 : slot
  }

  get load(): number {
    return this.#endpoint.load()
  }
}

function credentialHeaders({ name, credential, credentialHeader }: NodeSpec): Readonly<Record<string, string>> {
  if (credential === undefined) return {}
  const text = credentialText(credential, `the credential of node ${name}`, { node: name })
  const isBare = credentialHeader === 'authorization' && !text.includes(' ')
  return { [credentialHeader]: isBare ? `Bearer ${text}` : text }
}
