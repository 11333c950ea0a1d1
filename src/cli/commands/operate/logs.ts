import { buildRouteMap } from '@stricli/core'
import { command, commonFlags, flag } from '../../define.ts'

export const logsRoutes = buildRouteMap({
  docs: { brief: 'Logs of the running process' },
  routes: {
    tail: command({
      brief: 'Print the newest log lines; --follow keeps printing',
      details: [
        'With --sub: connections opened and closed, refusals with limit and code (one line per second and limit, with a count),',
        'changes by the operator, failures of its upstream nodes, and with --follow its rates.',
        'With --request: the refusal that a customer reports by the request_id of its response, on any interface.',
        'The process keeps its last 1000 lines and 10,000 refusals. Lines below the configured log.level are never written. With',
        '--json lines are printed as logged, with subscription_name and customer_name added.',
      ].join('\n'),
      examples: ['', '--sub acme-prod --follow', '--level warn --lines 100', '--request 01JCX3R6T5H0M8Q2V9Z7K4N1WB'],
      flags: {
        sub: flag.text('Only lines about this subscription', 'SUB'),
        request: flag.text('Only lines with this request_id, refusals included', 'ID'),
        level: flag.choice('Lowest level to print', ['trace', 'debug', 'info', 'warn', 'error', 'fatal']),
        lines: flag.text('Number of past lines (default 20)', 'N'),
        follow: flag.switch('Keep printing new lines'),
        ...commonFlags,
      },
      aliases: { n: 'lines', f: 'follow' },
      load: async () => (await import('./run/logs.ts')).tailLogs,
    }),
  },
})
