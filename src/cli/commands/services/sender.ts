import { type CommonFlags, command, commonFlags } from '../../define.ts'

export const senderCommand = command<CommonFlags>({
  brief: 'Run TPU Sender as its own process',
  details:
    'Accepts tipped transactions on port 8901 and sends them to the nodes of upstreams.nodes, to relays and directly to leaders. If sluice serve runs beside it, set sender.enabled = false there and use two state folders.',
  examples: [''],
  parameters: { flags: commonFlags },
  load: async () => (await import('./run/sender.ts')).sender,
})
