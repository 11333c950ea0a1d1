import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags, flag, type ListFlags, listFlags } from '../../define.ts'

export const usageCommand = command<ListFlags & { sub?: string; since?: string; by?: 'hour' | 'day' | 'total' }>({
  brief: 'What subscriptions used',
  examples: ['', '--sub acme-prod --since 7d', '--by hour -o csv'],
  parameters: {
    flags: {
      ...listFlags,
      sub: flag.text('Only this subscription', 'SUB'),
      since: flag.text('From this day or time span back (default 30d)', 'DATE'),
      by: { kind: 'enum', values: ['hour', 'day', 'total'], optional: true, brief: 'Grouped by (default total)' },
    },
    aliases: { o: 'output' },
  },
  load: async () => (await import('./run/usage.ts')).usage,
})

export const auditRoutes = buildRouteMap({
  docs: { brief: 'Audit: who changed what, in a hash chain' },
  routes: {
    tail: command<CommonFlags & { lines?: string; follow?: boolean }>({
      brief: 'Print the newest lines, and follow with --follow',
      examples: ['', '--lines 50'],
      parameters: {
        flags: {
          lines: flag.text('How many lines (default 20)', 'N'),
          follow: flag.switch('Go on printing'),
          ...commonFlags,
        },
        aliases: { n: 'lines', f: 'follow' },
      },
      load: async () => (await import('./run/audit.ts')).tailAudit,
    }),
    verify: command<CommonFlags>({
      brief: 'Check the chain in the store and in audit.log; exit 78 at the first broken line',
      examples: [''],
      parameters: { flags: commonFlags },
      load: async () => (await import('./run/audit.ts')).verifyAudit,
    }),
  },
})
