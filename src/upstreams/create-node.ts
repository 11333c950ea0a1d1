import type { Writable } from '../core/records.ts'
import { createHttpPool, type HttpPoolOptions } from '../platform/http/client/pool.ts'
import { createBreaker } from './breaker.ts'
import { credentialHeaders, openEndpoint } from './endpoint.ts'
import { createSlotHealth } from './health.ts'
import { lagLimitsOf } from './lag-limits.ts'
import type { NodeCandidate, NodeDeps, NodeEvents, NodeSpec, OpenStreams, UpstreamNode } from './node.ts'
import { EndpointCandidate, type EndpointReadings } from './node-candidate.ts'
import { stateOf } from './node-state.ts'
import type { UpstreamsOptions } from './options.ts'

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

const never = (): boolean => false
