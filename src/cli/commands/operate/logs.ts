import { buildRouteMap } from '@stricli/core'
import { type CommonFlags, command, commonFlags, flag } from '../../define.ts'

export type TailFlags = CommonFlags & {
  readonly sub?: string
  readonly level?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal'
  readonly lines?: string
  readonly follow?: boolean
}

export const logsRoutes = buildRouteMap({
  docs: { brief: 'Logs of a running Sluice' },
  routes: {
    tail: command<TailFlags>({
      brief: 'Print the newest lines of the log, and follow with --follow',
      details: [
        'With --sub: who connected and how it ended, what was refused with limit and code (one line a second and limit, with',
        'their number), what the operator changed, trouble of the nodes that serve it, and with --follow its rates.',
        'The process keeps its last 1000 lines. What is below the configured log.level was never written; with --json the lines',
        'come as they are in the log.',
      ].join('\n'),
      examples: ['', '--sub acme-prod --follow', '--level warn --lines 100'],
      parameters: {
        flags: {
          sub: flag.text('Only lines that concern this subscription', 'SUB'),
          level: {
            kind: 'enum',
            values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal'],
            optional: true,
            brief: 'Only lines of this level and above',
          },
          lines: flag.text('How many lines of the past (default 20)', 'N'),
          follow: flag.switch('Go on printing'),
          ...commonFlags,
        },
        aliases: { n: 'lines', f: 'follow' },
      },
      load: async () => (await import('./run/logs.ts')).tailLogs,
    }),
  },
})
