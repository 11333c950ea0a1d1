import { buildRouteMap } from '@stricli/core'
import { changeFlags, command, commonFlags, flag, listFlags, optionalArgument } from '../../define.ts'

const load = () => import('./run/billing.ts')

const sinkFlag = flag.choice('Billing system (default: billing.sink of the configuration)', [
  'openmeter',
  'lago',
  'stripe',
])

export const billingRoutes = buildRouteMap({
  docs: { brief: 'Events for the billing system' },
  routes: {
    status: command({
      brief: 'Show up to which hour usage is sent, what waits, and dead letters',
      examples: [''],
      flags: { ...commonFlags, sink: sinkFlag },
      load: async () => (await load()).billingStatusCommand,
    }),
    retry: command({
      brief: 'Send dead letters again, with the same ids',
      details: [
        'Without an id all of them, except those whose outcome is unknown: the billing system may have counted them, and Stripe recognizes a repetition for',
        '24 hours only. Look them up there, then give --outcome-unknown to send them again, or --mark-sent if they were counted.',
      ].join('\n'),
      examples: ['--dry-run'],
      flags: {
        ...changeFlags,
        sink: sinkFlag,
        outcomeUnknown: flag.switch('Also those whose outcome is unknown'),
        markSent: flag.switch('They were counted: do not send them again'),
      },
      args: [optionalArgument('ID', 'Id of one event (default: all)')],
      load: async () => (await load()).billingRetryCommand,
    }),
    pause: command({
      brief: 'Stop sending events; usage goes on being counted',
      examples: ['--dry-run'],
      flags: { ...changeFlags, sink: sinkFlag },
      load: async () => (await load()).billingPauseCommand,
    }),
    resume: command({
      brief: 'Send events again',
      examples: ['--dry-run'],
      flags: { ...changeFlags, sink: sinkFlag },
      load: async () => (await load()).billingResumeCommand,
    }),
  },
})

export const invoiceRoutes = buildRouteMap({
  docs: { brief: 'What the prices of the plans give' },
  routes: {
    preview: command({
      brief: 'Show what the prices of the plans give for a month',
      details: [
        'A preview: Sluice makes no invoice and takes no money. The price of a month is shared by the days (UTC) on which a subscription is valid, suspended or',
        'not; a subscription that changed its plan has the price of its present plan. Prices are in billing.prices of the configuration.',
      ].join('\n'),
      examples: ['--month 2026-10', '--month 2026-10 --customer acme --json'],
      flags: {
        ...listFlags,
        month: flag.required('A calendar month (UTC), as 2026-10', 'MONTH'),
        customer: flag.text('Only subscriptions of this customer', 'CUSTOMER'),
      },
      load: async () => (await import('./run/invoice.ts')).invoicePreview,
    }),
  },
})
