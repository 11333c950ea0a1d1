import { buildRouteMap } from '@stricli/core'
import {
  argument,
  changeFlags,
  command,
  cutFlags,
  flag,
  listFlags,
  secretFlags,
  subscriptionArgument,
} from '../../define.ts'

const load = () => import('./run/sub.ts')
const loadProducts = () => import('./run/sub-products.ts')

const PRODUCT_NAMES = 'bundle, indexer, shreds-raw, dedicated-node, or shreds-decoded where its preview is on'

const limit = (brief: string) => flag.text(brief, 'N')

const LIMIT_VALUES = `A limit is a number, "unlimited", or "plan" for the value of the plan. The gRPC rules accept "plan" too.
Limits of methods replace cost and rate of the plan for each method that is named; the other methods stay as they are.`

const limitFlags = {
  unitsPerSecond: limit('Units per second'),
  sendsPerSecond: limit('sendTransaction calls per second'),
  unitsPerMonth: limit('Units per calendar month'),
  wsConnections: limit('Open WebSocket connections'),
  wsSubscriptions: limit('Live WebSocket subscriptions'),
  grpcStreams: limit('Open gRPC streams'),
  grpcAccountsPerStream: limit('Accounts in one gRPC stream'),
  grpcKinds: flag.text('Allowed filters in gRPC streams, separated by commas, or unlimited', 'LIST'),
  grpcBlockedOwners: flag.text('Accounts and programs blocked in gRPC filters, or none', 'LIST'),
  grpcResume: flag.text('Whether gRPC streams resume when their node is lost: yes or no', 'YES|NO'),
  requestBytes: limit('Bytes in one request body'),
  batchItems: limit('Calls in one batch'),
  methods: flag.text(
    'Limits of methods, separated by commas: METHOD:cost=N:per-second=N, or METHOD:plan to remove them',
    'LIST',
  ),
} as const

export const subRoutes = buildRouteMap({
  docs: { brief: 'Subscriptions' },
  routes: {
    create: command({
      brief: 'Create a subscription and print its handover card',
      details: `The card is for the customer. Its token is shown only once.\n${LIMIT_VALUES}`,
      examples: [
        'acme-prod --customer acme --plan build --print-token',
        'acme-shreds --customer acme --products shreds-raw --destination 127.0.0.1:20001 --vouched',
        'acme-sql --customer acme --products bundle,indexer --until 2027-12-31 --out acme-sql.txt',
      ],
      flags: {
        customer: flag.required('Customer name or id', 'CUSTOMER'),
        plan: flag.text('Plan (default starter); list them with: sluice plan list', 'PLAN'),
        products: flag.text('Products, separated by commas (default bundle)', 'LIST'),
        until: flag.text('Last day, as 2027-01-31, or a time span such as 30d (default no end)', 'DATE'),
        destination: flag.text('UDP destination of raw shreds', 'IP:PORT'),
        vouched: flag.switch('Skip the proof of the destination; recorded in the audit log'),
        ...limitFlags,
        ...secretFlags,
      },
      args: [argument('NAME', 'Short name, unique')],
      load: async () => (await load()).createSub,
    }),
    list: command({
      brief: 'List subscriptions',
      examples: ['', '--customer acme', '--ending 7d', '-o wide'],
      flags: {
        ...listFlags,
        customer: flag.text('Only this customer', 'CUSTOMER'),
        stateIs: flag.text('Only this state: active, suspended, cancelled, expired, customer-suspended', 'STATE'),
        ending: flag.text('Only those that work now and end within this time, such as 7d; the next first', 'TIME'),
      },
      load: async () => (await load()).listSubs,
    }),
    show: command({
      brief: 'Show a subscription: limits, token, destination, notes, refunds',
      examples: ['acme-prod'],
      args: [subscriptionArgument],
      load: async () => (await load()).showSub,
    }),
    addProduct: command({
      brief: 'Add a product; the token stays the same',
      details: 'Running processes serve it within a second. The next step is printed where the product needs one.',
      examples: ['acme-prod indexer', 'acme-prod shreds-raw'],
      flags: changeFlags,
      args: [subscriptionArgument, argument('PRODUCT', PRODUCT_NAMES)],
      load: async () => (await loadProducts()).addProductCommand,
    }),
    removeProduct: command({
      brief: 'Remove a product; what is open there ends within 5 s',
      details: 'The token stays valid for the other products. Removing indexer revokes its database user.',
      examples: ['acme-sql indexer --yes'],
      flags: cutFlags,
      args: [subscriptionArgument, argument('PRODUCT', PRODUCT_NAMES)],
      load: async () => (await loadProducts()).removeProductCommand,
    }),
    limit: command({
      brief: 'Change the plan or single limits',
      details: `${LIMIT_VALUES}\nLimits that are not named stay as they are.`,
      examples: [
        'acme-prod --units-per-second 300',
        'acme-prod --plan grow --units-per-second plan',
        'acme-prod --grpc-kinds slots,blocks_meta --grpc-resume yes',
        'acme-prod --methods getProgramAccounts:cost=20:per-second=0.5',
        'acme-prod --clear units-per-second',
        'acme-prod --clear all',
      ],
      flags: {
        plan: flag.text('Another plan', 'PLAN'),
        clear: flag.text('Overrides to remove, separated by commas, or all', 'LIST'),
        ...limitFlags,
        ...changeFlags,
      },
      args: [subscriptionArgument],
      load: async () => (await import('./run/sub-limit.ts')).limitSub,
    }),
    renew: command({
      brief: 'Set a new last day',
      examples: ['acme-prod --until 2028-01-31', 'acme-prod --until 90d', 'acme-prod --until never'],
      flags: {
        until: flag.required('Last day, a time span from today, or never', 'DATE'),
        ...changeFlags,
      },
      args: [subscriptionArgument],
      load: async () => (await load()).renewSub,
    }),
    suspend: command({
      brief: 'Refuse its calls and close its streams until resumed',
      examples: ['acme-prod --yes'],
      flags: cutFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).suspendSub,
    }),
    resume: command({
      brief: 'Resume a suspended subscription',
      examples: ['acme-prod'],
      flags: changeFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).resumeSub,
    }),
    cancel: command({
      brief: 'Cancel a subscription permanently',
      examples: ['acme-shreds --yes'],
      flags: cutFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).cancelSub,
    }),
    refund: command({
      brief: 'Record a refund; the payment is made elsewhere',
      examples: ['acme-prod 40 USD --reason "outage on the 3rd"'],
      flags: { reason: flag.required('Reason', 'TEXT'), ...changeFlags },
      args: [subscriptionArgument, argument('AMOUNT', 'Decimal amount'), argument('CURRENCY', 'Such as USD')],
      load: async () => (await load()).refundSub,
    }),
  },
})
