import { type CommonFlags, command, commonFlags, flag } from '../../define.ts'

export type TopFlags = CommonFlags & { readonly once?: boolean }

export const topCommand = command<TopFlags>({
  brief: 'Live view of products, customers, upstreams and refusals',
  details:
    'Drawn again each second, with rates over the last five; q or Ctrl-C leaves. With --once, with --json, or without a terminal it looks for two seconds and prints once.',
  examples: ['', '--once', '--json'],
  parameters: { flags: { ...commonFlags, once: flag.switch('Print one picture and end') } },
  load: async () => (await import('./run/top.ts')).top,
})
