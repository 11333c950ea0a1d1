import type { Caller } from '../../access/callers.ts'
import type { Clock } from '../../core/clock.ts'
import { createSlicedChecks, type SliceTurns } from '../../platform/process/sliced-checks.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import { WsCloseCode } from '../../platform/ws/close-codes.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Connections, OpenConnection } from '../account/connections.ts'
import type { StreamMeter } from '../metrics.ts'
import { recordRefusals } from '../refusal.ts'
import { PubSubClient, type PubSubClientDeps } from './client.ts'
import type { AdmittedHandshake } from './handshake.ts'
import { PubSubRequestHandler } from './request-handler.ts'

/** The clients of the server that are connected. */
export type PubSubClients = Disposable & {
  serve(connection: WsConnection, handshake: AdmittedHandshake): void
  /** Checks the tokens of all clients again, each token once, however many connections it has; in slices of time. */
  renewAll(): void
}

export type PubSubClientsDeps = Omit<PubSubClientDeps, 'requestHandler' | 'onRefused'> & {
  readonly clock: Clock
  readonly upstreams: Pick<Upstreams, 'usesShared'>
  readonly connections: Pick<Connections, 'enter'>
  readonly meter: StreamMeter
  readonly refusals?: RefusalRecorder | undefined
  readonly turns?: SliceTurns | undefined
}

export function createPubSubClients(deps: PubSubClientsDeps): PubSubClients {
  const { access, upstreams, connections, clock, meter } = deps
  /** By token, with whether the subscription used the shared nodes when the client connected. */
  const clients = new Map<string, Map<PubSubClient, boolean>>()
  const clientDeps = {
    ...deps,
    requestHandler: new PubSubRequestHandler(deps),
    onRefused: recordRefusals(deps.refusals, 'ws'),
  }
  const checks = createSlicedChecks(renewClients, deps.turns)

  function renewClients(tokenSha256: string): void {
    const own = clients.get(tokenSha256)
    if (own === undefined) return
    const caller = access.renew(tokenSha256, 'bundle', clock.nowMs())
    for (const [client, usedShared] of [...own]) {
      client.renew(caller)
      // In the other direction no move is needed: losing the dedicated nodes moves its subscriptions to the shared ones.
      if (usedShared && !upstreams.usesShared(client.caller.nodeUser)) client.move()
    }
  }

  function add(client: PubSubClient, { tokenSha256, nodeUser }: Caller): void {
    const own = clients.get(tokenSha256) ?? new Map<PubSubClient, boolean>()
    clients.set(tokenSha256, own.set(client, upstreams.usesShared(nodeUser)))
  }

  function remove(client: PubSubClient, { tokenSha256 }: Caller): void {
    const own = clients.get(tokenSha256)
    own?.delete(client)
    if (own?.size === 0) clients.delete(tokenSha256)
  }

  return {
    serve(connection, handshake) {
      const { caller, permit } = handshake
      const client = new PubSubClient(connection, handshake, clientDeps)
      add(client, caller)
      meter.open.inc()
      connection.onSent((bytes) => access.countBytes(caller, 'ws', bytes))
      const leave = connections.enter(new ListedClient(client, handshake))
      connection.onClose((code, message) => {
        remove(client, caller)
        permit.release()
        meter.open.dec()
        leave({ code, message })
      })
    },
    renewAll: () => checks.check(clients.keys()),
    [Symbol.dispose]: () => checks[Symbol.dispose](),
  }
}

/** A client in the list of open connections. */
class ListedClient implements OpenConnection {
  readonly interface = 'ws'
  readonly #client: PubSubClient
  readonly #handshake: AdmittedHandshake

  constructor(client: PubSubClient, handshake: AdmittedHandshake) {
    this.#client = client
    this.#handshake = handshake
  }

  get subscriptionId(): string {
    return this.#handshake.caller.subscription.id
  }

  get remoteAddress(): string {
    return this.#handshake.remoteAddress
  }

  subscriptions(): number {
    return this.#client.subscriptions.size
  }

  bytesOut(): number {
    return this.#client.connection.bytesOut
  }

  /** Solana clients do not reconnect after 1000, which is what the owner wants here. */
  close(): void {
    this.#client.connection.close(WsCloseCode.normal, 'closed by the owner of the subscription')
  }
}
