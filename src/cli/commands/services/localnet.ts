import { buildRouteMap } from '@stricli/core'
import { command, commonFlags, flag, serviceFlags } from '../../define.ts'

const CONSENSUS = ['tower', 'alpenglow'] as const

export const localnetRoutes = buildRouteMap({
  docs: { brief: 'Run the embedded Solana chain as its own process, or change a running one' },
  defaultCommand: 'run',
  routes: {
    run: command({
      brief: 'Run the embedded Solana chain as its own process (`sluice localnet` alone does the same)',
      details: 'A small Solana chain with JSON-RPC, PubSub, Geyser gRPC and shreds, for development and tests.',
      examples: ['--slot-ms 200 --traffic off', '--consensus alpenglow --slot-ms 200'],
      flags: {
        ...serviceFlags,
        rpcPort: flag.text('JSON-RPC port (default 8899)', 'PORT'),
        wsPort: flag.text('PubSub port (default 8900)', 'PORT'),
        grpcPort: flag.text('Geyser port (default 10000)', 'PORT'),
        shreds: flag.text('Send shreds to this address', 'IP:PORT'),
        accounts: flag.text('Folder of account JSON files and .so programs to load at genesis', 'DIR'),
        slotMs: flag.text('Length of a slot in milliseconds (default 400)', 'MS'),
        consensus: flag.choice('Consensus (default tower)', CONSENSUS),
        traffic: flag.choice('Traffic generator (default on)', ['on', 'off']),
        tps: flag.text('Transactions per second of the traffic generator (default 5)', 'N'),
      },
      load: async () => (await import('./run/localnet.ts')).localnet,
    }),
    set: command({
      brief: 'Change the slot length or the consensus of a running chain from its next slot on',
      details:
        'The chain is that of `sluice localnet` or of `sluice serve` in the state folder. The change lasts until the process ends; the configuration decides at the next start.',
      examples: ['--slot-ms 200 --consensus alpenglow'],
      flags: {
        ...commonFlags,
        slotMs: flag.text('Length of a slot in milliseconds', 'MS'),
        consensus: flag.choice('Consensus', CONSENSUS),
      },
      load: async () => (await import('./run/localnet-set.ts')).localnetSet,
    }),
  },
})
