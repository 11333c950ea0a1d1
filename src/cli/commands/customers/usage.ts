import { buildRouteMap } from '@stricli/core'
import { USAGE_EXPORT_FORMATS, USAGE_EXPORT_GROUPINGS } from '../../../contract/usage-export.ts'
import { command, commonFlags, flag, listFlags } from '../../define.ts'

const showCommand = command({
  brief: 'Show usage per subscription',
  details: [
    'Months and days are in UTC. For an invoice: sluice usage --month 2026-10 --customer acme -o csv',
    'Usage is kept by hour: a period that begins within an hour, or with --by day within a day, has all of it.',
    'Methods are counted by day: with --by method the period begins and ends with complete days. Methods that are not in the',
    'cost table of the plans are counted together as "other".',
  ].join('\n'),
  examples: [
    '',
    '--month 2026-10 --customer acme',
    '--sub acme-prod --since 7d',
    '--since 2026-10-01 --until 2026-10-15 --by day',
    '--month 2026-10 --by method -o csv',
  ],
  flags: {
    ...listFlags,
    customer: flag.text('Only subscriptions of this customer', 'CUSTOMER'),
    sub: flag.text('Only this subscription', 'SUB'),
    month: flag.text('A calendar month, as 2026-10', 'MONTH'),
    since: flag.text('Start day, or time span before now (default 30d)', 'DATE'),
    until: flag.text('Last day, or time span before now (default now)', 'DATE'),
    by: flag.choice('Group by (default total)', ['hour', 'day', 'total', 'method']),
  },
  load: async () => (await import('./run/usage.ts')).usage,
})

export const usageRoutes = buildRouteMap({
  docs: { brief: 'Usage per subscription, and its export' },
  defaultCommand: 'show',
  routes: {
    show: showCommand,
    export: command({
      brief: 'Write the usage of a month as CSV or JSON lines, for an invoice or another system',
      details: 'The sums are those of the ledger. A file of --out is new and has mode 0600.',
      examples: ['--month 2026-10', '--month 2026-10 --by method --format jsonl'],
      flags: {
        ...commonFlags,
        month: flag.required('A calendar month (UTC), as 2026-10', 'MONTH'),
        customer: flag.text('Only subscriptions of this customer', 'CUSTOMER'),
        by: flag.choice('One line per subscription, interface and (default day)', USAGE_EXPORT_GROUPINGS),
        format: flag.choice('Format (default csv)', USAGE_EXPORT_FORMATS),
        out: flag.text('Write to a new file instead of standard output', 'FILE'),
      },
      load: async () => (await import('./run/usage-export.ts')).usageExport,
    }),
  },
})
