import type { Clock } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { startGrpcServer } from '../../platform/grpc/server.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import type { ListenerOptions } from '../../platform/net/listener.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Chain } from '../chain/model.ts'
import { DEFAULT_FILTER_LIMITS, type FilterLimits } from './filter/limits.ts'
import { serveHealth } from './health.ts'
import { SlotLog } from './slot-log.ts'
import { GeyserSubscription } from './subscription.ts'
import { serveGeyserUnary } from './unary.ts'

export type GeyserServerOptions = {
  readonly listen: ListenerOptions
  readonly limits?: FilterLimits
  readonly pingMs?: number
  /** How far back `from_slot` reaches and how far a stream may fall behind. */
  readonly replaySlots?: number
  /** False refuses `from_slot`. */
  readonly replay?: boolean
  readonly streamsMax?: number
  readonly messageBytesMax?: number
}

export type GeyserServerDeps = { readonly chain: Chain; readonly log: Logger; readonly clock: Clock }

export type GeyserServer = AsyncDisposable & {
  readonly address: { readonly host: string; readonly port: number }
  /** Ends every open stream, waits for them until the deadline, then closes the port. */
  drain(deadlineMs: number): Promise<void>
}

const DEFAULTS = { limits: DEFAULT_FILTER_LIMITS, pingMs: 10_000, replaySlots: 150, replay: true, streamsMax: 1000 }

/** The JSON of GetVersion, with the members of the Yellowstone plugin. */
const VERSION = JSON.stringify({
  version: {
    package: 'sluice-localnet',
    version: '0.1.0',
    proto: '13.0.0',
    solana: '4.2.1',
    git: '',
    rustc: '',
    buildts: '',
  },
  extra: { hostname: 'localnet' },
})

/** Serves geyser.Geyser and grpc.health.v1 over the chain. */
export async function startChainGeyserServer(
  overrides: GeyserServerOptions,
  deps: GeyserServerDeps,
): Promise<GeyserServer> {
  const options = { ...DEFAULTS, ...overrides }
  const { chain, clock } = deps
  const log = deps.log.child({ part: 'localnet-geyser' })
  const streams = new Map<GrpcCall, GeyserSubscription>()

  const slotLog = new SlotLog(
    { slotsMax: options.replaySlots },
    {
      nowMs: () => clock.nowMs(),
      // Without its writes a block would be sent as one that changed no account.
      block: (slot) => (slot < chain.firstSlotWithWrites() ? undefined : chain.block(slot)),
    },
  )
  // The banks of the open slot were opened before this server started.
  for (const event of chain.openBanks()) slotLog.append(event)

  const firstReplaySlot = () => {
    const first = slotLog.firstSlot()
    return first === undefined ? undefined : Math.max(first, chain.firstSlotWithWrites())
  }

  function onCall(call: GrpcCall): void {
    const [, service, method = ''] = call.path.split('/')
    if (service === 'geyser.Geyser') {
      if (method === 'Subscribe') return subscribe(call)
      if (serveGeyserUnary(call, method, { chain, firstReplaySlot, version: VERSION })) return
    } else if (service === 'grpc.health.v1.Health' && serveHealth(call, method)) return
    call.end({ code: GrpcCode.unimplemented, message: `method ${call.path.slice(0, 128)} is not served here` })
  }

  function subscribe(call: GrpcCall): void {
    if (streams.size >= options.streamsMax) {
      call.end({ code: GrpcCode.resourceExhausted, message: 'max subscription limit exceeded' })
      return
    }
    const stream = new GeyserSubscription(call, options, { chain, slotLog, firstReplaySlot, clock, log })
    streams.set(call, stream)
    call.onClose(() => streams.delete(call))
  }

  await using opening = new AsyncDisposableStack()
  const server = opening.use(
    await startGrpcServer(
      { listen: options.listen, ...(options.messageBytesMax ? { messageBytesMax: options.messageBytesMax } : {}) },
      { log, clock, onCall },
    ),
  )
  const unsubscribe = chain.subscribe((event) => {
    slotLog.append(event)
    for (const stream of streams.values()) stream.pump()
  })
  opening.defer(unsubscribe)
  const opened = opening.move()

  return {
    address: server.address,
    async drain(deadlineMs) {
      await server.drain(deadlineMs)
      await opened.disposeAsync()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}
