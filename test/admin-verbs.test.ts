import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { challengeCodeOf } from '../src/access/provisioning/destinations.ts'
import type { RecordKind } from '../src/access/store/model.ts'
import type { AccessStore } from '../src/access/store/store.ts'
import { ADMIN_ROUTES, type AdminRoute, type AdminRouteId } from '../src/contract/admin-routes.ts'
import { type CallInput, type HandlerId, openHandlers } from './support/admin-handlers.ts'
import { sluiceHere } from './support/cli-in-process.ts'
import { COMMANDS } from './support/commands.ts'

/** Commands without a route, and why. */
const LOCAL: Readonly<Record<string, string>> = {
  init: 'writes the files of a new installation',
  serve: 'starts the process that has the API',
  doctor: 'checks the machine it runs on',
  reload: 'reads the configuration file of the machine',
  drain: 'stops the process that has the API',
  'node test': 'connects from the machine it runs on, with credentials of the configuration',
  'upstream test': 'connects from the machine it runs on, with credentials of the configuration',
  'bench stream': 'connects from the machine it runs on',
  'shred inspect': 'reads a file of the machine',
  'shred listen': 'receives packets on the machine',
  'indexer run': 'starts a process',
  'indexer backfill': 'is long work on the data of the machine, watched in a terminal',
  'indexer query': 'runs SQL without the limits of a subscription',
  'tip accounts': 'reads key files of the machine',
  'tip check': 'only computes, without the store',
  'tip revenue': 'reads the ledger of tips, a file of the machine',
  'ring inspect': 'reads shared memory of the machine',
  'ring fold': 'reads shared memory of the machine',
  'ring record': 'reads shared memory of the machine',
  'ring watch': 'reads shared memory of the machine',
  localnet: 'runs a chain for tests',
  'localnet run': 'runs a chain for tests',
  'localnet set': 'changes a chain for tests',
  gateway: 'starts a process',
  execution: 'starts a process',
  sender: 'starts a process',
  shreds: 'starts a process',
  'logs tail': 'follows the log of the process in a terminal',
  'customer billing-id': 'is set up once with the billing system, on the machine',
  'billing retry': 'may send usage a second time: decided on the machine after a look at the billing system',
  'billing pause': 'is part of moving or restoring the store, on the machine',
  'billing resume': 'is part of moving or restoring the store, on the machine',
  backup: 'writes a file with secrets on the machine',
  restore: 'replaces the store while no process runs',
  'config check': 'reads the configuration file of the machine',
  'config show': 'reads the configuration file of the machine',
  'config schema': 'only prints',
  docs: 'only prints',
  'completion bash': 'only prints',
  'completion zsh': 'only prints',
  'completion fish': 'only prints',
  version: 'only prints',
}

const ROUTES: readonly [AdminRouteId, AdminRoute][] = Object.entries(ADMIN_ROUTES) as [AdminRouteId, AdminRoute][]

test('every command has a route of the admin API, or a reason to stay local', () => {
  const routed = new Set(ROUTES.flatMap(([, { commands = [] }]) => commands))
  const names = COMMANDS.map(({ path }) => path.join(' '))
  assert.deepEqual(
    names.filter((name) => !routed.has(name) && LOCAL[name] === undefined),
    [],
    'add a route to src/contract/admin-routes.ts, or a reason here and in docs/admin-api.md',
  )
  assert.deepEqual(
    Object.keys(LOCAL).filter((name) => routed.has(name) || !names.includes(name)),
    [],
    'the reason of a command that has a route or does not exist',
  )
})

type Step = {
  readonly words: readonly string[] | ((store: AccessStore) => Promise<readonly string[]>)
  readonly id: HandlerId
  readonly params?: Record<string, string>
  readonly query?: Record<string, string>
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

/** Each changing command and the request that does the same, in an order in which all succeed. */
const STEPS: readonly Step[] = [
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
  { words: ['sub', 'cancel', 'one', '--yes'], id: 'subCancel', params: SUB },
  { words: ['customer', 'remove', 'acme', '--yes'], id: 'customerRemove', params: ACME },
]

/** Changes without a record in the store, or of another part of the service. */
const NOT_STORED: readonly AdminRouteId[] = [
  'noticeTest',
  'upstreamDrain',
  'upstreamUndrain',
  'connectionClose',
  'adminAdd',
  'adminRotate',
  'adminRemove',
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
function createMask() {
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

describe('a changing command and its route', () => {
  test('all changing routes are compared', () => {
    const compared = new Set<string>(STEPS.map(({ id }) => id))
    const missing = ROUTES.filter(
      ([id, { method }]) => method !== 'GET' && !compared.has(id) && !NOT_STORED.includes(id),
    )
    assert.deepEqual(
      missing.map(([id]) => id),
      [],
    )
  })

  test('change the same records and write the same audit line', async () => {
    const base = await mkdtemp(join(tmpdir(), 'sluice-verbs-'))
    try {
      const [byCommand, byRoute] = [join(base, 'command'), join(base, 'route')]
      const [maskCommand, maskRoute] = [createMask(), createMask()]
      await using api = await openHandlers(byRoute)
      for (const [at, step] of STEPS.entries()) {
        const words = typeof step.words === 'function' ? await withStore(byCommand, step.words) : step.words
        const { code, stderr } = await sluiceHere([...words, '--state', byCommand])
        assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
        const body = typeof step.body === 'function' ? await step.body(api.store) : step.body
        const input: CallInput = { params: step.params ?? {}, query: step.query ?? {}, body }
        await api.call(step.id, input)

        const line = await withStore(byCommand, (store) => lastLine(store))
        const seen = [maskCommand(line.entry), maskRoute((await lastLine(api.store)).entry)]
        assert.deepEqual(seen[1], seen[0], `audit line of ${words.slice(0, 2).join(' ')}`)
        assert.equal(line.seq, at + 1, 'one line for each change')
      }
      const records = await withStore(byCommand, (store) => recordsOf(store))
      assert.deepEqual(maskRoute(await recordsOf(api.store)), maskCommand(records))
    } finally {
      await rm(base, { recursive: true, force: true })
    }
  })
})

async function withStore<T>(folder: string, work: (store: AccessStore) => Promise<T>): Promise<T> {
  await using opened = await openHandlers(folder)
  return await work(opened.store)
}

async function lastLine(store: AccessStore): Promise<{ seq: number; entry: unknown }> {
  const { lines } = await store.auditPage({ limit: 1 })
  const { seq, action, subjects, before, after } = JSON.parse(lines[0] ?? '{}') as Record<string, unknown>
  return { seq: Number(seq), entry: { action, subjects, before, after } }
}

async function recordsOf(store: AccessStore): Promise<unknown[]> {
  return Promise.all(KINDS.map(async (kind) => ({ kind, records: await store.list(kind) })))
}
