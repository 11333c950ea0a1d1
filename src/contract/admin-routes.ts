/**
 * The routes of the admin API as data. The service, its OpenAPI description, `sluice --remote` and the console read them here, so that a route exists
 * in all of them or in none.
 */

export const ADMIN_ROLES = ['owner', 'support', 'billing', 'read-only'] as const
export type AdminRole = (typeof ADMIN_ROLES)[number]

/** What a route needs; a role has a set of these. */
export type AdminPermission =
  /** Everything but the list of administrators; their changes are in the audit log. No route returns a secret after the first time. */
  | 'read'
  /** Customers, subscriptions, tokens, limits, destinations, database users and dedicated nodes. */
  | 'provision'
  | 'note'
  /** Refunds, invoice previews, exports, and what the billing system gets. */
  | 'bill'
  /** Upstream nodes, open connections, notices. */
  | 'operate'
  /** Administrators themselves. */
  | 'administer'

export const ROLE_PERMISSIONS: Readonly<Record<AdminRole, readonly AdminPermission[]>> = {
  owner: ['read', 'provision', 'note', 'bill', 'operate', 'administer'],
  support: ['read', 'provision', 'note', 'operate'],
  billing: ['read', 'note', 'bill'],
  'read-only': ['read'],
}

export type AdminRoute = {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** Parts in braces are parameters: a record is given by its name or id. */
  readonly path: string
  readonly permission: AdminPermission
  readonly brief: string
  /** The commands of the command line that do the same. */
  readonly commands?: readonly string[]
  /** Names of the query parameters. */
  readonly query?: readonly string[]
  /** The response contains a secret, once. */
  readonly isSecret?: true
}

const PAGE = ['limit', 'cursor'] as const
const PERIOD = ['month', 'since', 'until'] as const

function route(
  at: `${AdminRoute['method']} /${string}`,
  permission: AdminPermission,
  brief: string,
  more: Pick<AdminRoute, 'commands' | 'query' | 'isSecret'> = {},
): AdminRoute {
  const [method, path] = at.split(' ') as [AdminRoute['method'], string]
  return { method, path, permission, brief, ...more }
}

export const ADMIN_ROUTES = {
  me: route('GET /v1/me', 'read', 'The administrator of this request and the permissions of the role.'),
  status: route('GET /v1/status', 'read', 'State of the process, its services, threads and nodes.', {
    commands: ['status'],
  }),
  top: route('GET /v1/top', 'read', 'Live figures of products, customers, upstreams and refusals.', {
    commands: ['top'],
  }),
  overview: route(
    'GET /v1/overview',
    'read',
    'Counts of customers and subscriptions, what ends soon, who is near a limit, and Solana at a glance.',
  ),
  overviewSeries: route(
    'GET /v1/overview/series',
    'read',
    'Calls, units and refused calls of all customers by hour, of the last 48 hours.',
  ),
  products: route('GET /v1/products', 'read', 'Products and whether they are offered.'),
  planList: route('GET /v1/plans', 'read', 'Plans with their limits.', { commands: ['plan list'] }),
  planShow: route('GET /v1/plans/{plan}', 'read', 'A plan with every limit and method cost.', {
    commands: ['plan show'],
  }),
  customerList: route('GET /v1/customers', 'read', 'Customers in the order of their names, in pages.', {
    commands: ['customer list'],
    query: [...PAGE, 'search', 'state'],
  }),
  customerAdd: route('POST /v1/customers', 'provision', 'Add a customer.', { commands: ['customer add'] }),
  customerShow: route('GET /v1/customers/{customer}', 'read', 'A customer with subscriptions and notes.', {
    commands: ['customer show'],
  }),
  customerChange: route('PATCH /v1/customers/{customer}', 'provision', 'Change the name or the contact details.', {
    commands: ['customer rename', 'customer contact'],
  }),
  customerSuspend: route(
    'POST /v1/customers/{customer}/suspend',
    'provision',
    'Refuse all calls of the customer until resumed.',
    { commands: ['customer suspend'] },
  ),
  customerResume: route(
    'POST /v1/customers/{customer}/resume',
    'provision',
    'Resume a suspended or removed customer.',
    { commands: ['customer resume'] },
  ),
  customerRemove: route(
    'DELETE /v1/customers/{customer}',
    'provision',
    'Remove a customer; usage and audit log are kept. With force=true its subscriptions are cancelled.',
    { commands: ['customer remove'], query: ['force'] },
  ),
  customerBillingId: route(
    'PUT /v1/customers/{customer}/billing-id',
    'bill',
    'Set the id of the customer in the billing system; null removes it.',
    { commands: ['customer billing-id'] },
  ),
  noteAdd: route('POST /v1/notes', 'note', 'Add a note to a customer or subscription.', {
    commands: ['customer note'],
  }),
  subList: route('GET /v1/subscriptions', 'read', 'Subscriptions in the order of their names, in pages.', {
    commands: ['sub list'],
    query: [...PAGE, 'search', 'customer', 'state', 'ending'],
  }),
  subCreate: route(
    'POST /v1/subscriptions',
    'provision',
    'Create a subscription; the response has its token and its handover card, once.',
    { commands: ['sub create'], isSecret: true },
  ),
  subShow: route(
    'GET /v1/subscriptions/{subscription}',
    'read',
    'A subscription: limits, token, destination, notes, refunds.',
    { commands: ['sub show'] },
  ),
  subLimit: route('PATCH /v1/subscriptions/{subscription}', 'provision', 'Change the plan or single limits.', {
    commands: ['sub limit'],
  }),
  subRenew: route('POST /v1/subscriptions/{subscription}/renew', 'provision', 'Set a new last day.', {
    commands: ['sub renew'],
  }),
  subSuspend: route(
    'POST /v1/subscriptions/{subscription}/suspend',
    'provision',
    'Refuse its calls and close its streams until resumed.',
    { commands: ['sub suspend'] },
  ),
  subResume: route('POST /v1/subscriptions/{subscription}/resume', 'provision', 'Resume a suspended subscription.', {
    commands: ['sub resume'],
  }),
  subCancel: route('POST /v1/subscriptions/{subscription}/cancel', 'provision', 'Cancel a subscription permanently.', {
    commands: ['sub cancel'],
  }),
  productAdd: route(
    'PUT /v1/subscriptions/{subscription}/products/{product}',
    'provision',
    'Add a product; the token stays the same.',
    { commands: ['sub add-product'] },
  ),
  productRemove: route(
    'DELETE /v1/subscriptions/{subscription}/products/{product}',
    'provision',
    'Remove a product; what is open there ends within 5 s.',
    { commands: ['sub remove-product'] },
  ),
  refundAdd: route(
    'POST /v1/subscriptions/{subscription}/refunds',
    'bill',
    'Record a refund; the payment is made elsewhere.',
    { commands: ['sub refund'] },
  ),
  tokenList: route('GET /v1/tokens', 'read', 'Tokens by their last four characters.', {
    commands: ['token list'],
    query: [...PAGE, 'subscription'],
  }),
  tokenIssue: route(
    'POST /v1/subscriptions/{subscription}/token',
    'provision',
    'Issue a token to a subscription without one.',
    { commands: ['token issue'], isSecret: true },
  ),
  tokenRotate: route(
    'POST /v1/subscriptions/{subscription}/token/rotate',
    'provision',
    'Replace the token; the old one is revoked at once, or after grace.',
    { commands: ['token rotate'], isSecret: true },
  ),
  tokenRevoke: route(
    'DELETE /v1/subscriptions/{subscription}/token',
    'provision',
    'Revoke the token; calls are refused within a second.',
    { commands: ['token revoke'] },
  ),
  destinationList: route('GET /v1/shreds/destinations', 'read', 'Destinations of raw shreds.', {
    commands: ['shred show'],
    query: [...PAGE, 'subscription'],
  }),
  destinationSet: route(
    'PUT /v1/subscriptions/{subscription}/destination',
    'provision',
    'Set the destination of a subscription.',
    { commands: ['shred set-destination'] },
  ),
  destinationPause: route(
    'POST /v1/subscriptions/{subscription}/destination/pause',
    'provision',
    'Pause sending and keep the destination.',
    { commands: ['shred pause'] },
  ),
  destinationResume: route('POST /v1/subscriptions/{subscription}/destination/resume', 'provision', 'Resume sending.', {
    commands: ['shred resume'],
  }),
  destinationVerify: route(
    'POST /v1/subscriptions/{subscription}/destination/verify',
    'provision',
    'Challenge a destination, or confirm it with its code.',
    { commands: ['shred verify'] },
  ),
  shredReport: route('GET /v1/shreds/report', 'read', 'Delivery report: packets sent and not sent per subscription.', {
    commands: ['shred report'],
    query: ['subscription', ...PERIOD, 'by'],
  }),
  indexerStatus: route('GET /v1/indexer', 'read', 'Coverage of the tables, missing slots and running queries.', {
    commands: ['indexer status'],
  }),
  indexerGrant: route(
    'POST /v1/subscriptions/{subscription}/database-user',
    'provision',
    'Create the database user of a subscription.',
    { commands: ['indexer grant'], isSecret: true },
  ),
  indexerRotate: route(
    'POST /v1/subscriptions/{subscription}/database-user/rotate',
    'provision',
    'Replace the database password; the user name stays.',
    { commands: ['indexer rotate'], isSecret: true },
  ),
  indexerRevoke: route(
    'DELETE /v1/subscriptions/{subscription}/database-user',
    'provision',
    'Revoke the database user.',
    { commands: ['indexer revoke'] },
  ),
  nodeList: route('GET /v1/nodes', 'read', 'Dedicated nodes.', { commands: ['node list'] }),
  nodeAdd: route('POST /v1/nodes', 'provision', 'Add a dedicated node.', { commands: ['node add'] }),
  nodeChange: route('PATCH /v1/nodes/{node}', 'provision', 'Change addresses or credential of a dedicated node.', {
    commands: ['node set'],
  }),
  nodeRemove: route(
    'DELETE /v1/nodes/{node}',
    'provision',
    'Remove a dedicated node. With force=true also one that is assigned.',
    { commands: ['node remove'], query: ['force'] },
  ),
  nodeAssign: route('POST /v1/nodes/{node}/assign', 'provision', 'Assign a node to one subscription exclusively.', {
    commands: ['node assign'],
  }),
  upstreamList: route('GET /v1/upstreams', 'read', 'Upstream nodes with their state, slot and lag.', {
    commands: ['upstream list'],
  }),
  upstreamDrain: route('POST /v1/upstreams/{node}/drain', 'operate', 'Send no new requests to a node.', {
    commands: ['upstream drain'],
  }),
  upstreamUndrain: route('POST /v1/upstreams/{node}/undrain', 'operate', 'Send requests to a drained node again.', {
    commands: ['upstream undrain'],
  }),
  connectionList: route('GET /v1/connections', 'read', 'Open WebSocket and gRPC connections.', {
    query: ['subscription'],
  }),
  connectionClose: route('DELETE /v1/connections/{connection}', 'operate', 'Close a connection.'),
  usage: route('GET /v1/usage', 'read', 'Usage by hour, day, method or in total.', {
    commands: ['usage', 'usage show'],
    query: [...PERIOD, 'by', 'customer', 'subscription'],
  }),
  audit: route('GET /v1/audit', 'read', 'Lines of the audit log, newest first, in pages.', {
    commands: ['audit tail'],
    query: [...PAGE, 'subject'],
  }),
  auditVerify: route('GET /v1/audit/verification', 'read', 'Verifies the chain in the store and in audit.log.', {
    commands: ['audit verify'],
  }),
  senderStats: route('GET /v1/sender', 'read', 'Tips received, landing rate, time to land, paths, priority.', {
    commands: ['tip stats'],
  }),
  adminList: route('GET /v1/admins', 'administer', 'Administrators and their roles.', { commands: ['admin list'] }),
  adminAdd: route('POST /v1/admins', 'administer', 'Add an administrator; the token is in the response, once.', {
    commands: ['admin add'],
    isSecret: true,
  }),
  adminRotate: route('POST /v1/admins/{admin}/rotate', 'administer', 'Replace the token of an administrator.', {
    commands: ['admin rotate'],
    isSecret: true,
  }),
  adminRemove: route('DELETE /v1/admins/{admin}', 'administer', 'Remove an administrator; open sessions end.', {
    commands: ['admin remove'],
  }),
  usageExport: route(
    'GET /v1/usage/export',
    'bill',
    'Usage of a month by customer, day and method, as CSV or JSON lines.',
    { commands: ['usage export'], query: ['month', 'customer', 'format', 'by'] },
  ),
  invoicePreview: route('GET /v1/invoices/preview', 'bill', 'What the prices of the plans give for a month.', {
    commands: ['invoice preview'],
    query: ['month', 'customer'],
  }),
  billingStatus: route('GET /v1/billing', 'bill', 'State of the billing sinks: sent up to, waiting, dead letters.', {
    commands: ['billing status'],
    query: ['sink'],
  }),
  billingRetry: route('POST /v1/billing/retry', 'bill', 'Send dead letters again, or count them as sent.', {
    commands: ['billing retry'],
  }),
  billingPause: route('POST /v1/billing/pause', 'bill', 'Stop sending events; usage goes on being counted.', {
    commands: ['billing pause'],
  }),
  billingResume: route('POST /v1/billing/resume', 'bill', 'Send events again.', { commands: ['billing resume'] }),
  notices: route('GET /v1/notices', 'read', 'Notices and their delivery, newest first.', {
    commands: ['notice list'],
    query: PAGE,
  }),
  noticeTest: route('POST /v1/notices/test', 'operate', 'Send a test notice to every receiver.', {
    commands: ['notice test'],
  }),
} satisfies Readonly<Record<string, AdminRoute>>

export type AdminRouteId = keyof typeof ADMIN_ROUTES

const OF_RECORD = /^\/v1\/(?:customers|subscriptions|nodes)\/\{/

/** Whether a change is made to a record with a revision, the `ETag` of its responses, so that `If-Match` can be evaluated. */
export function hasRevision({ method, path }: Pick<AdminRoute, 'method' | 'path'>): boolean {
  return method !== 'GET' && OF_RECORD.test(path)
}

/** Header of a change with which a repeated request is performed once. */
export const IDEMPOTENCY_HEADER = 'idempotency-key'
/** Header that a browser session sends with each change. */
export const CSRF_HEADER = 'x-csrf-token'
/** The methods of signing in, without a token. */
export const SIGN_IN_PATH = '/v1/sign-in'
/** A browser that opens it is sent to the OpenID Connect issuer. */
export const OIDC_LOGIN_PATH = '/v1/oidc/login'
/** The issuer sends the browser back here: the redirect URI of the client. */
export const OIDC_CALLBACK_PATH = '/v1/oidc/callback'
export const PAGE_LIMIT = { default: 100, max: 1000 } as const
