import { command, type ServiceFlags, serviceFlags } from '../../define.ts'

export const senderCommand = command<ServiceFlags>({
  brief: 'Run TPU Sender as its own process',
  details:
    'Accepts tipped transactions on port 8901 and sends them to the nodes of upstreams.nodes, to relays and directly to leaders. If sluice serve runs beside it, set sender.enabled = false there and use two state folders.',
  examples: [''],
  parameters: { flags: serviceFlags },
  load: async () => (await import('./run/sender.ts')).sender,
})
