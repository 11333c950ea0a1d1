import type { Clock } from '../core/clock.ts'
import { type GrpcLoss, type GrpcSession, openGrpcSession } from '../platform/grpc/client.ts'
import { GrpcCode } from '../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../platform/grpc/stream.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { LossReason, UpstreamsMetrics } from './metrics.ts'
import type { UpstreamNode } from './node.ts'
import type { ConnectionOptions } from './options.ts'
import type { ClientView, Pool } from './pool/pool.ts'

/** The gRPC connections to the nodes of a pool, which are added and removed here too, opened on demand. */
export type GrpcLinks = Disposable & {
  /** Opens a call to the best available node. Where it cannot be reached, one other node is tried. */
  open(
    path: string,
    metadata: Readonly<Record<string, string | undefined>>,
    options?: {
      readonly view?: ClientView | undefined
      readonly except?: UpstreamNode | undefined
      /** A stream ends when its node is removed; other calls finish. */
      readonly isStream?: boolean | undefined
      /** Whether the caller would continue it at another node now. If so, it ends when its node is drained and another one is available. */
      readonly isMovable?: (() => boolean) | undefined
      /** Only the node of this name, where it is available. */
      readonly only?: string | undefined
    },
  ): Promise<GrpcOpened>
  /** Whether any node has a gRPC address. */
  readonly hasNodes: boolean
  /** A node that was added to the pool. */
  add(node: UpstreamNode): void
  /** Ends the streams of a drained node that are continued elsewhere, if another node is available. The others stay. */
  leave(node: UpstreamNode): void
  /** Ends its streams and takes no more calls. Its other calls finish; disposing the result closes the connections. */
  remove(node: UpstreamNode): Disposable
  countOf(node: UpstreamNode): { readonly connections: number; readonly streams: number }
}

export type GrpcOpened =
  | { readonly ok: true; readonly stream: GrpcStream; readonly node: UpstreamNode }
  | { readonly ok: false; readonly reason: 'no-upstream' }

export type GrpcLinksDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: UpstreamsMetrics
  readonly ca?: string | undefined
}

/**
 * The metadata of a customer that is forwarded. An allow-list, so that no token can pass. `grpc-encoding` is not in it: requests are forwarded
 * uncompressed, and a node that does not know the encoding would refuse the call.
 */
const FORWARDED = ['grpc-timeout', 'grpc-accept-encoding', 'user-agent', 'x-request-snapshot'] as const

/** A longer value is not forwarded. nginx before a node closes a connection, and with it the streams of all customers, for a field of more than 8 KiB. */
const FORWARDED_BYTES_MAX = 1024

export function forwardedMetadata(metadata: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name of FORWARDED) {
    const value = metadata[name]
    if (value !== undefined && value.length <= FORWARDED_BYTES_MAX) passed[name] = value
  }
  return passed
}

/**
 * Connections to one node that it has gracefully closed, as a proxy does after some time or number of calls, and that still carry streams. They take
 * no new calls, so they do not count against `grpcPerNodeMax`. At this number the oldest is closed: its streams end as with a lost node.
 */
const DRAINING_PER_NODE_MAX = 64

/** New connections that take no call from the start, because their node allows no streams or sends GOAWAY at once; then the call is not opened there. */
const REFUSING_MAX = 2

/** The stream that every node has; other methods a node may lack. */
const SUBSCRIBE = '/geyser.Geyser/Subscribe'

type OpenedCall = {
  readonly path: string
  readonly metadata: Readonly<Record<string, string | undefined>>
  readonly isStream: boolean
  readonly isMovable: (() => boolean) | undefined
}

type NodeSessions = {
  readonly open: Set<GrpcSession>
  opening: Promise<GrpcSession | undefined> | undefined
  readonly streams: Set<GrpcStream>
  readonly movable: Map<GrpcStream, () => boolean>
  /** What ends there before it has begun. */
  refusing: 'streams' | 'calls' | undefined
}

type Refusal = { readonly end: GrpcEnd; readonly isStream: boolean }

export function createGrpcLinks(
  pool: Pool,
  options: ConnectionOptions,
  { log, clock, metrics, ca }: GrpcLinksDeps,
): GrpcLinks {
  const sessions = new Map<UpstreamNode, NodeSessions>()
  let isClosed = false

  async function connect(node: UpstreamNode, ofNode: NodeSessions): Promise<GrpcSession | undefined> {
    const { grpc: server } = node
    if (server === undefined || isClosed) return undefined
    const meter = metrics.of(node.label)
    const opening = await openGrpcSession({ metadata: server.headers, ca }, { clock, address: server.address })
    if (!opening.ok) {
      server.backoff.recordFailure()
      node.setLastFailure(opening.loss.message)
      meter.grpcLosses[reasonOf(opening.loss)].inc()
      return undefined
    }
    const { session } = opening
    if (isClosed || sessions.get(node) !== ofNode) {
      session[Symbol.dispose]()
      return undefined
    }
    server.backoff.recordSuccess()
    ofNode.open.add(session)
    session.onClose((loss) => {
      ofNode.open.delete(session)
      meter.grpcLosses[reasonOf(loss)].inc()
    })
    return session
  }

  /** The connection with the fewest calls among those that can carry one more. */
  function usableOf({ open }: NodeSessions): GrpcSession | undefined {
    const [least] = [...open].filter(({ isUsable }) => isUsable).toSorted((a, b) => a.openStreams - b.openStreams)
    return least
  }

  /** One more connection, where the node may have one; concurrent calls wait for the same. */
  async function connectOnceMore(node: UpstreamNode, ofNode: NodeSessions): Promise<GrpcSession | undefined> {
    const draining = [...ofNode.open].filter(({ isDraining }) => isDraining)
    if (ofNode.open.size - draining.length >= options.grpcPerNodeMax) return undefined
    if (draining.length >= DRAINING_PER_NODE_MAX) draining[0]?.[Symbol.dispose]()
    ofNode.opening ??= connect(node, ofNode).finally(() => {
      ofNode.opening = undefined
    })
    return ofNode.opening
  }

  /** Opens the call on a connection of the node. Nothing is awaited between the choice of the connection and the call: there may be room for one only. */
  async function openAt(node: UpstreamNode, how: OpenedCall): Promise<GrpcStream | undefined> {
    for (let refusing = 0; refusing < REFUSING_MAX; ) {
      const ofNode = sessions.get(node)
      // The node may have been removed in the meantime.
      if (ofNode === undefined) return undefined
      const usable = usableOf(ofNode)
      if (usable !== undefined) return openOn(usable, { ...how, node, ofNode })
      const opened = await connectOnceMore(node, ofNode)
      if (opened === undefined) return undefined
      // Where other calls were faster, the next connection is for this one.
      if (!opened.isUsable && opened.openStreams === 0) refusing += 1
    }
    return undefined
  }

  function openOn(session: GrpcSession, call: OpenedCall & { node: UpstreamNode; ofNode: NodeSessions }): GrpcStream {
    const { path, metadata, isStream, isMovable, node, ofNode } = call
    const meter = metrics.of(node.label)
    const stream = session.open(path, forwardedMetadata(metadata))
    node.openStreams.add('grpc')
    meter.grpcStreams.inc()
    if (isStream) ofNode.streams.add(stream)
    if (isMovable !== undefined) ofNode.movable.set(stream, isMovable)
    let hasBegun = false
    stream.onHeaders(() => {
      hasBegun = true
      // A node may respond to calls, and take no streams.
      if (isStream || ofNode.refusing === 'calls') accepted(node, ofNode)
    })
    stream.onEnd((end) => {
      if (!hasBegun && isFaultOfNode(end, call)) refused(node, ofNode, { end, isStream })
      ofNode.streams.delete(stream)
      ofNode.movable.delete(stream)
      node.openStreams.remove('grpc')
      meter.grpcStreams.dec()
    })
    return stream
  }

  function accepted(node: UpstreamNode, ofNode: NodeSessions): void {
    node.grpc?.refusals.recordSuccess()
    if (ofNode.refusing !== undefined) log.info({ upstream: node.name }, 'upstream accepts gRPC calls again')
    ofNode.refusing = undefined
  }

  /** Such a node has the fewest streams, so that every new one would go there. Calls at the same time are one refusal. */
  function refused(node: UpstreamNode, ofNode: NodeSessions, { end, isStream }: Refusal): void {
    if (node.grpc?.refusals.isActive === false) node.grpc.refusals.recordFailure()
    if (ofNode.refusing === undefined)
      log.warn({ upstream: node.name, code: end.status.code }, 'upstream ends gRPC calls at once')
    if (isStream) ofNode.refusing = 'streams'
    else ofNode.refusing ??= 'calls'
  }

  function availableNode(name: string, except: UpstreamNode | undefined): UpstreamNode | undefined {
    return pool.nodes.find((node) => node.name === name && node !== except && node.candidates.grpc.isAvailable)
  }

  return {
    get hasNodes() {
      return sessions.size > 0
    },
    async open(path, metadata, { view, except, isStream = false, isMovable, only } = {}) {
      let tried = except
      for (let attempt = 0; attempt < 2; attempt++) {
        const node = only === undefined ? pool.pick('grpc', view, tried) : availableNode(only, tried)
        if (node === undefined) break
        const stream = await openAt(node, { path, metadata, isStream, isMovable })
        if (stream !== undefined) return { ok: true, stream, node }
        tried = node
      }
      if (only === undefined) metrics.noUpstream.inc()
      return { ok: false, reason: 'no-upstream' }
    },
    add(node) {
      if (node.grpc === undefined) return
      sessions.set(node, {
        open: new Set(),
        opening: undefined,
        streams: new Set(),
        movable: new Map(),
        refusing: undefined,
      })
    },
    leave(node) {
      if (!pool.nodes.some((other) => other !== node && other.candidates.grpc.isAvailable)) return
      for (const [stream, isMovable] of [...(sessions.get(node)?.movable ?? [])]) if (isMovable()) stream.cancel()
    },
    remove(node) {
      const ofNode = sessions.get(node)
      sessions.delete(node)
      for (const stream of [...(ofNode?.streams ?? [])]) stream.cancel()
      return {
        [Symbol.dispose]() {
          for (const session of [...(ofNode?.open ?? [])]) session[Symbol.dispose]()
        },
      }
    },
    countOf(node) {
      return { connections: sessions.get(node)?.open.size ?? 0, streams: node.openStreams.grpc }
    },
    [Symbol.dispose]() {
      isClosed = true
      for (const { open } of sessions.values()) for (const session of [...open]) session[Symbol.dispose]()
    },
  }
}

/** Whether a call that ended without response headers shows that its node takes no such calls; a customer may have caused any other status. */
function isFaultOfNode(end: GrpcEnd, { path, isStream }: Pick<OpenedCall, 'path' | 'isStream'>): boolean {
  const { code } = end.status
  if (!end.isFromServer) return code !== GrpcCode.cancelled
  // Other streams may need a permission of their own, and have a limit of their own.
  if (isStream && path !== SUBSCRIBE) return code === GrpcCode.unauthenticated
  if (grpcRefusalOf(end) !== undefined) return true
  return path === SUBSCRIBE && (code === GrpcCode.unavailable || code === GrpcCode.unimplemented)
}

/**
 * Why a node has refused the gateway rather than the customer of the call: for the credential that all calls carry, or for a limit that they share. A call
 * that ends with RESOURCE_EXHAUSTED after it has begun ends for what its customer does.
 */
export function grpcRefusalOf({ status, isFromServer, isTrailersOnly }: GrpcEnd): 'credential' | 'limit' | undefined {
  if (!isFromServer) return undefined
  if (status.code === GrpcCode.unauthenticated || status.code === GrpcCode.permissionDenied) return 'credential'
  return status.code === GrpcCode.resourceExhausted && isTrailersOnly === true ? 'limit' : undefined
}

function reasonOf({ cause }: GrpcLoss): LossReason {
  return cause === 'address' ? 'connect' : cause
}
