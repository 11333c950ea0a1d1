import { buildRouteMap } from '@stricli/core'
import { argument, command, commonFlags, flag, listFlags } from '../../define.ts'

const load = () => import('./run/tip.ts')

/** A transfer of 1,000,000 lamports to the account beside it. */
const EXAMPLE =
  'AdLNjrcPckoD/Racw8Bi0493QKHhwy6EfwCOBQsXbQJYctcps9yE50Vm4vEIw9cuwOL15lSSg1quXkE2C9SEeAoBAAEDo99KlXp2Zf0O9d8nfDsT5jPP7uglMqZOa741NRhjwJG6O2EeKILBtqpLKuPseOoHNuOtmSODU0UBcVB6S58VtQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgBAgIAAQwCAAAAQEIPAAAAAAA= --account DXyM8yAHqpMzDtvwz5DXoEUQmPxjJPMKCASCPhLMKpEx'

export const tipRoutes = buildRouteMap({
  docs: { brief: 'Tips of TPU Sender' },
  routes: {
    accounts: command({
      brief: 'List tip accounts',
      examples: ['', '-o json'],
      flags: listFlags,
      load: async () => (await load()).listTipAccounts,
    }),
    check: command({
      brief: 'Check the tip of a transaction as the sender does; exit with 1 if it would be refused',
      examples: [EXAMPLE],
      flags: { account: flag.text('Tip account to check instead of the configured ones', 'ADDRESS'), ...commonFlags },
      args: [argument('TX', 'The transaction in base64 or base58')],
      load: async () => (await load()).checkTip,
    }),
    revenue: command({
      brief: 'Show tips received per day, tip account or payer, from the ledger on disk',
      details:
        'TIPS counts transactions that landed and succeeded. OFFERED is the tips of all accepted ones, of which some failed, expired or are still on their way. Days are in UTC. Reads sender/tips.db in the state folder of the sender, whether it runs or not.',
      examples: ['', '--since 7d --by account', '--since 2027-01-01 --until 2027-01-31 --by day -o csv'],
      flags: {
        ...listFlags,
        since: flag.text('First day, or time span before now (default 30d)', 'DATE'),
        until: flag.text('Last day (default today)', 'DATE'),
        by: flag.choice('Group by (default day)', ['day', 'account', 'payer', 'total']),
      },
      load: async () => (await import('./run/tip-revenue.ts')).tipRevenue,
    }),
    stats: command({
      brief: 'Show tips received, landing rate and time to land',
      examples: ['', '--json'],
      load: async () => (await load()).tipStats,
    }),
  },
})
