import { command, serviceFlags } from '../../define.ts'

export const serveCommand = command({
  brief: 'Run all enabled services in one process',
  details:
    'Without a config file all services run on loopback against an embedded chain, and the first start prints the handover card of a demo subscription.',
  examples: ['', '--log json'],
  flags: {
    ...serviceFlags,
    demo: {
      kind: 'boolean',
      optional: true,
      brief: 'Create a demo subscription at the first start (default: only without a config file)',
    },
  },
  load: async () => (await import('./run/serve.ts')).serve,
})
