import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ADMIN_ROUTES, type AdminRole, type AdminRouteId, CSRF_HEADER } from '../../src/contract/admin-routes.ts'
import { sendPageFile } from '../../src/execution/api/page-file.ts'
import { openConsole } from '../../src/processes/compose/services/console.ts'

type Body = Record<string, unknown>
type Handler = (params: Body, body: Body, query: URLSearchParams) => unknown

const LIMITS = { units_per_second: 100, sends_per_second: 10, units_per_month: 5_000_000, ws_connections: 20 }
const CREATED = '2026-11-01T10:00:00.000Z'
const CSRF = 'csrf-of-this-session'

/** The responses of the admin API in memory, with the real console in front of them: for the pages alone, without store and services. */
export async function startStandIn({ role = 'owner' as AdminRole, isFilled = false } = {}) {
  const { page } = await openConsole()
  const customers = new Map<string, Body>()
  const subscriptions = new Map<string, Body>()
  let connections: Body[] = []
  let tokens = 0
  const seen: { readonly route: string; readonly csrf: string | undefined; readonly key: string | undefined }[] = []
  const day = (ago: number) => new Date(Math.floor(Date.now() / 86_400_000 - ago) * 86_400_000).toISOString()

  const newToken = () => `slc_${String((tokens += 1)).padStart(8, 'x')}`
  const addCustomer = (name: string, contact = '') => {
    const customer = { id: `cus_${name}`, name, contact, state: 'active', created_at: CREATED }
    customers.set(name, customer)
    return customer
  }
  const addSub = (name: string, customer: string, more: Body = {}) => {
    const sub = {
      ...{ id: `sub_${name}`, name, customer, plan: 'starter', products: ['bundle'], state: 'active' },
      ...{ valid_until: null, created_at: CREATED, limits: LIMITS, overrides: {}, destination: null },
      ...{
        indexer_users: [],
        nodes: [],
        notes: [],
        refunds: [],
        tokens: [{ id: 't', last4: 'wxyz', state: 'active', created_at: CREATED }],
      },
      ...more,
    }
    subscriptions.set(name, sub)
    return sub
  }
  if (isFilled) {
    for (const name of ['acme', 'borealis', 'cobalt-labs', 'delta-desk']) {
      addCustomer(name, `ops@${name}.example`)
      addSub(`${name}-prod`, name, { plan: 'pro', products: ['bundle', 'shreds-raw', 'indexer'] })
    }
    addSub('acme-test', 'acme', { state: 'suspended', valid_until: '2026-12-01T00:00:00.000Z' })
    connections = ['acme-prod', 'borealis-prod'].map((subscription, at) => ({
      ...{ id: `c${at}`, interface: at === 0 ? 'ws' : 'grpc', since: CREATED, age_seconds: 4000 * (at + 1) },
      ...{ remote_address: `203.0.113.${at + 7}:51234`, subscriptions: 12, bytes_out: 48_000_000, subscription },
      subscription_id: `sub_${subscription}`,
    }))
  }
  const list = (items: unknown[]) => ({ items, next_cursor: null })
  const find = (records: Map<string, Body>, query: URLSearchParams) =>
    [...records.values()].filter(({ name }) => String(name).includes(query.get('search') ?? ''))
  const usage: Handler = (_params, _body, query) =>
    list(
      [...subscriptions.values()]
        .flatMap(({ name, customer }, at) =>
          Array.from({ length: 30 }, (_, ago) => ({
            ...{ from: day(ago), subscription: name, customer, interface: ['rpc', 'ws', 'grpc'][(at + ago) % 3] },
            ...{
              method: ['getAccountInfo', 'getSlot', 'sendTransaction'][ago % 3],
              calls: 900 + 40 * ago,
              refused: ago,
            },
            units: 4000 * (at + 1) + 700 * ((ago * 7) % 11),
          })).filter(({ from }) => from >= (query.get('since') ?? '') && from < (query.get('until') ?? '9')),
        )
        .filter(({ subscription }) => (query.get('subscription') ?? subscription) === subscription),
    )
  const handlers: { [Id in AdminRouteId]?: Handler } = {
    overview: () => ({
      customers: customers.size,
      subscriptions: subscriptions.size,
      ending: isFilled ? [{ name: 'acme-test', customer: 'acme', valid_until: '2026-12-01T00:00:00.000Z' }] : [],
      near_limits: isFilled
        ? [{ subscription: 'borealis-prod', limit: 'units per month', used: 4_300_000, max: 5_000_000 }]
        : [],
      refusals: isFilled ? [{ part: 'rpc', reason: 'unitsPerSecond', count: 412 }] : [],
      solana: { slot: 381_224_907, slot_ms: 396, tps: 3912, nodes: 3, nodes_failing: 0, lag_slots: 1, landed: 8812 },
    }),
    customerList: (_p, _b, query) =>
      list(
        find(customers, query).map((row) => ({
          ...row,
          subscriptions: [...subscriptions.values()].filter(({ customer }) => customer === row['name']).length,
        })),
      ),
    customerAdd: (_p, { name, contact }) => addCustomer(String(name), String(contact ?? '')),
    customerShow: ({ customer }) =>
      customers.has(String(customer)) && {
        ...customers.get(String(customer)),
        subscriptions: [...subscriptions.values()].filter((sub) => sub['customer'] === customer),
        notes: [],
      },
    subList: (_p, _b, query) => list(find(subscriptions, query)),
    subCreate: (_p, body) => {
      const sub = addSub(String(body['name']), String(body['customer']), { plan: body['plan'] })
      const token = newToken()
      return {
        ...sub,
        token,
        card: `Sluice subscription  ${sub.name}\n  RPC    http://127.0.0.1:8899\n  token  ${token}   shown once\n`,
      }
    },
    subShow: ({ subscription }) => subscriptions.get(String(subscription)),
    tokenRotate: ({ subscription }) => ({ subscription, token: newToken() }),
    usage,
    connectionList: () => ({ ...list(connections), total: connections.length }),
    connectionClose: ({ connection }) => {
      connections = connections.filter(({ id }) => id !== connection)
      return { connection, closed: true }
    },
    upstreamList: () =>
      list(
        ['fra-1', 'fra-2', 'ams-1'].map((name, at) => ({
          ...{
            name,
            owner: null,
            state: at === 1 ? 'drained' : 'ok',
            reason: '',
            slot: 381_224_907 - at,
            lag_slots: at,
          },
          ...{ latency_ms: 3.2 + at, recent_calls: 900, recent_failures: at, breaker: 'closed' },
        })),
      ),
    nodeList: () => list([]),
    destinationList: () => list([]),
    shredReport: () => list([]),
    senderStats: () => ({
      ...{ accepted: 9000, landed: 8812, failed: 40, expired: 120, ended: 0, pending: 28, tip_lamports: '91000000' },
      paths: [{ path: 'quic', taken: 9000, landed: 8700, landing_rate: 0.966, p50_ms: 620, p95_ms: 1400 }],
      ways: [{ path: 'quic', is_open: true }],
    }),
    indexerStatus: () => ({
      ...{
        state: 'running',
        running_queries: 1,
        ingest: { head_slot: 381_224_900, tip_slot: 381_224_907, blocks: 51_220 },
      },
      coverage: [{ table_name: 'blocks', from_slot: 381_000_000, to_slot: 381_224_900, lag_slots: 7, open_gaps: 0 }],
    }),
    products: () =>
      list([{ key: 'bundle', title: 'Bundle (RPC, WebSocket, gRPC)', authorization: 'token', is_offered: true }]),
    planList: () => list([{ name: 'starter', limits: LIMITS }]),
    audit: () =>
      list([
        {
          ...{
            seq: 7,
            time: CREATED,
            action: 'customer.add',
            subjects: ['cus_acme'],
            subject_names: { cus_acme: 'acme' },
          },
          actor: { user: 'sluice', admin: { name: 'ann', role: 'owner' } },
        },
      ]),
    auditVerify: () => ({ ok: true, lines: 7, findings: [], notes: [] }),
    notices: () => list([]),
    adminList: () =>
      list([{ id: 'adm_1', name: 'ann', role: 'owner', state: 'active', last4: 'abcd', created_at: CREATED }]),
  }

  let isSignedIn = false
  const session = { id: 'adm_1', name: 'ann', role, csrf_token: CSRF }
  const server = createServer((request, response) => {
    const file = page(new URL(request.url ?? '/', 'http://x').pathname)
    if (file !== undefined) return sendPageFile(request, response, file)
    void respond(request).then(({ status, body }) => {
      response
        .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
        .end(JSON.stringify(body))
    })
  })

  async function respond(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const url = new URL(request.url ?? '/', 'http://x')
    let text = ''
    for await (const part of request) text += String(part)
    const body = (text === '' ? {} : JSON.parse(text)) as Body
    const error = (status: number, code: string) => ({
      status,
      body: { error: { code, message: code, fix: 'Try again.' } },
    })
    if (url.pathname === '/v1/session') {
      if (request.method === 'POST') isSignedIn = body['token'] === 'sla_right'
      if (request.method === 'DELETE') isSignedIn = false
      return isSignedIn || request.method === 'DELETE' ? { status: 200, body: session } : error(401, 'unauthorized')
    }
    if (!isSignedIn) return error(401, 'unauthorized')
    for (const [id, { method, path }] of Object.entries(ADMIN_ROUTES)) {
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
      const found = new RegExp(`^${path.replaceAll(/\{\w+\}/g, '([^/]+)')}$`).exec(url.pathname)
      if (found === null || method !== request.method) continue
      const csrf = request.headers[CSRF_HEADER] as string | undefined
      seen.push({ route: id, csrf, key: request.headers['idempotency-key'] as string | undefined })
      if (method !== 'GET' && csrf !== CSRF) return error(403, 'csrf')
      const params = Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(found[at + 1] ?? '')]))
      const value = handlers[id as AdminRouteId]?.(params, body, url.searchParams)
      return value ? { status: 200, body: value } : error(404, 'not-found')
    }
    return error(404, 'not-found')
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    seen,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
