import { type CommonFlags, command, commonFlags } from '../../define.ts'

export const senderCommand = command<CommonFlags>({
  brief: 'Run the sender alone',
  details:
    'Takes tipped transactions on port 8901 and sends them to the nodes of upstreams.nodes, to relays and straight to leaders. Set sender.enabled = false where sluice serve runs beside it, and give each a state folder of its own.',
  examples: [''],
  parameters: { flags: commonFlags },
  load: async () => (await import('./run/sender.ts')).sender,
})
