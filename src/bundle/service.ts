import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import type { ListenerOptions } from '../host/listener.ts'
import type { DoorMetrics } from '../host/listener-metrics.ts'
import type { Logger } from '../host/logger.ts'
import type { Upstreams } from '../upstreams/service.ts'
import { createForward } from './forward.ts'
import { startGrpcDoor } from './grpc.ts'
import { startRpcDoor } from './http.ts'
import { createRpc } from './rpc.ts'
import { startWsDoor } from './ws.ts'

export type BundleListeners = {
  readonly rpc: ListenerOptions
  readonly ws: ListenerOptions & { readonly queryToken: boolean }
  readonly grpc: ListenerOptions
  /** Where customers reach the WebSocket door; told with each ticket. */
  readonly wsUrl?: ((port: number) => string) | undefined
}

export type BundleDeps = {
  readonly access: Access
  readonly upstreams: Upstreams
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  readonly doorMetrics: (door: 'rpc' | 'ws' | 'grpc') => DoorMetrics
}

type Address = { readonly host: string; readonly port: number }

export type Bundle = AsyncDisposable & {
  readonly rpc: Address
  readonly ws: Address
  readonly grpc: Address
  beginLameDuck(): void
  drain(deadlineMs: number): Promise<void>
}

/** One token opens three doors; the budget is one; the nodes behind answer. */
export async function startBundle(listeners: BundleListeners, deps: BundleDeps): Promise<Bundle> {
  const { access, upstreams, clock, random, doorMetrics } = deps
  const log = deps.log.child({ part: 'bundle' })
  const common = { access, upstreams, log, clock, random }
  await using opening = new AsyncDisposableStack()
  const { queryToken, ...wsListen } = listeners.ws
  const ws = opening.use(await startWsDoor({ listen: wsListen, queryToken }, { ...common, ...doorMetrics('ws') }))
  const grpc = opening.use(await startGrpcDoor({ listen: listeners.grpc }, { ...common, ...doorMetrics('grpc') }))
  const rpc = createRpc({ access, clock, callUpstream: createForward(upstreams) })
  const http = opening.use(
    await startRpcDoor(
      { listen: listeners.rpc },
      {
        ...common,
        rpc,
        wsUrl: listeners.wsUrl?.(ws.address.port),
        health: () => healthOf(upstreams),
        ...doorMetrics('rpc'),
      },
    ),
  )
  const doors = [http, ws, grpc]
  const opened = opening.move()
  return {
    rpc: http.address,
    ws: ws.address,
    grpc: grpc.address,
    beginLameDuck() {
      for (const door of doors) door.beginLameDuck()
    },
    async drain(deadlineMs) {
      await Promise.all(doors.map((door) => door.drain(deadlineMs)))
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function healthOf(upstreams: Upstreams): 'ok' | 'behind' | 'unknown' {
  const shared = upstreams.of(undefined)
  if (!shared.isAvailable) return 'unknown'
  return shared.slotsBehind === undefined ? 'ok' : 'behind'
}
