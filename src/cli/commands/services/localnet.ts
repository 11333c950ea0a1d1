import { type CommonFlags, command, commonFlags, flag } from '../../define.ts'

export type LocalnetFlags = CommonFlags & {
  readonly rpcPort?: string
  readonly wsPort?: string
  readonly grpcPort?: string
  readonly shreds?: string
  readonly accounts?: string
  readonly slotMs?: string
  readonly traffic?: 'on' | 'off'
  readonly tps?: string
}

export const localnetCommand = command<LocalnetFlags>({
  brief: 'Run the embedded Solana chain alone',
  details: 'JSON-RPC, PubSub, Geyser gRPC and shreds of a small real chain, for development and tests.',
  examples: ['--slot-ms 200 --traffic off'],
  parameters: {
    flags: {
      ...commonFlags,
      rpcPort: flag.text('JSON-RPC port (default 8899)', 'PORT'),
      wsPort: flag.text('PubSub port (default 8900)', 'PORT'),
      grpcPort: flag.text('Geyser port (default 10000)', 'PORT'),
      shreds: flag.text('Send shreds there', 'IP:PORT'),
      accounts: flag.text('Folder of account JSON files to begin with', 'DIR'),
      slotMs: flag.text('Length of a slot in milliseconds (default 400)', 'MS'),
      traffic: { kind: 'enum', values: ['on', 'off'], optional: true, brief: 'Traffic generator (default on)' },
      tps: flag.text('Rate of the traffic generator (default 5)', 'N'),
    },
  },
  load: async () => (await import('./run/localnet.ts')).localnet,
})
