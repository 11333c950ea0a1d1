import type { Chain } from '../../../src/localnet/chain/model.ts'
import { type LocalnetOptionsInput, parseLocalnetOptions } from '../../../src/localnet/options.ts'
import { type Localnet, startLocalnet } from '../../../src/localnet/service.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { onChainCell } from './chain-cell.ts'

/** A complete localnet on its own ports, with short slots on real time or as the run has them, without generated traffic and without votes. */
export function startQuickLocalnet(options: LocalnetOptionsInput = {}): Promise<Localnet> {
  return startLocalnet(
    parseLocalnetOptions(
      onChainCell({
        slotMs: 50,
        commitment: { confirmedSlots: 1, finalizedSlots: 4 },
        rpc: { port: 0 },
        ws: { port: 0 },
        grpc: { port: 0 },
        traffic: { enabled: false },
        votes: { enabled: false },
        ...options,
      }),
    ),
    { log: silentLogger, clock: systemClock },
  )
}

/** Checks the condition after every block until it holds. */
export async function untilBlock(chain: Chain, condition: () => boolean, blocksMax = 200): Promise<void> {
  for (let blocks = 0; blocks < blocksMax && !condition(); blocks++) {
    const { promise, resolve } = Promise.withResolvers<void>()
    const unsubscribe = chain.subscribe(({ kind }) => {
      if (kind === 'frozen') resolve()
    })
    await promise
    unsubscribe()
  }
  if (!condition()) throw new Error(`the condition did not hold within ${blocksMax} blocks`)
}

/** Lines of a configuration file with this localnet as the only node. */
export function upstreamsOf({ rpc, ws, grpc }: Pick<Localnet, 'rpc' | 'ws' | 'grpc'>): string {
  const at = (scheme: string, { host, port }: { host: string; port: number }) => `"${scheme}://${host}:${port}"`
  const node = `name = "local"\nrpc = ${at('http', rpc)}\nws = ${at('ws', ws)}\ngrpc = ${at('http', grpc)}\n`
  return `[upstreams]\nallowPrivate = true\n[[upstreams.nodes]]\n${node}`
}
