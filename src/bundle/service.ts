import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { HttpServer } from '../host/http-server.ts'
import type { ListenerOptions } from '../host/listener.ts'
import type { DoorMetrics } from '../host/listener-metrics.ts'
import type { Logger } from '../host/logger.ts'
import type { Upstreams } from '../upstreams/service.ts'
import { createForward } from './forward.ts'
import { startRpcDoor } from './http.ts'
import { createRpc } from './rpc.ts'

export type BundleDeps = {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly doorMetrics: (door: 'rpc') => DoorMetrics
}

export type Bundle = AsyncDisposable & {
  readonly rpc: { readonly host: string; readonly port: number }
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** The token opens the doors; the budget is one; the nodes behind answer. */
export async function startBundle(options: { readonly rpc: ListenerOptions }, deps: BundleDeps): Promise<Bundle> {
  const { access, upstreams, clock } = deps
  const log = deps.log.child({ part: 'bundle' })
  const rpc = createRpc({ access, clock, callUpstream: createForward(upstreams) })
  const http: HttpServer = await startRpcDoor(
    { listen: options.rpc },
    { rpc, access, log, clock, random: deps.random, health: () => healthOf(upstreams), ...deps.doorMetrics('rpc') },
  )
  return {
    rpc: http.address,
    beginLameDuck: () => http.beginLameDuck(),
    drain: (deadlineMs) => http.drain(deadlineMs),
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  }
}

function healthOf(upstreams: Upstreams): 'ok' | 'behind' | 'unknown' {
  const shared = upstreams.of(undefined)
  if (!shared.isAvailable) return 'unknown'
  return shared.slotsBehind === undefined ? 'ok' : 'behind'
}
