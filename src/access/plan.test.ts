import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Limits } from '../contract/limits.ts'
import { isServiceError } from '../core/error.ts'
import { type AccessOptionsInput, accessOptions, overridesSchema, parseAccessOptions } from './options.ts'
import { BUILT_IN_PLANS, createPlanTable, findPlanFaults, highestCost, methodCost } from './plan.ts'

const own = (changes: Partial<Limits>): Limits => ({ ...BUILT_IN_PLANS.build, ...changes })

describe('plans', () => {
  test('the five built-in plans increase from starter to professional, are consistent and allow every interface', () => {
    assert.deepEqual(Object.keys(BUILT_IN_PLANS), ['starter', 'focus', 'build', 'grow', 'professional'])
    let before: Limits | undefined
    for (const [name, limits] of Object.entries(BUILT_IN_PLANS)) {
      assert.deepEqual(findPlanFaults(limits), [], name)
      assert.ok(limits.grpcStreams >= 1 && limits.wsConnections >= 1, name)
      assert.ok(limits.unitsPerSecond > (before?.unitsPerSecond ?? 0), name)
      before = limits
    }
  })

  test('names a plan that contradicts itself', () => {
    const cases: [Partial<Limits>, keyof Limits][] = [
      [{ wsConnections: 0 }, 'wsConnections'],
      [{ grpcStreams: 0 }, 'grpcStreams'],
      [{ grpcAccountsPerStream: 0 }, 'grpcAccountsPerStream'],
      [{ wsConnections: 4, wsSubscriptions: 4001 }, 'wsSubscriptions'],
      [{ sendsPerSecond: 201 }, 'sendsPerSecond'],
      [{ methods: { getProgramAccounts: { perSecond: 7 } } }, 'methods'],
      [{ batchItems: 2001 }, 'batchItems'],
      [{ unitsPerMonth: 199 }, 'unitsPerMonth'],
    ]
    for (const [changes, limit] of cases) {
      assert.ok(
        findPlanFaults(own(changes)).some((fault) => fault.limit === limit),
        limit,
      )
    }
    // The bucket holds at least the most expensive call, as compileTerms makes it.
    const [fault] = findPlanFaults(own({ unitsPerSecond: 1, sendsPerSecond: 1 })).filter(
      ({ limit }) => limit === 'batchItems',
    )
    assert.match(fault?.message ?? '', /the bucket holds only 30 units/)
    assert.deepEqual(findPlanFaults(own({ wsConnections: 5, wsSubscriptions: 5000, unitsPerSecond: null })), [])
  })

  test("the cost of a method is the plan's, else the contract's, else one", () => {
    const limits = own({ methods: { getSlot: { cost: 3 }, getBlock: { perSecond: 1 }, constructor: { cost: 9 } } })
    assert.equal(methodCost(limits, 'getSlot'), 3)
    assert.equal(methodCost(limits, 'getBlock'), 5)
    assert.equal(methodCost(limits, 'getProgramAccounts'), 30)
    assert.equal(methodCost(limits, 'neverHeardOf'), 1)
    assert.equal(methodCost(limits, 'toString'), 1)
    assert.equal(methodCost(limits, 'constructor'), 9)
    assert.equal(highestCost(limits), 30)
    assert.equal(highestCost(own({ methods: { getSlot: { cost: 70 } } })), 70)
  })

  test('equal limits are one object, and an unknown plan falls back to the smallest', () => {
    const table = createPlanTable(BUILT_IN_PLANS)
    assert.equal(table.limitsOf('grow', {}), BUILT_IN_PLANS.grow)
    const a = table.limitsOf('grow', { unitsPerSecond: 1, batchItems: 5 })
    assert.equal(table.limitsOf('grow', { batchItems: 5, unitsPerSecond: 1 }), a)
    assert.notEqual(table.limitsOf('build', { batchItems: 5, unitsPerSecond: 1 }), a)
    assert.equal(a.sendsPerSecond, 50)
    assert.equal(table.limitsOf('gone', {}), BUILT_IN_PLANS.starter)
    assert.equal(table.has('gone'), false)
    assert.throws(
      () => table.get('gone'),
      (error) => isServiceError(error, 'not-found'),
    )
  })

  test("an override of one method does not change the plan's other methods", () => {
    const table = createPlanTable({ p: own({ methods: { getSlot: { cost: 2 }, getBlock: { cost: 9 } } }) })
    assert.deepEqual(table.limitsOf('p', { methods: { getSlot: { perSecond: 1 } } }).methods, {
      getSlot: { perSecond: 1 },
      getBlock: { cost: 9 },
    })
  })
})

describe('access options', () => {
  const plan = {
    unitsPerSecond: 100,
    sendsPerSecond: 10,
    wsConnections: 5,
    wsSubscriptions: 'unlimited' as const,
    grpcStreams: 2,
    grpcAccountsPerStream: 10,
  }

  test('an empty configuration is valid', () => {
    const options = parseAccessOptions()
    assert.deepEqual(options.store, { engine: 'sqlite', file: 'access.db' })
    assert.deepEqual(options.quota, {})
    assert.deepEqual(options.plans, BUILT_IN_PLANS)
  })

  test('plans of the operator are added to the built-in ones, with defaults for omitted limits', () => {
    const { plans } = parseAccessOptions({ plans: { trading: plan } })
    assert.deepEqual(Object.keys(plans), [...Object.keys(BUILT_IN_PLANS), 'trading'])
    assert.equal(plans['trading']?.wsSubscriptions, null)
    assert.equal(plans['trading']?.batchItems, 100)
    const { grpcKinds, grpcBlockedOwners, grpcResume } = plans['trading'] ?? {}
    assert.deepEqual([grpcKinds, grpcBlockedOwners, grpcResume], [null, [], false])
    const rules = {
      grpcKinds: ['accounts', 'slots'] as ('accounts' | 'slots')[],
      grpcBlockedOwners: ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'],
      grpcResume: true,
    }
    const { plans: strict } = parseAccessOptions({ plans: { trading: { ...plan, ...rules } } })
    assert.deepEqual({ ...strict['trading'], ...rules }, strict['trading'])
  })

  test('refuses mistakes and names their keys', () => {
    const cases: [AccessOptionsInput, string][] = [
      [{ plans: { trading: { ...plan, sendsPerSecond: 101 } } }, 'plans.trading.sendsPerSecond'],
      [{ plans: { trading: { ...plan, unitsPerSecond: -1 } } }, 'plans.trading.unitsPerSecond'],
      [{ plans: { trading: { ...plan, wsConections: 1 } as typeof plan } }, 'plans.trading'],
      [{ plans: { trading: { ...plan, grpcKinds: [] } } }, 'plans.trading.grpcKinds'],
      [{ plans: { trading: { ...plan, grpcBlockedOwners: ['0OIl'] } } }, 'plans.trading.grpcBlockedOwners.0'],
      [{ plans: { 'A b': plan } }, 'plans.A b'],
      [{ store: { engine: 'postgres', url: 'postgres://u:secret@h/d' } }, 'store.url'],
      [{ quota: { shared: { url: 'redis://:secret@h' } } }, 'quota.shared.url'],
      [{ quota: { shared: { url: 'http://h' } } }, 'quota.shared.url'],
      [{ quota: { shared: { url: 'redis://h', password: 'hunter2' } } }, 'quota.shared.password'],
    ]
    for (const [input, path] of cases) {
      const result = accessOptions.safeParse(input)
      assert.equal(result.success, false, path)
      assert.ok(
        result.error?.issues.some((issue) => issue.path.join('.') === path),
        `${path}: ${result.error?.message}`,
      )
    }
  })

  test('an override may set or remove any limit', () => {
    assert.deepEqual(overridesSchema.parse({ unitsPerSecond: 'unlimited', batchItems: 5 }), {
      unitsPerSecond: null,
      batchItems: 5,
    })
    assert.deepEqual(overridesSchema.parse({ unitsPerSecond: null }), { unitsPerSecond: null })
    assert.equal(overridesSchema.safeParse({ batchItems: 'unlimited' }).success, false)
  })
})
