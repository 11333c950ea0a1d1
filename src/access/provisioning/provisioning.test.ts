import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { offeredProducts } from '../../contract/product-options.ts'
import { createManualClock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import { createSeededRandom } from '../../core/random.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { openStore } from '../store/open.ts'
import { hashToken } from '../token.ts'
import type { Provisioning } from './context.ts'
import { addCustomer, setCustomerState } from './customers.ts'
import { parseDestination, setDestination, setDestinationPaused } from './destinations.ts'
import { grantIndexer, revokeIndexer } from './indexer-credentials.ts'
import { addNode, assignNode, changeNode, removeNode } from './nodes.ts'
import { addNote, recordRefund } from './notes.ts'
import {
  cancelSubscription,
  createSubscription,
  limitSubscription,
  parseProducts,
  renewSubscription,
  resumeSubscription,
  type SubscriptionInput,
  suspendSubscription,
} from './subscriptions.ts'
import { GRACE_MS_MAX, issueToken, revokeTokens, rotateToken } from './tokens.ts'

const OFFERED = offeredProducts({ 'shreds-decoded': { status: 'coming-soon' } })
const NOW_MS = 1_800_000_000_000
const ACTOR = { uid: 1000, user: 'op', sudoUser: null, tty: null }

async function openRig(): Promise<AsyncDisposable & { on: Provisioning; later(ms: number): Provisioning }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-provisioning-'))
  const random = createSeededRandom(7)
  const store = await openStore(
    {
      location: { engine: 'sqlite', file: join(folder, 'access.db') },
      audit: { file: join(folder, 'audit.log'), mirror: 'test', toolVersion: '0' },
      check: 'full',
    },
    { clock: createManualClock(NOW_MS), random, log: silentLogger },
  )
  const on: Provisioning = { store, random, actor: ACTOR, nowMs: NOW_MS }
  await addCustomer(on, { name: 'acme', contact: '' })
  return {
    on,
    later: (ms) => ({ ...on, nowMs: NOW_MS + ms }),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    },
  }
}

const input = (over: Partial<SubscriptionInput> = {}): SubscriptionInput => ({
  customer: 'acme',
  name: 'acme-prod',
  plan: 'build',
  products: ['bundle'],
  overrides: {},
  validUntil: null,
  ...over,
})

const refusedAs = (code: string) => (error: unknown) => error instanceof ServiceError && error.code === code

test('a subscription gets the credentials that its products need and no others', async () => {
  await using rig = await openRig()
  const { on } = rig
  const bundle = await createSubscription(on, input())
  assert.match(bundle.token?.secret ?? '', /^slc_/)
  assert.equal(bundle.credential, undefined)
  const shreds = await createSubscription(
    on,
    input({ name: 's', products: ['shreds-raw'], destination: { address: '8.8.8.8:20001', vouched: false } }),
  )
  assert.equal(shreds.token, undefined)
  assert.equal(shreds.destination?.proof, 'unproven')
  const sql = await createSubscription(on, input({ name: 'q', products: ['indexer'] }))
  assert.ok(sql.token !== undefined && sql.credential !== undefined, 'the indexer requires token and database login')
  const [stored] = await on.store.find('tokens', { subscriptionId: bundle.subscription.id })
  assert.equal(stored?.sha256, hashToken(bundle.token?.secret ?? ''))
  await assert.rejects(createSubscription(on, input()), refusedAs('already-exists'))
  await assert.rejects(createSubscription(on, input({ name: 'x', customer: 'nobody' })), refusedAs('not-found'))
})

test('refuses ambiguous names', async () => {
  await using rig = await openRig()
  for (const name of ['', 'Acme', 'a b', '-a', 'a-', 'sub_1', 'x'.repeat(64), 'ä', 'a/b', '../a']) {
    await assert.rejects(addCustomer(rig.on, { name, contact: '' }), refusedAs('invalid-value'), name)
  }
})

test('products: coming soon, not provisioned, unknown, twice', () => {
  assert.deepEqual(parseProducts('bundle, indexer,bundle', OFFERED), ['bundle', 'indexer'])
  assert.throws(() => parseProducts('shreds-decoded', OFFERED), refusedAs('coming-soon'))
  assert.deepEqual(parseProducts('shreds-decoded', offeredProducts({ 'shreds-decoded': { status: 'preview' } })), [
    'shreds-decoded',
  ])
  assert.throws(() => parseProducts('sender', OFFERED), refusedAs('invalid-value'))
  assert.throws(() => parseProducts('constructor', OFFERED), refusedAs('invalid-value'))
  assert.throws(() => parseProducts(' , ', OFFERED), refusedAs('invalid-value'))
})

test('a subscription has one token: a second issue is refused, and rotation keeps at most one predecessor', async () => {
  await using rig = await openRig()
  const { on } = rig
  const { subscription, token } = await createSubscription(on, input())
  await assert.rejects(issueToken(on, { subscription: 'acme-prod' }), refusedAs('already-exists'))
  const second = await rotateToken(on, { subscription: 'acme-prod', graceMs: 3_600_000 })
  assert.deepEqual(
    second.ended.map(({ id, state, notAfter }) => ({ id, state, notAfter })),
    [{ id: token?.record.id, state: 'retiring', notAfter: NOW_MS + 3_600_000 }],
  )
  const third = await rotateToken(on, { subscription: 'acme-prod', graceMs: 60_000 })
  const states = new Map(
    (await on.store.find('tokens', { subscriptionId: subscription.id })).map((row) => [row.id, row.state]),
  )
  assert.equal(states.get(token?.record.id ?? ''), 'revoked', 'a second rotation ends the first predecessor')
  assert.equal(states.get(second.record.id), 'retiring')
  assert.equal(states.get(third.record.id), 'active')
  await assert.rejects(
    rotateToken(on, { subscription: 'acme-prod', graceMs: GRACE_MS_MAX + 1 }),
    refusedAs('invalid-value'),
  )
  const { ended } = await revokeTokens(on, { subscription: 'acme-prod' })
  assert.equal(ended.length, 2)
  await assert.rejects(revokeTokens(on, { subscription: 'acme-prod' }), refusedAs('wrong-state'))
  assert.match((await issueToken(on, { subscription: subscription.id })).secret, /^slc_/)
})

test('an active record that is not served is not called active where it is to be resumed', async () => {
  await using rig = await openRig()
  const { on } = rig
  await createSubscription(on, input({ validUntil: NOW_MS + 1000 }))
  const resume = (at: Provisioning) => resumeSubscription(at, { subscription: 'acme-prod' })
  await assert.rejects(resume(on), { code: 'wrong-state', message: /"acme-prod" is active$/ })
  await assert.rejects(resume(rig.later(1000)), {
    code: 'wrong-state',
    message: /has expired/,
    fix: /sluice sub renew acme-prod/,
  })
  await setCustomerState(on, { customer: 'acme', state: 'suspended' })
  await assert.rejects(resume(on), {
    code: 'wrong-state',
    message: /its customer "acme"/,
    fix: /sluice customer resume acme/,
  })
})

test('a cancelled subscription stays cancelled, and loses its token, database user and nodes', async () => {
  await using rig = await openRig()
  const { on } = rig
  const { subscription } = await createSubscription(on, input({ products: ['bundle', 'indexer', 'dedicated-node'] }))
  await addNode(on, { name: 'ded-1', rpc: 'https://node.example.net', ws: '', grpc: '', credential: null })
  await assignNode(on, { node: 'ded-1', subscription: 'acme-prod' })
  await cancelSubscription(on, { subscription: 'acme-prod' })
  const { store } = on
  assert.ok((await store.find('tokens', { subscriptionId: subscription.id })).every(({ state }) => state === 'revoked'))
  assert.ok(
    (await store.find('indexerCredentials', { subscriptionId: subscription.id })).every(
      ({ state }) => state === 'revoked',
    ),
  )
  assert.equal((await store.find('nodes', { name: 'ded-1' }))[0]?.subscriptionId, null)
  for (const act of [resumeSubscription, suspendSubscription, cancelSubscription, revokeIndexer, issueToken]) {
    await assert.rejects(act(on, { subscription: 'acme-prod' }), refusedAs('wrong-state'))
  }
})

test('suspend and resume, each only from the other state; limits fall back to the plan; a renewal must be in the future', async () => {
  await using rig = await openRig()
  const { on } = rig
  await createSubscription(on, input())
  await assert.rejects(resumeSubscription(on, { subscription: 'acme-prod' }), refusedAs('wrong-state'))
  assert.equal((await suspendSubscription(on, { subscription: 'acme-prod' })).state, 'suspended')
  await assert.rejects(suspendSubscription(on, { subscription: 'acme-prod' }), refusedAs('wrong-state'))
  assert.equal((await resumeSubscription(on, { subscription: 'acme-prod' })).state, 'active')
  const own = await limitSubscription(on, {
    subscription: 'acme-prod',
    overrides: { unitsPerSecond: 300, grpcStreams: null },
  })
  assert.deepEqual(own.overrides, { unitsPerSecond: 300, grpcStreams: null })
  const back = await limitSubscription(on, { subscription: 'acme-prod', overrides: { unitsPerSecond: undefined } })
  assert.deepEqual(back.overrides, { grpcStreams: null })
  await assert.rejects(
    renewSubscription(on, { subscription: 'acme-prod', validUntil: NOW_MS }),
    refusedAs('invalid-value'),
  )
  assert.equal((await setCustomerState(on, { customer: 'acme', state: 'suspended' })).state, 'suspended')
  await assert.rejects(setCustomerState(on, { customer: 'acme', state: 'suspended' }), refusedAs('wrong-state'))
})

test('a destination is a literal, allowed address; a new one replaces it', async () => {
  await using rig = await openRig()
  const { on } = rig
  await createSubscription(on, input({ name: 's', products: ['shreds-raw'] }))
  for (const bad of [
    'localhost:20001',
    '8.8.8.8',
    '8.8.8.8:80',
    '224.0.0.1:20001',
    '169.254.169.254:20001',
    '0.0.0.0:20001',
    '255.255.255.255:9999',
    '[::ffff:8.8.8.8]:20001',
    '100.64.0.1:20001',
  ]) {
    assert.throws(() => parseDestination(bad, true), refusedAs('invalid-value'), bad)
  }
  assert.throws(() => parseDestination('10.0.0.1:20001', false), refusedAs('invalid-value'))
  assert.deepEqual(parseDestination('10.0.0.1:20001', true), { ip: '10.0.0.1', port: 20001 })
  await setDestination(on, { subscription: 's', destination: '8.8.8.8:20001', vouched: false })
  const { destination } = await setDestination(on, { subscription: 's', destination: '8.8.4.4:20001', vouched: true })
  assert.deepEqual(
    (await on.store.list('destinations')).map(({ ip, proof }) => ({ ip, proof })),
    [{ ip: '8.8.4.4', proof: 'vouched' }],
  )
  assert.equal(destination.paused, false)
  assert.equal((await setDestinationPaused(on, { subscription: 's', paused: true })).destination.paused, true)
  await createSubscription(on, input())
  await assert.rejects(
    setDestination(on, { subscription: 'acme-prod', destination: '8.8.8.8:20001', vouched: false }),
    refusedAs('wrong-state'),
  )
})

test('database credentials: one at a time, rotation replaces', async () => {
  await using rig = await openRig()
  const { on } = rig
  const { credential } = await createSubscription(on, input({ products: ['indexer'] }))
  await assert.rejects(grantIndexer(on, { subscription: 'acme-prod', rotate: false }), refusedAs('already-exists'))
  const rotated = await grantIndexer(on, { subscription: 'acme-prod', rotate: true })
  assert.notEqual(rotated.password, credential?.password)
  await revokeIndexer(on, { subscription: 'acme-prod' })
  await assert.rejects(grantIndexer(on, { subscription: 'acme-prod', rotate: true }), refusedAs('not-found'))
})

test('a node address contains no secret, and a node serves one subscription', async () => {
  await using rig = await openRig()
  const { on } = rig
  const node = { name: 'n', rpc: 'https://n.example.net:8899/', ws: '', grpc: '', credential: null }
  for (const rpc of [
    'https://user:pw@n.example.net',
    'https://n.example.net/?api-key=x',
    'ftp://n',
    'file:///etc/passwd',
    'n.example.net',
    '',
  ]) {
    await assert.rejects(addNode(on, { ...node, rpc }), refusedAs('invalid-value'), rpc)
  }
  await assert.rejects(addNode(on, { ...node, credential: 'plain-secret' }), refusedAs('invalid-value'))
  assert.equal((await addNode(on, node)).rpc, 'https://n.example.net:8899')
  await createSubscription(on, input({ products: ['dedicated-node'] }))
  await createSubscription(on, input({ name: 'other', products: ['dedicated-node'] }))
  await createSubscription(on, input({ name: 'plain' }))
  await assignNode(on, { node: 'n', subscription: 'acme-prod' })
  await assert.rejects(assignNode(on, { node: 'n', subscription: 'other' }), refusedAs('wrong-state'))
  await assert.rejects(assignNode(on, { node: 'n', subscription: 'plain' }), refusedAs('wrong-state'))
  assert.equal((await assignNode(on, { node: 'n', subscription: null })).node.subscriptionId, null)
})

test('the address of a node may be a reference, and addresses and credential can be changed', async () => {
  await using rig = await openRig()
  const { on } = rig
  const { store } = on
  await addNode(on, { name: 'n', rpc: 'env:NODE_RPC', ws: 'file:/etc/sluice/ws', grpc: '', credential: null })
  const changed = await changeNode(on, { node: 'n', changes: { ws: '', credential: 'env:KEY' } })
  assert.deepEqual([changed.rpc, changed.ws, changed.credential], ['env:NODE_RPC', '', 'env:KEY'])
  await assert.rejects(changeNode(on, { node: 'n', changes: { rpc: '' } }), refusedAs('invalid-value'))
  await assert.rejects(changeNode(on, { node: 'n', changes: { rpc: 'http://n/?key=1' } }), refusedAs('invalid-value'))
  assert.equal((await store.find('nodes', { name: 'n' }))[0]?.rpc, 'env:NODE_RPC')
})

test('a node is removed for good: an assigned one only by force, and its name is free again', async () => {
  await using rig = await openRig()
  const { on } = rig
  const { store } = on
  const node = { name: 'n', rpc: 'https://n.example.net', ws: '', grpc: '', credential: 'env:KEY' }
  await addNode(on, node)
  const { subscription } = await createSubscription(on, input({ products: ['dedicated-node'] }))
  await assignNode(on, { node: 'n', subscription: 'acme-prod' })
  await assert.rejects(removeNode(on, { node: 'n', force: false }), refusedAs('wrong-state'))
  const { node: removed, released } = await removeNode(on, { node: 'n', force: true })
  assert.deepEqual([removed.name, released?.subscription.id, released?.nodesLeft], ['n', subscription.id, 0])
  assert.deepEqual(await store.find('nodes', { subscriptionId: subscription.id }), [])
  for (const name of ['n', removed.id]) {
    await assert.rejects(assignNode(on, { node: name, subscription: 'acme-prod' }), refusedAs('not-found'))
    await assert.rejects(removeNode(on, { node: name, force: true }), refusedAs('not-found'))
  }
  const again = await addNode(on, node)
  assert.notEqual(again.id, removed.id)
  const audit = await Array.fromAsync(store.auditLines(0))
  assert.equal(audit.filter((line) => line.includes('"node.remove"') && line.includes(subscription.id)).length, 1)
})

test('notes and refunds are recorded as given', async () => {
  await using rig = await openRig()
  const { on } = rig
  await createSubscription(on, input())
  await addNote(on, { subject: 'acme', text: ' paid ' })
  await addNote(on, { subject: 'acme-prod', text: 'moved to build' })
  assert.deepEqual((await on.store.list('notes')).map(({ text }) => text).sort(), ['moved to build', 'paid'])
  const { subscription } = await createSubscription(on, input({ name: 'acme' }))
  await assert.rejects(addNote(on, { subject: 'acme', text: 'whose?' }), (error: ServiceError) => {
    assert.equal(error.code, 'invalid-value')
    return (error.fix ?? '').includes(`${subscription.id} for the subscription`)
  })
  const note = await addNote(on, { subject: subscription.id, text: 'of the subscription' })
  assert.equal(note.subjectId, subscription.id)
  for (const amount of ['0', '-1', '1e3', '01', '1.', '.5', '1,5', '1000000000000000']) {
    await assert.rejects(
      recordRefund(on, { subscription: 'acme-prod', amount, currency: 'USD', reason: 'x' }),
      refusedAs('invalid-value'),
      amount,
    )
  }
  const { refund } = await recordRefund(on, {
    subscription: 'acme-prod',
    amount: '12.50',
    currency: 'USD',
    reason: 'outage',
  })
  assert.equal(refund.amount, '12.50')
})

test('a token pasted into a note, a reason or a contact is not stored', async () => {
  await using rig = await openRig()
  const { on } = rig
  const { token } = await createSubscription(on, input())
  const secret = token?.secret ?? ''
  await addNote(on, { subject: 'acme', text: `leaked: ${secret}` })
  await recordRefund(on, { subscription: 'acme-prod', amount: '1', currency: 'USD', reason: `leak of ${secret}` })
  await addCustomer(on, { name: 'other', contact: `chat, ${secret}` })
  const kept = JSON.stringify([
    await on.store.list('notes'),
    await on.store.list('refunds'),
    await on.store.list('customers'),
  ])
  assert.match(kept, /leaked: /)
  assert.ok(!kept.includes(secret))
})

test('a dry run returns the result of the change and does not change store or audit log', async () => {
  await using rig = await openRig()
  const { on } = rig
  const before = await on.store.auditHead()
  const rehearsed = await createSubscription({ ...on, dryRun: true }, input())
  assert.equal(rehearsed.subscription.name, 'acme-prod')
  assert.deepEqual(await on.store.list('subscriptions'), [])
  assert.deepEqual(await on.store.auditHead(), before)
  await assert.rejects(
    createSubscription({ ...on, dryRun: true }, input({ customer: 'nobody' })),
    refusedAs('not-found'),
  )
})

test('no audit line contains a secret or its hash', async () => {
  await using rig = await openRig()
  const { on } = rig
  const { token, credential } = await createSubscription(on, input({ products: ['bundle', 'indexer'] }))
  const rotated = await rotateToken(on, { subscription: 'acme-prod', graceMs: 0 })
  const granted = await grantIndexer(on, { subscription: 'acme-prod', rotate: true })
  const secrets = [token?.secret, token?.record.sha256, credential?.password, credential?.record.sha256]
  secrets.push(rotated.secret, rotated.record.sha256, granted.password, granted.record.sha256)
  let lines = 0
  for await (const line of on.store.auditLines(1)) {
    lines += 1
    for (const secret of secrets) assert.ok(secret !== undefined && !line.includes(secret))
  }
  assert.equal(lines, 4)
})
