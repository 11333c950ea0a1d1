import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { startGrpcServer } from '../../platform/grpc/server.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { ListenerMetrics } from '../../platform/net/listener-metrics.ts'
import type { LateRefusals } from '../auth-tarpit.ts'
import { refuseToken } from '../refusal.ts'
import { createGrpcHealth, type GrpcHealthOptions } from './health.ts'
import { grpcStatusOf } from './refusal.ts'
import { createGeyser, type GeyserDeps, type GeyserOptions } from './service.ts'

export type GrpcServerOptions = Partial<GeyserOptions & GrpcHealthOptions> & {
  readonly listen: ListenerOptions
  /** How often open streams are looked at again, besides at every change of the store. */
  readonly sweepMs?: number
}

export type GrpcServerDeps = GeyserDeps & ListenerMetrics & { readonly late: LateRefusals }

export type GrpcServer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  readonly openCalls: number
  /** Says NOT_SERVING to who asks for the health, and serves on. */
  beginLameDuck(): void
  /** Takes no more calls, ends open streams with UNAVAILABLE one after another, and waits for the rest until the deadline. */
  drain(deadlineMs: number): Promise<void>
}

const DEFAULTS = { refusalDelayMs: 1000, unaryDeadlineMs: 10_000, stallMs: 30_000, sweepMs: 2000, healthPerSecond: 50 }
/** As much as RPC takes in headers: a value of 8 KB is refused for what it is, no token, as on the other doors. */
const METADATA_BYTES_MAX = 16 * 1024
/** Over how long streams are ended at a shutdown (robustness.md, fault F11). */
const SPREAD_MS = 5000
const GEYSER_PATH = /^\/geyser\.Geyser\/(\w{1,64})$/

/** The gRPC door: geyser.Geyser for who has a token, and the health check for everybody. */
export async function startGrpcEndpoint(given: GrpcServerOptions, deps: GrpcServerDeps): Promise<GrpcServer> {
  const options = { ...DEFAULTS, ...given }
  const { access, clock, late, metrics } = deps
  const log = deps.log.child({ server: 'grpc' })
  await using opening = new AsyncDisposableStack()
  const geyser = createGeyser(options, { ...deps, log })
  const health = createGrpcHealth(options, { clock, meter: metrics.grpc })

  function onCall(call: GrpcCall): void {
    const peer = { remoteAddress: call.remoteAddress, headers: call.rawMetadata }
    if (health.serve(call, () => late.addressOf(peer))) return
    const method = GEYSER_PATH.exec(call.path)?.[1]
    // The path is not repeated: whoever writes a token into it must not find it in a log.
    if (method === undefined)
      return call.end({ code: GrpcCode.unimplemented, message: 'this method is not served here' })
    const caller = access.authenticate(collectToken(CREDENTIAL_SOURCES.grpc, call.rawMetadata), 'bundle', clock.nowMs())
    if (caller.ok) return geyser.serve(call, caller, { method, remoteAddress: late.addressOf(peer) })
    const { reason } = caller
    late.refuse(peer, metrics.grpc.late, (closes) => {
      call.end(grpcStatusOf(refuseToken(reason)))
      if (closes) call.closeConnection()
    })
  }

  const { onRefused, onNotAfter } = deps
  const server = opening.use(
    await startGrpcServer(
      { listen: options.listen, metadataBytesMax: METADATA_BYTES_MAX },
      { log, clock, onCall, onRefused, onNotAfter },
    ),
  )
  opening.use(access.onChange(() => geyser.sweep()))
  const sweeping = opening.use(clock.setRepeating(options.sweepMs, () => geyser.sweep()))
  sweeping.unref?.()
  const opened = opening.move()

  return {
    address: server.address,
    get openCalls() {
      return geyser.openCalls
    },
    beginLameDuck: () => health.stopServing(),
    async drain(deadlineMs) {
      health.stopServing()
      geyser.endStreams(Math.min(SPREAD_MS, deadlineMs / 2))
      await server.drain(deadlineMs)
      await opened.disposeAsync()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
