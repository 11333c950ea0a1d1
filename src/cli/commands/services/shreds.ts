import { type CommonFlags, command, commonFlags } from '../../define.ts'

export const shredsCommand = command<CommonFlags>({
  brief: 'Run ShredStream Raw alone',
  details:
    'Takes shreds on UDP port 20000 and sends them to the destinations of the store. The nodes of upstreams.nodes, where there are any, tell who leads, so that signatures are checked. Set shreds.enabled = false where sluice serve runs beside it, and give each a state folder of its own and both one store.',
  examples: [''],
  parameters: { flags: commonFlags },
  load: async () => (await import('./run/shreds.ts')).shreds,
})
