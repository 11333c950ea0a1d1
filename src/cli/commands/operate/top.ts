import { command, commonFlags, flag } from '../../define.ts'

export const topCommand = command({
  brief: 'Live view of products, customers, upstreams and refusals',
  details:
    'Refreshes every second, with rates over the last five seconds; quit with q or Ctrl-C. With --once, with --json or without a terminal it measures for two seconds and prints once.',
  examples: ['', '--once', '--json'],
  flags: { ...commonFlags, once: flag.switch('Print once and exit') },
  load: async () => (await import('./run/top.ts')).top,
})
