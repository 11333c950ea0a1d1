import { command, serviceFlags } from '../../define.ts'

export const serveCommand = command({
  brief: 'Run all enabled services in one process',
  details:
    'Without a configuration all services run on loopback against an embedded chain, and the first start prints the handover card of a demo subscription. So does one with variables that set neither a name (`SLUICE_HOST`), nodes, sources or a store, nor TLS or a listener beyond loopback.',
  examples: ['', '--log json'],
  flags: {
    ...serviceFlags,
    demo: {
      kind: 'boolean',
      optional: true,
      brief: 'Create a demo subscription at the first start (default: only without a configuration)',
    },
  },
  load: async () => (await import('./run/serve.ts')).serve,
})
