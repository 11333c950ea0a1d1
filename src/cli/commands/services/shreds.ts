import { command, type ServiceFlags, serviceFlags } from '../../define.ts'

export const shredsCommand = command<ServiceFlags>({
  brief: 'Run ShredStream Raw as its own process',
  details:
    'Receives shreds on UDP port 20000 and sends them to the destinations in the store. With nodes in upstreams.nodes it knows the leader schedule and verifies signatures. If sluice serve runs beside it, set shreds.enabled = false there, use two state folders and one shared store.',
  examples: [''],
  parameters: { flags: serviceFlags },
  load: async () => (await import('./run/shreds.ts')).shreds,
})
