import assert from 'node:assert/strict'
import type { Clock } from '../core/clock.ts'
import { ServiceError } from '../core/error.ts'
import type { Random } from '../core/random.ts'
import type { Secret } from '../platform/config/secret-ref.ts'
import { createHttpPool, type HttpPool } from '../platform/http/client/pool.ts'
import {
  createPinnedAddress,
  type PinnedAddress,
  type PinnedAddressDeps,
  parseRemoteAddress,
} from '../platform/net/pinned-address.ts'
import { type AddressBackoff, createAddressBackoff } from './address-backoff.ts'
import { type Breaker, createBreaker } from './breaker.ts'
import { createSlotHealth, type SlotHealth } from './health.ts'
import type { UpstreamsOptions } from './options.ts'
import type { Candidate } from './pick.ts'

export type ServerKind = 'rpc' | 'ws' | 'grpc'
export type NodeState = 'healthy' | 'lagging' | 'failing' | 'drained'

/** Where one of a node's services is and what it wants to see. The headers hold the credential and are never printed. */
export type Server = {
  readonly address: PinnedAddress
  readonly headers: Readonly<Record<string, string>>
  readonly backoff: AddressBackoff
}

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
  /** What posts calls to it; the simulator has nodes of its own making. */
  readonly createHttp?: typeof createHttpPool
}

/** One node behind the gateway: its doors, what is known of its health, and how busy it is. */
export type UpstreamNode = Disposable & {
  readonly name: string
  /** What its metrics go by. */
  readonly label: string
  readonly http: HttpPool | undefined
  readonly ws: Server | undefined
  readonly grpc: Server | undefined
  readonly breaker: Breaker
  readonly health: SlotHealth
  /** What `pick` sees of it, for each kind of door. */
  readonly candidates: Readonly<Record<ServerKind, NodeCandidate>>
  isDrained: boolean
  /** The last thing that went wrong, in words without address and secret. */
  lastFailure: string
  /** Subscriptions and streams on it. */
  readonly open: { ws: number; grpc: number }
  /** A WebSocket connection to it stands. */
  isWsUp: boolean
  /** Moving average of answered calls; undefined before the first. */
  readonly latencyMs: number | undefined
  responded(latencyMs: number): void
  state(): { readonly state: NodeState; readonly reason: string }
  /** Called when the breaker wants a probe, and when the state may have changed. */
  onHalfOpen: () => void
  onChange: () => void
}

export type NodeCandidate = Candidate & { readonly node: UpstreamNode }

const HTTP = ['http:', 'https:']
const WS = ['ws:', 'wss:']
/** Weight of a new answer in the average. */
const LATENCY_SHARE = 0.1

export function createNode(spec: NodeSpec, options: UpstreamsOptions, deps: NodeDeps): UpstreamNode {
  const { clock, random } = deps
  const headers = credentialHeaders(spec)
  const rpc = openServer(spec.rpc, HTTP)
  const http =
    rpc &&
    (deps.createHttp ?? createHttpPool)(
      {
        headers,
        connectionsMax: options.connections.rpcPerNodeMax,
        waitingMax: options.connections.rpcWaitingMax,
        ca: deps.ca,
      },
      { clock, address: rpc.address },
    )
  const health = createSlotHealth(options.health)
  const breaker = createBreaker(options.breaker, {
    clock,
    random,
    onHalfOpen: () => node.onHalfOpen(),
    onChange: () => node.onChange(),
  })
  const open = { ws: 0, grpc: 0 }
  let latencyMs: number | undefined

  function openServer(text: string | undefined, protocols: readonly string[]): Server | undefined {
    if (text === undefined) return undefined
    const remote = parseRemoteAddress(text, protocols)
    assert(remote !== undefined, `the address of node ${spec.name} was checked before`)
    const { allowPrivate } = spec
    const address = createPinnedAddress(remote, { allowPrivate }, deps.lookup ? { lookup: deps.lookup } : {})
    return { address, headers, backoff: createAddressBackoff(options.breaker, deps) }
  }

  function candidate(hasServer: () => boolean, work: () => number): NodeCandidate {
    return new ServerCandidate(
      () => node,
      hasServer,
      () => work() / spec.weight,
    )
  }

  const ws = openServer(spec.ws, WS)
  const grpc = openServer(spec.grpc, HTTP)
  const node: UpstreamNode = {
    name: spec.name,
    label: spec.label,
    http,
    ws,
    grpc,
    breaker,
    health,
    open,
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
      if (breaker.state !== 'closed') return { state: 'failing', reason: node.lastFailure }
      if (health.lagReason === 'behind-best')
        return { state: 'lagging', reason: `${health.lagSlots} slots behind the best` }
      if (health.lagReason === 'behind-own-shreds') {
        return { state: 'lagging', reason: `${health.shredSlot - health.slot} slots behind its own shreds` }
      }
      return { state: 'healthy', reason: health.slot === 0 ? 'slot not known yet' : '' }
    },
    onHalfOpen: () => {},
    onChange: () => {},
    [Symbol.dispose]() {
      breaker[Symbol.dispose]()
      http?.[Symbol.dispose]()
    },
  }
  return node
}

/** One class for all, so that the runtime knows its getters wherever nodes are compared. */
class ServerCandidate implements NodeCandidate {
  readonly #nodeOf: () => UpstreamNode
  readonly #hasServer: () => boolean
  readonly #load: () => number

  constructor(nodeOf: () => UpstreamNode, hasServer: () => boolean, load: () => number) {
    this.#nodeOf = nodeOf
    this.#hasServer = hasServer
    this.#load = load
  }

  get node(): UpstreamNode {
    return this.#nodeOf()
  }

  get isAvailable(): boolean {
    const { isDrained, breaker } = this.node
    return !isDrained && breaker.state === 'closed' && this.#hasServer()
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
    throw new ServiceError('secret-invalid', `the credential of node ${name} cannot stand in a header`, {
      fix: 'Check the file or variable it is read from for line breaks and unusual characters.',
    })
  }
  const isBare = credentialHeader === 'authorization' && !text.includes(' ')
  return { [credentialHeader]: isBare ? `Bearer ${text}` : text }
}
