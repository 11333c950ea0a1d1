import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSqliteStore } from '../../../test/support/store/engines.ts'
import { ADMIN_ROLES, type AdminRole } from '../../contract/admin-routes.ts'
import { createSeededRandom } from '../../core/random.ts'
import type { Provisioning } from './context.ts'
import { addCustomer } from './customers.ts'
import { addNode, assignNode, changeNode } from './nodes.ts'
import { cancelSubscription, createSubscription } from './subscriptions.ts'

const ACTOR = { uid: 1000, user: 'op', sudoUser: null, tty: null }
const NODE = { name: 'fra-1', rpc: 'https://fra-1.example.net', ws: '', grpc: '', credential: null }
const SECRET = 'file:/var/lib/sluice/keys/tip-1.json'

test('only who may administer chooses a reference of a node, or where its content is sent', async () => {
  await using opened = await openSqliteStore()
  const on: Provisioning = { store: opened.store, random: createSeededRandom(1), actor: ACTOR, nowMs: 1 }
  const by = (role: AdminRole): Provisioning => ({
    ...on,
    actor: { ...ACTOR, admin: { id: 'adm_1', name: role, role, address: '127.0.0.1' } },
  })
  const withSecret = await addNode(on, { ...NODE, name: 'keyed', credential: SECRET })
  const byReference = await addNode(by('owner'), { ...NODE, name: 'by-reference', ws: 'env:FRA_1_WS' })
  const refused = { code: 'forbidden', message: /credential or an address by reference/ }
  for (const role of ADMIN_ROLES.filter((each) => each !== 'owner')) {
    for (const given of [{ credential: SECRET }, { rpc: 'env:FRA_1' }, { ws: 'file:/etc/x' }, { grpc: 'env:FRA_1' }])
      await assert.rejects(addNode(by(role), { ...NODE, name: `of-${role}`, ...given }), refused, JSON.stringify(given))
    const moved = { rpc: 'https://collector.example.net' }
    for (const { id } of [withSecret, byReference])
      await assert.rejects(changeNode(by(role), { node: id, changes: moved }), refused)
    const plain = await addNode(by(role), { ...NODE, name: `plain-${role}` })
    await assert.rejects(changeNode(by(role), { node: plain.id, changes: { credential: SECRET } }), refused)
    assert.equal((await changeNode(by(role), { node: plain.id, changes: moved })).rpc, moved.rpc)
  }
  const kept = await on.store.get('nodes', withSecret.id)
  assert.deepEqual([kept?.rpc, kept?.credential], [NODE.rpc, SECRET])
  // Without the credential its addresses contain no secret.
  const cleared = { node: withSecret.id, changes: { credential: null, rpc: 'https://fra-2.example.net' } }
  assert.equal((await changeNode(by('support'), cleared)).credential, null)
})

test('a node is not assigned to a cancelled subscription', async () => {
  await using opened = await openSqliteStore()
  const on: Provisioning = { store: opened.store, random: createSeededRandom(1), actor: ACTOR, nowMs: 1 }
  await addCustomer(on, { name: 'acme', contact: '' })
  const input = { customer: 'acme', plan: 'build', overrides: {}, validUntil: null } as const
  for (const name of ['old', 'new']) await createSubscription(on, { ...input, name, products: ['dedicated-node'] })
  const { id } = await addNode(on, NODE)
  await cancelSubscription(on, { subscription: 'old' })
  await assert.rejects(assignNode(on, { node: id, subscription: 'old' }), {
    code: 'wrong-state',
    message: 'subscription "old" is cancelled',
  })
  assert.equal((await on.store.get('nodes', id))?.subscriptionId, null)
  assert.equal((await assignNode(on, { node: id, subscription: 'new' })).subscription?.name, 'new')
})
