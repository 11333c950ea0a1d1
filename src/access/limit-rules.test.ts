import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMIT_LABELS, type Limits, type NumberLimit } from '../contract/limits.ts'
import { parseMethodLimit, parseNumberLimit, printMethodLimit } from '../contract/typed-limits.ts'
import { toWireJson } from '../contract/wire-json.ts'
import { checkOverrides, mergeOverrides, wireSubscription } from './limit-rules.ts'
import { BUILT_IN_PLANS, createPlanTable } from './plan.ts'

const PLANS = createPlanTable({ ...BUILT_IN_PLANS, free: { ...BUILT_IN_PLANS.build, unitsPerSecond: null } })
const check = (changes: Partial<Limits>, present: Partial<Limits> = {}) =>
  checkOverrides(PLANS, 'free', { present, changes })

describe('overrides', () => {
  test('a change of one method leaves the others; the last one that is removed leaves no override', () => {
    const present: Partial<Limits> = { grpcStreams: 3, methods: { getSlot: { cost: 2 }, getBlock: { perSecond: 1 } } }
    assert.deepEqual(mergeOverrides(present, { methods: { getSlot: { perSecond: 0.5 }, getEpoch: { cost: 0 } } }), {
      grpcStreams: 3,
      methods: { getSlot: { perSecond: 0.5 }, getBlock: { perSecond: 1 }, getEpoch: { cost: 0 } },
    })
    const rest = mergeOverrides(present, { methods: { getSlot: undefined } })
    assert.deepEqual(rest, { grpcStreams: 3, methods: { getBlock: { perSecond: 1 } } })
    assert.deepEqual(mergeOverrides(rest, { methods: { getBlock: undefined } }), { grpcStreams: 3 })
    assert.deepEqual(mergeOverrides(present, { methods: undefined }), { grpcStreams: 3 })
    assert.deepEqual(mergeOverrides(present, { grpcStreams: undefined }), { methods: present.methods })
  })

  test('methods have their bounds, also in number over several changes', () => {
    assert.deepEqual(check({ methods: { getProgramAccounts: { cost: 30, perSecond: 0.5 } } }), [])
    for (const limit of [{ cost: 0.5 }, { cost: -1 }, { perSecond: -1 }, { perSecond: 1e9 }])
      assert.throws(() => check({ methods: { getSlot: limit } }), { code: 'invalid-value', message: /^methods/ })
    const many = Object.fromEntries(Array.from({ length: 256 }, (_, at) => [`method${at}`, { cost: 1 }]))
    assert.deepEqual(check({ methods: many }), [])
    assert.throws(() => check({ methods: { getSlot: { cost: 1 } } }, { methods: many }), /at most 256 methods/)
    assert.throws(
      () =>
        checkOverrides(PLANS, 'starter', {
          present: {},
          changes: { methods: { getProgramAccounts: { cost: 30, perSecond: 1 } } },
        }),
      /methods gives getProgramAccounts 1 a second at 30 units each, more than 15 units allow/,
    )
  })

  test('a number that can be typed is one that a plan may have, and the other way round', () => {
    const names = (Object.keys(LIMIT_LABELS) as (keyof typeof LIMIT_LABELS)[]).filter(
      (name): name is NumberLimit => name !== 'methodPerSecond',
    )
    const isAccepted = (changes: Partial<Limits>) => {
      try {
        check(changes)
        return true
      } catch {
        return false
      }
    }
    for (const name of names)
      for (const [text, value] of [
        ['0', 0],
        ['1500.5', 1500.5],
        ['2000', 2000],
        ['unlimited', null],
      ] as const) {
        const typed = parseNumberLimit(name, text)
        assert.equal(typed, isAccepted({ [name]: value }) ? value : undefined, `${name} ${text}`)
      }
    const most = Number.MAX_SAFE_INTEGER
    assert.ok(isAccepted({ unitsPerMonth: most }))
    assert.equal(parseNumberLimit('unitsPerMonth', String(most)), most)
    for (const text of ['', '-1', '1e3', '01', '.5', '1.', '0x1', '9007199254740992', '99999999999999999999'])
      for (const name of names) assert.equal(parseNumberLimit(name, text), undefined, `${name} ${text}`)
  })

  test('in JSON the names of methods keep their case', () => {
    const subscription = { id: 'sub_1', overrides: { methods: { getBlock: { perSecond: 1 } } } }
    assert.deepEqual(toWireJson(wireSubscription(subscription)), {
      id: 'sub_1',
      overrides: { methods: [{ method: 'getBlock', per_second: 1 }] },
    })
  })

  test('limits of a method are printed as they are typed', () => {
    for (const text of ['getBlock:cost=30:per-second=0.5', 'getBlock:cost=0', 'getBlock:per-second=0']) {
      const parsed = parseMethodLimit(text)
      assert.ok(parsed?.limit)
      assert.equal(printMethodLimit(parsed.method, parsed.limit), text)
    }
    assert.deepEqual(parseMethodLimit('getBlock:plan'), { method: 'getBlock', limit: undefined })
    for (const text of [
      'getBlock',
      'getBlock:',
      ':plan',
      'getBlock:cost',
      'getBlock:rate=1',
      'getBlock:plan:cost=1',
      'getBlock:cost=9007199254740992',
    ])
      assert.equal(parseMethodLimit(text), undefined, text)
  })
})
