import { command, flag, serviceFlags } from '../../define.ts'

export const localnetCommand = command({
  brief: 'Run the embedded Solana chain as its own process',
  details: 'A small Solana chain with JSON-RPC, PubSub, Geyser gRPC and shreds, for development and tests.',
  examples: ['--slot-ms 200 --traffic off'],
  flags: {
    ...serviceFlags,
    rpcPort: flag.text('JSON-RPC port (default 8899)', 'PORT'),
    wsPort: flag.text('PubSub port (default 8900)', 'PORT'),
    grpcPort: flag.text('Geyser port (default 10000)', 'PORT'),
    shreds: flag.text('Send shreds to this address', 'IP:PORT'),
    accounts: flag.text('Folder of account JSON files to load at genesis', 'DIR'),
    slotMs: flag.text('Length of a slot in milliseconds (default 400)', 'MS'),
    traffic: flag.choice('Traffic generator (default on)', ['on', 'off']),
    tps: flag.text('Transactions per second of the traffic generator (default 5)', 'N'),
  },
  load: async () => (await import('./run/localnet.ts')).localnet,
})
