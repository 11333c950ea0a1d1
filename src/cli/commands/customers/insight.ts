import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags, flag, type ListFlags, listFlags } from '../../define.ts'

export const usageCommand = command<ListFlags & { sub?: string; since?: string; by?: 'hour' | 'day' | 'total' }>({
  brief: 'Show usage per subscription',
  examples: ['', '--sub acme-prod --since 7d', '--by hour -o csv'],
  parameters: {
    flags: {
      ...listFlags,
      sub: flag.text('Only this subscription', 'SUB'),
      since: flag.text('Start day, or time span before now (default 30d)', 'DATE'),
      by: { kind: 'enum', values: ['hour', 'day', 'total'], optional: true, brief: 'Group by (default total)' },
    },
    aliases: { o: 'output' },
  },
  load: async () => (await import('./run/usage.ts')).usage,
})

export const auditRoutes = buildRouteMap({
  docs: { brief: 'Audit log: every change, in a hash chain' },
  routes: {
    tail: command<CommonFlags & { lines?: string; follow?: boolean }>({
      brief: 'Print the newest lines; --follow keeps printing',
      examples: ['', '--lines 50'],
      parameters: {
        flags: {
          lines: flag.text('Number of lines (default 20)', 'N'),
          follow: flag.switch('Keep printing new lines'),
          ...commonFlags,
        },
        aliases: { n: 'lines', f: 'follow' },
      },
      load: async () => (await import('./run/audit.ts')).tailAudit,
    }),
    verify: command<CommonFlags>({
      brief: 'Verify the chain in the store and in audit.log; exit with 78 if a line is broken',
      examples: [''],
      parameters: { flags: commonFlags },
      load: async () => (await import('./run/audit.ts')).verifyAudit,
    }),
  },
})
