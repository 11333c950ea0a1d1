import assert from 'node:assert/strict'
import type { Clock } from '../core/clock.ts'
import { ServiceError } from '../core/error.ts'
import type { Random } from '../core/random.ts'
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
import type { Candidate } from './pick.ts'

export type EndpointKind = 'rpc' | 'ws' | 'grpc'
export type NodeState = 'healthy' | 'lagging' | 'failing' | 'drained'

/** The address of one service of a node. The headers hold the credential, the path of the address may hold one; neither is ever printed. */
export type Endpoint = {
  readonly address: PinnedAddress
  readonly headers: Readonly<Record<string, string>>
  readonly backoff: AddressBackoff
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

/** One node behind the gateway: its endpoints, its health, and its load. */
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
  /** Its share of the load. */
  weight: number
  /** It has not responded to anything for `health.silentMs`. */
  readonly isSilent: boolean
  /** Monotonic time of its last response to a call or probe. */
  readonly heardAtMs: number
  heard(nowMs: number): void
  markSilent(silentMs: number): void
  /** What `pick` compares, for each kind of endpoint. */
  readonly candidates: Readonly<Record<EndpointKind, NodeCandidate>>
  isDrained: boolean
  /** The reason of the last failure, without address and secret. */
  lastFailure: string
  /** Open WebSocket subscriptions and gRPC streams. */
  readonly open: { ws: number; grpc: number }
  /** At least one WebSocket connection to it is open. */
  isWsUp: boolean
  /** Moving average over calls with a response; undefined before the first. */
  readonly latencyMs: number | undefined
  responded(latencyMs: number): void
  state(): { readonly state: NodeState; readonly reason: string }
  /** The breaker requests a probe. */
  onHalfOpen: () => void
  /** It has become silent: calls in flight may move to other nodes. */
  onSilent: () => void
  /** The state may have changed. */
  onChange: () => void
}

export type NodeCandidate = Candidate & { readonly node: UpstreamNode }

const HTTP = ['http:', 'https:']
const WS = ['ws:', 'wss:']
/** A probe sends so many requests at a time. */
const PROBE_CONNECTIONS = { connectionsMax: 3, waitingMax: 3 }
/** Weight of a new sample in the average. */
const LATENCY_SHARE = 0.1

export function createNode(spec: NodeSpec, options: UpstreamsOptions, deps: NodeDeps): UpstreamNode {
  const { clock, random } = deps
  const headers = credentialHeaders(spec)
  const rpc = openEndpoint(spec.rpc, HTTP)
  const openHttp = (connections: Pick<HttpPoolOptions, 'connectionsMax' | 'waitingMax'>) =>
    rpc &&
    (deps.createHttp ?? createHttpPool)({ headers, ca: deps.ca, ...connections }, { clock, address: rpc.address })
  const { rpcPerNodeMax, rpcWaitingMax } = options.connections
  const http = openHttp({ connectionsMax: rpcPerNodeMax, waitingMax: rpcWaitingMax })
  const health = createSlotHealth(lagLimitsOf(options.health), deps.slotMs)
  const breaker = createBreaker(options.breaker, {
    clock,
    random,
    onHalfOpen: () => node.onHalfOpen(),
    onChange: () => node.onChange(),
  })
  const open = { ws: 0, grpc: 0 }
  let latencyMs: number | undefined

  function openEndpoint(text: string | undefined, protocols: readonly string[]): Endpoint | undefined {
    if (text === undefined) return undefined
    const remote = parseRemoteAddress(text, protocols, { mayHaveQuery: true })
    assert(remote !== undefined, `the address of node ${spec.name} was checked before`)
    const { allowPrivate } = spec
    const address = createPinnedAddress(remote, { allowPrivate }, deps.lookup ? { lookup: deps.lookup } : {})
    return { address, headers, backoff: createAddressBackoff(options.breaker, deps) }
  }

  function candidate(hasEndpoint: () => boolean, work: () => number): NodeCandidate {
    return new EndpointCandidate(
      () => node,
      hasEndpoint,
      () => work() / node.weight,
    )
  }

  const ws = openEndpoint(spec.ws, WS)
  const grpc = openEndpoint(spec.grpc, HTTP)
  const node: Writable<UpstreamNode> = {
    name: spec.name,
    label: spec.label,
    http,
    openProbeHttp: () => openHttp(PROBE_CONNECTIONS),
    ws,
    grpc,
    breaker,
    health,
    open,
    weight: spec.weight,
    isSilent: false,
    heardAtMs: Number.NEGATIVE_INFINITY,
    heard(nowMs) {
      node.heardAtMs = nowMs
      if (!node.isSilent) return
      node.isSilent = false
      node.onChange()
    },
    markSilent(silentMs) {
      if (node.isSilent) return
      node.isSilent = true
      node.lastFailure = `no response for ${silentMs} ms`
      node.onChange()
      node.onSilent()
    },
    isDrained: false,
    isWsUp: false,
    lastFailure: '',
    candidates: {
      rpc: candidate(
        () => http !== undefined,
        () => http?.inFlight ?? 0,
      ),
      ws: candidate(
        () => node.isWsUp && ws?.backoff.isShut === false,
        () => open.ws,
      ),
      grpc: candidate(
        () => grpc !== undefined && !grpc.backoff.isShut,
        () => open.grpc,
      ),
    },
    get latencyMs() {
      return latencyMs
    },
    responded(tookMs) {
      latencyMs = latencyMs === undefined ? tookMs : latencyMs + LATENCY_SHARE * (tookMs - latencyMs)
    },
    state() {
      if (node.isDrained) return { state: 'drained', reason: 'by the operator' }
      if (breaker.state !== 'closed' || node.isSilent) return { state: 'failing', reason: node.lastFailure }
      if (health.lagReason === 'behind-best')
        return { state: 'lagging', reason: `${health.lagSlots} slots behind the best` }
      if (health.lagReason === 'behind-own-shreds') {
        return { state: 'lagging', reason: `${health.shredSlot - health.slot} slots behind its own shreds` }
      }
      return { state: 'healthy', reason: health.slot === 0 ? 'slot not known yet' : '' }
    },
    onHalfOpen: () => {},
    onSilent: () => {},
    onChange: () => {},
    [Symbol.dispose]() {
      breaker[Symbol.dispose]()
      http?.[Symbol.dispose]()
    },
  }
  return node
}

/** Its fields are set here only. */
type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

/** A class, so that V8 sees one shape wherever candidates are compared. */
class EndpointCandidate implements NodeCandidate {
  readonly #nodeOf: () => UpstreamNode
  readonly #hasEndpoint: () => boolean
  readonly #load: () => number

  constructor(nodeOf: () => UpstreamNode, hasEndpoint: () => boolean, load: () => number) {
    this.#nodeOf = nodeOf
    this.#hasEndpoint = hasEndpoint
    this.#load = load
  }

  get node(): UpstreamNode {
    return this.#nodeOf()
  }

  get isAvailable(): boolean {
    const { isDrained, breaker } = this.node
    return !isDrained && breaker.state === 'closed' && this.#hasEndpoint()
  }

  get isSilent(): boolean {
    return this.node.isSilent
  }

  get isLagging(): boolean {
    return this.node.health.isLagging
  }

  get slot(): number {
    return this.node.health.slot
  }

  get load(): number {
    return this.#load()
  }
}

function credentialHeaders({ name, credential, credentialHeader }: NodeSpec): Readonly<Record<string, string>> {
  if (credential === undefined) return {}
  const text = credential.reveal()
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text)) {
    throw new ServiceError('secret-invalid', `the credential of node ${name} is not a valid header value`, {
      fields: { node: name },
      fix: 'Check the file or variable it is read from for line breaks and unusual characters.',
    })
  }
  const isBare = credentialHeader === 'authorization' && !text.includes(' ')
  return { [credentialHeader]: isBare ? `Bearer ${text}` : text }
}
