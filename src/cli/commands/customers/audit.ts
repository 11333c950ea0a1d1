import { buildRouteMap } from '@stricli/core'
import { command, commonFlags, flag } from '../../define.ts'

export const auditRoutes = buildRouteMap({
  docs: { brief: 'Audit log: every change, in a hash chain' },
  routes: {
    tail: command({
      brief: 'Print the newest lines; --follow keeps printing',
      examples: ['', '--lines 50'],
      flags: {
        lines: flag.text('Number of lines (default 20)', 'N'),
        follow: flag.switch('Keep printing new lines'),
        ...commonFlags,
      },
      aliases: { n: 'lines', f: 'follow' },
      load: async () => (await import('./run/audit.ts')).tailAudit,
    }),
    verify: command({
      brief: 'Verify the chain in the store and in audit.log; exit with 78 if a line is broken',
      examples: [''],
      load: async () => (await import('./run/audit.ts')).verifyAudit,
    }),
  },
})
