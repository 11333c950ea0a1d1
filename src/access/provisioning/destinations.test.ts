import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { Destination } from '../store/model.ts'
import { openStore } from '../store/open.ts'
import { type Provisioning, runChange } from './context.ts'
import { addCustomer } from './customers.ts'
import {
  CHALLENGE_AGAIN_MS,
  CHALLENGE_MS,
  challengeAgain,
  challengeCodeOf,
  challengeUnlessFresh,
  DESTINATIONS_PER_IP_MAX,
  isOpenChallenge,
  pendingId,
  proveDestination,
  setDestination,
} from './destinations.ts'
import { cancelSubscription, createSubscription } from './subscriptions.ts'

const NOW = 1_800_000_000_000

async function openRig() {
  const folder = makeTestFolder()
  const random = createSeededRandom(7)
  const store = await openStore(
    {
      location: { engine: 'sqlite', file: folder.file('access.db') },
      audit: { file: folder.file('audit.log'), mirror: 'test', toolVersion: '0' },
      check: 'full',
    },
    { clock: createManualClock(NOW), random, log: silentLogger },
  )
  const actor = { uid: 1, user: 'op', sudoUser: null, tty: null }
  const at = (ms: number): Provisioning => ({ store, random, actor, nowMs: NOW + ms })
  await addCustomer(at(0), { name: 'acme', contact: '' })
  const subscribe = async (name: string) =>
    (
      await createSubscription(at(0), {
        customer: 'acme',
        name,
        plan: 'build',
        products: ['shreds-raw'],
        overrides: {},
        validUntil: null,
      })
    ).subscription.id
  const key = await store.sharedKey('shred-challenge')
  return {
    store,
    at,
    subscribe,
    set: (ms: number, subscription: string, destination: string, vouched = false) =>
      setDestination(at(ms), { subscription, destination, vouched }),
    codeOf: (destination: Destination | undefined) => challengeCodeOf(key, destination as Destination),
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

test('another spelling of an IPv6 address is the same address, also of one that was stored as it was typed', async () => {
  await using rig = await openRig()
  const { store, at, set } = rig
  const id = await rig.subscribe('first')
  await rig.subscribe('second')
  const { destination } = await set(0, 'first', '[2A00:0:0::5]:20001', true)
  assert.equal(destination.ip, '2a00::5')
  const taken = { code: 'already-exists', message: '[2a00::5]:20001 is the destination of another subscription' }
  await assert.rejects(set(0, 'second', '[2a00:0::0:5]:20001', true), taken)
  await runChange(at(0), async (tx) => {
    await tx.put('destinations', { ...destination, ip: '2A00:0:0::5' })
    return { audit: { action: 'test', subjects: [id] }, result: undefined }
  })
  assert.equal((await store.get('destinations', id))?.ip, '2A00:0:0::5')
  await assert.rejects(set(0, 'second', '[2a00::5]:20001', true), taken)
  for (let n = 1; n < DESTINATIONS_PER_IP_MAX; n++) {
    await rig.subscribe(`near-${n}`)
    await set(0, `near-${n}`, `[2a00::5]:${30_000 + n}`, true)
  }
  await assert.rejects(set(0, 'second', '[2a00::5]:40000', true), { code: 'invalid-value', message: /the most/ })
  await set(0, 'second', '[2a00::6]:20001', true)
})

test('a new destination is pending beside the active one until it is proven, and then replaces it', async () => {
  await using rig = await openRig()
  const { store, at, set, codeOf } = rig
  const id = await rig.subscribe('s')
  await set(0, 's', '8.8.8.8:20001', true)
  const { destination: pending } = await set(1000, 's', '8.8.4.4:20001')
  assert.equal(pending.id, pendingId(id))
  assert.deepEqual(
    [(await store.get('destinations', id))?.ip, (await store.get('destinations', pendingId(id)))?.proof],
    ['8.8.8.8', 'unproven'],
  )
  const wrong = codeOf({ ...pending, port: 1 })
  await assert.rejects(proveDestination(at(2000), { subscription: 's', code: wrong, by: 'echo' }), {
    code: 'invalid-value',
  })
  const code = codeOf(pending)
  const late = proveDestination(at(1000 + CHALLENGE_MS), { subscription: 's', code, by: 'echo' })
  await assert.rejects(late, { code: 'wrong-state' })
  const { destination } = await proveDestination(at(3000), {
    subscription: 's',
    code: ` ${code.toUpperCase()}\n`,
    by: 'operator',
  })
  assert.deepEqual(
    [destination.id, destination.ip, destination.proof, destination.paused],
    [id, '8.8.4.4', 'proven', false],
  )
  assert.equal(isOpenChallenge(await store.get('destinations', pendingId(id)), NOW + 3000), false)
  await assert.rejects(proveDestination(at(4000), { subscription: 's', code, by: 'echo' }), { code: 'wrong-state' })

  const actions: string[] = []
  for await (const line of store.auditLines(1)) actions.push((JSON.parse(line) as { action: string }).action)
  assert.deepEqual(actions.slice(-3), ['shred.set-destination', 'shred.set-destination', 'shred.prove'])
})

test('a destination vouched for by the operator is active at once and cancels the pending challenge', async () => {
  await using rig = await openRig()
  const { store, set, at, codeOf } = rig
  const id = await rig.subscribe('s')
  const { destination: first } = await set(0, 's', '8.8.8.8:20001')
  assert.deepEqual([first.id, first.proof], [id, 'unproven'])
  await proveDestination(at(100), { subscription: 's', code: codeOf(first), by: 'echo' })
  const { destination: second } = await set(20_000, 's', '8.8.4.4:20001')
  await set(21_000, 's', '9.9.9.9:20001', true)
  assert.equal((await store.get('destinations', id))?.ip, '9.9.9.9')
  const old = proveDestination(at(22_000), { subscription: 's', code: codeOf(second), by: 'echo' })
  await assert.rejects(old, { code: 'wrong-state' })
})

test('an expired challenge beside an active destination keeps no address from other subscriptions', async () => {
  await using rig = await openRig()
  for (let i = 0; i <= DESTINATIONS_PER_IP_MAX; i++) {
    await rig.subscribe(`s${i}`)
    await rig.set(0, `s${i}`, `9.9.9.${i + 1}:20001`, true)
    if (i < DESTINATIONS_PER_IP_MAX) await rig.set(0, `s${i}`, `8.8.8.8:${20_000 + i}`)
  }
  const last = `s${DESTINATIONS_PER_IP_MAX}`
  const openMs = CHALLENGE_MS - 1
  await assert.rejects(rig.set(openMs, last, '8.8.8.8:20000', true), { code: 'already-exists' })
  await assert.rejects(rig.set(openMs, last, '8.8.8.8:30000', true), { code: 'invalid-value', message: /the most/ })
  await rig.set(CHALLENGE_MS, last, '8.8.8.8:20000', true)
  // A new challenge would be sent to the receiver of the other subscription.
  await assert.rejects(challengeAgain(rig.at(CHALLENGE_MS), { subscription: 's0' }), { code: 'already-exists' })
  await challengeAgain(rig.at(CHALLENGE_MS), { subscription: 's1' })
})

test('a challenge is repeated only after CHALLENGE_AGAIN_MS, with another code', async () => {
  await using rig = await openRig()
  await rig.subscribe('s')
  const { destination: first } = await rig.set(0, 's', '8.8.8.8:20001')
  await assert.rejects(rig.set(1000, 's', '8.8.4.4:20001'), { code: 'wrong-state' })
  await assert.rejects(challengeAgain(rig.at(CHALLENGE_AGAIN_MS - 1), { subscription: 's' }), {
    code: 'wrong-state',
  })
  const { destination: again } = await challengeAgain(rig.at(CHALLENGE_AGAIN_MS), { subscription: 's' })
  assert.notEqual(rig.codeOf(first), rig.codeOf(again))
  const old = { subscription: 's', code: rig.codeOf(first), by: 'echo' } as const
  await assert.rejects(proveDestination(rig.at(CHALLENGE_AGAIN_MS + 1), old), { code: 'invalid-value' })
  // As many characters as a code, and more bytes.
  const longer = { ...old, code: `é${old.code.slice(1)}` }
  await assert.rejects(proveDestination(rig.at(CHALLENGE_AGAIN_MS + 1), longer), { code: 'invalid-value' })
})

test('a challenge that was sent a moment ago is not sent again, and not returned to an author who has seen another revision', async () => {
  await using rig = await openRig()
  await rig.subscribe('s')
  const { subscription, destination } = await rig.set(0, 's', '8.8.8.8:20001')
  const challenge = (ifRevision: number) => challengeUnlessFresh({ ...rig.at(1000), ifRevision }, { subscription: 's' })
  const found = await challenge(subscription.revision)
  assert.deepEqual([found.isFresh, found.destination.setAt], [true, destination.setAt])
  await assert.rejects(challenge(subscription.revision - 1), { code: 'revision-changed' })
})

test('one destination per subscription, few subscriptions per address; a cancelled subscription frees its destination', async () => {
  await using rig = await openRig()
  for (let i = 0; i <= DESTINATIONS_PER_IP_MAX + 1; i++) await rig.subscribe(`s${i}`)
  await rig.set(0, 's0', '8.8.8.8:20000', true)
  await assert.rejects(rig.set(0, 's1', '8.8.8.8:20000', true), { code: 'already-exists' })
  for (let i = 1; i < DESTINATIONS_PER_IP_MAX; i++) await rig.set(0, `s${i}`, `8.8.8.8:${20_000 + i}`, true)
  const more = () => rig.set(0, `s${DESTINATIONS_PER_IP_MAX}`, '8.8.8.8:30000', true)
  await assert.rejects(more(), { code: 'invalid-value' })
  await cancelSubscription(rig.at(0), { subscription: 's0' })
  await more()
  await rig.set(0, 's1', '8.8.8.8:20000', true)
})
