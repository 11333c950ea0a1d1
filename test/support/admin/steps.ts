import assert from 'node:assert/strict'
import { challengeCodeOf } from '../../../src/access/provisioning/destinations.ts'
import type { RecordKind } from '../../../src/access/store/model.ts'
import type { AccessStore } from '../../../src/access/store/store.ts'
import { type HandlerId, openHandlers } from './handlers.ts'

export type Step = {
  readonly words: readonly string[] | ((store: AccessStore) => Promise<readonly string[]>)
  readonly id: HandlerId
  readonly params?: Record<string, string>
  readonly query?: Record<string, string>
  /** What the store must have first. */
  readonly before?: (store: AccessStore) => Promise<unknown>
  /** A value, or a function of the store that returns one. */
  readonly body?: unknown
}

const SUB = { subscription: 'one' }
const ACME = { customer: 'acme' }

async function codeOf(store: AccessStore): Promise<string> {
  const { id } = (await store.find('subscriptions', { name: 'one' }))[0] as { id: string }
  const destination = await store.get('destinations', id)
  assert.ok(destination)
  return challengeCodeOf(await store.sharedKey('shred-challenge'), destination)
}

const BEGUN = { sink: 'stripe', storeId: 's', fromHour: 0, plannedHour: 0, paused: false, owner: null, leaseUntil: 0 }

/** Each changing command and the request that does the same, in an order in which all succeed. */
export const STEPS: readonly Step[] = [
  { words: ['customer', 'add', 'ac', '--contact', 'a@b.c'], id: 'customerAdd', body: { name: 'ac', contact: 'a@b.c' } },
  {
    words: ['customer', 'rename', 'ac', 'acme'],
    id: 'customerChange',
    params: { customer: 'ac' },
    body: { name: 'acme' },
  },
  { words: ['customer', 'contact', 'acme', 'x@y.z'], id: 'customerChange', params: ACME, body: { contact: 'x@y.z' } },
  { words: ['customer', 'suspend', 'acme', '--yes'], id: 'customerSuspend', params: ACME },
  { words: ['customer', 'resume', 'acme'], id: 'customerResume', params: ACME },
  { words: ['customer', 'note', 'acme', 'pays late'], id: 'noteAdd', body: { subject: 'acme', text: 'pays late' } },
  {
    words: [
      'sub',
      'create',
      'one',
      '--customer',
      'acme',
      '--plan',
      'build',
      '--products',
      'bundle,indexer',
      '--until',
      '2099-01-31',
      '--units-per-second',
      '150',
      '--print-token',
    ],
    id: 'subCreate',
    body: {
      name: 'one',
      customer: 'acme',
      plan: 'build',
      products: ['bundle', 'indexer'],
      valid_until: '2099-01-31',
      limits: { units_per_second: 150 },
    },
  },
  {
    words: ['sub', 'limit', 'one', '--plan', 'grow', '--grpc-streams', '3', '--clear', 'units-per-second'],
    id: 'subLimit',
    params: SUB,
    body: { plan: 'grow', limits: { grpc_streams: 3 }, clear: ['units_per_second'] },
  },
  {
    words: ['sub', 'limit', 'one', '--methods', 'getProgramAccounts:cost=20:per-second=0.5,getSlot:cost=2'],
    id: 'subLimit',
    params: SUB,
    body: {
      limits: {
        methods: [
          { method: 'getProgramAccounts', cost: 20, per_second: 0.5 },
          { method: 'getSlot', cost: 2 },
        ],
      },
    },
  },
  {
    words: [
      'sub',
      'limit',
      'one',
      '--units-per-second',
      '12.5',
      '--sends-per-second',
      '0',
      '--methods',
      'getSlot:plan',
    ],
    id: 'subLimit',
    params: SUB,
    body: { limits: { units_per_second: 12.5, sends_per_second: 0, methods: [{ method: 'getSlot' }] } },
  },
  { words: ['sub', 'renew', 'one', '--until', 'never'], id: 'subRenew', params: SUB, body: { until: 'never' } },
  { words: ['sub', 'suspend', 'one', '--yes'], id: 'subSuspend', params: SUB },
  { words: ['sub', 'resume', 'one'], id: 'subResume', params: SUB },
  { words: ['sub', 'add-product', 'one', 'shreds-raw'], id: 'productAdd', params: { ...SUB, product: 'shreds-raw' } },
  {
    words: ['sub', 'add-product', 'one', 'dedicated-node'],
    id: 'productAdd',
    params: { ...SUB, product: 'dedicated-node' },
  },
  {
    words: ['sub', 'refund', 'one', '12.50', 'USD', '--reason', 'outage'],
    id: 'refundAdd',
    params: SUB,
    body: { amount: '12.50', currency: 'USD', reason: 'outage' },
  },
  {
    words: ['token', 'rotate', 'one', '--grace', '1h', '--print-token'],
    id: 'tokenRotate',
    params: SUB,
    body: { grace: '1h' },
  },
  { words: ['token', 'revoke', 'one', '--yes'], id: 'tokenRevoke', params: SUB },
  { words: ['token', 'issue', 'one', '--print-token'], id: 'tokenIssue', params: SUB },
  { words: ['indexer', 'rotate', 'one', '--yes', '--print-token'], id: 'indexerRotate', params: SUB },
  { words: ['indexer', 'revoke', 'one', '--yes'], id: 'indexerRevoke', params: SUB },
  { words: ['indexer', 'grant', 'one', '--print-token'], id: 'indexerGrant', params: SUB },
  {
    words: ['shred', 'set-destination', 'one', '8.8.8.8:20001'],
    id: 'destinationSet',
    params: SUB,
    body: { address: '8.8.8.8:20001' },
  },
  {
    words: async (store) => ['shred', 'verify', 'one', await codeOf(store)],
    id: 'destinationVerify',
    params: SUB,
    body: async (store: AccessStore) => ({ code: await codeOf(store) }),
  },
  { words: ['shred', 'pause', 'one'], id: 'destinationPause', params: SUB },
  { words: ['shred', 'resume', 'one'], id: 'destinationResume', params: SUB },
  {
    words: ['node', 'add', 'big', '--rpc', 'http://8.8.8.8:8899'],
    id: 'nodeAdd',
    body: { name: 'big', rpc: 'http://8.8.8.8:8899' },
  },
  {
    words: ['node', 'set', 'big', '--ws', 'ws://8.8.8.8:8900'],
    id: 'nodeChange',
    params: { node: 'big' },
    body: { ws: 'ws://8.8.8.8:8900' },
  },
  { words: ['node', 'assign', 'big', 'one'], id: 'nodeAssign', params: { node: 'big' }, body: { subscription: 'one' } },
  {
    words: ['node', 'assign', 'big', '--nobody'],
    id: 'nodeAssign',
    params: { node: 'big' },
    body: { subscription: null },
  },
  { words: ['node', 'remove', 'big', '--yes'], id: 'nodeRemove', params: { node: 'big' } },
  {
    words: ['sub', 'remove-product', 'one', 'dedicated-node', '--yes'],
    id: 'productRemove',
    params: { ...SUB, product: 'dedicated-node' },
  },
  {
    words: ['customer', 'billing-id', 'acme', 'cus_9'],
    id: 'customerBillingId',
    params: ACME,
    body: { billing_id: 'cus_9' },
  },
  {
    words: ['billing', 'pause', '--sink', 'stripe'],
    id: 'billingPause',
    body: { sink: 'stripe' },
    before: (store) => store.billing.begin(BEGUN),
  },
  { words: ['billing', 'resume', '--sink', 'stripe'], id: 'billingResume', body: { sink: 'stripe' } },
  {
    words: ['billing', 'retry', '--sink', 'stripe', '--mark-sent'],
    id: 'billingRetry',
    body: { sink: 'stripe', mark_sent: true },
  },
  { words: ['sub', 'cancel', 'one', '--yes'], id: 'subCancel', params: SUB },
  { words: ['customer', 'remove', 'acme', '--yes'], id: 'customerRemove', params: ACME },
]

const KINDS: readonly RecordKind[] = [
  'customers',
  'subscriptions',
  'tokens',
  'destinations',
  'indexerCredentials',
  'nodes',
  'notes',
  'refunds',
]
const DAY_MS = 86_400_000

/** The store lists the records of a subscription by their ids, which are random: lists of records are compared in an order of their own. */
function inOrder(list: unknown[]): unknown[] {
  const texts = list.map((each) => JSON.stringify(each) ?? '')
  if (!texts.some((text) => /"[a-z]+#[0-9]+"/.test(text))) return list
  return list.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

/** Random and current values replaced: ids by the order in which they appear, secrets and times by a word. */
export function createMask() {
  const ids = new Map<string, string>()
  const idOf = (id: string) => {
    const known = ids.get(id) ?? `${id.slice(0, id.indexOf('_'))}#${ids.size}`
    ids.set(id, known)
    return known
  }
  const text = (value: string) =>
    value
      .replaceAll(/\b(?:cus|sub|tok|idx|node|note|ref)_[0-9a-z]{16}\b/g, idOf)
      .replaceAll(/\bu_[0-9a-z]{12}\b/g, 'USER')
      .replaceAll(/^[0-9a-f]{64}$/g, 'SHA')
  return function mask(value: unknown, key = ''): unknown {
    if (key === 'last4' || key === 'createdBy') return '****'
    if (typeof value === 'string') return text(value)
    if (typeof value === 'number') return value > 1e12 && value % DAY_MS !== 0 ? 'TIME' : value
    if (Array.isArray(value)) return inOrder(value.map((each) => mask(each)))
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mask(inner, name)]))
  }
}

export async function withStore<T>(folder: string, work: (store: AccessStore) => Promise<T>): Promise<T> {
  await using opened = await openHandlers(folder)
  return await work(opened.store)
}

export async function lastLine(store: AccessStore): Promise<{ seq: number; entry: unknown }> {
  const { lines } = await store.auditPage({ limit: 1 })
  const { seq, action, subjects, before, after } = JSON.parse(lines[0] ?? '{}') as Record<string, unknown>
  return { seq: Number(seq), entry: { action, subjects, before, after } }
}

export async function recordsOf(store: AccessStore): Promise<unknown[]> {
  return Promise.all(KINDS.map(async (kind) => ({ kind, records: await store.list(kind) })))
}
