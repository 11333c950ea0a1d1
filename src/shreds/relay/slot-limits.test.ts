import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseShredsOptions } from '../options.ts'
import { slotLimitsMax, slotLimitsOf } from './slot-limits.ts'

test('the default limits follow the length of a slot, in the steps of SIMD-0525', () => {
  const options = parseShredsOptions()
  const limits = [400, 350, 300, 250, 200].map((slotMs) => slotLimitsOf(options, slotMs))
  assert.deepEqual(
    limits.map(({ shredsPerSlotMax }) => shredsPerSlotMax),
    [32_768, 28_672, 24_576, 20_480, 16_384],
  )
  const slightly = [357, 306, 255, 204].map((slotMs) => slotLimitsOf(options, slotMs).shredsPerSlotMax)
  assert.deepEqual(slightly, [28_672, 24_576, 20_480, 16_384], 'measured 2 % too long')
  assert.deepEqual(limits[0]?.window, { backSlots: 64, aheadSlots: 32 })
  assert.deepEqual(limits[4]?.window, { backSlots: 128, aheadSlots: 64 })
})

test('a learned length up to 8 % too short never gives fewer shreds than the chain has', () => {
  const options = parseShredsOptions()
  for (const slotMs of [400, 350, 300, 250, 200]) {
    for (const share of [0.92, 0.95, 0.99, 1, 1.01, 1.05, 1.08]) {
      const { shredsPerSlotMax } = slotLimitsOf(options, slotMs * share)
      assert.ok(shredsPerSlotMax >= (32_768 * slotMs) / 400, `${slotMs} ms learned as ${slotMs * share}`)
    }
  }
})

test('no length needs more memory than is allotted', () => {
  const options = parseShredsOptions()
  const max = slotLimitsMax(options)
  assert.deepEqual(max, { shredsPerSlotMax: 32_768, window: { backSlots: 128, aheadSlots: 64 } })
  for (const slotMs of [50, 199, 200, 400, 2000]) {
    const { shredsPerSlotMax, window } = slotLimitsOf(options, slotMs)
    assert.ok(shredsPerSlotMax <= max.shredsPerSlotMax && window.backSlots <= 128 && window.aheadSlots <= 64)
  }
})

test('a configured number of shreds stays, and slots of the configuration are a time at 400 ms each', () => {
  const options = parseShredsOptions({ shredsPerSlotMax: 32_768, window: { backSlots: 100, aheadSlots: 10 } })
  assert.deepEqual(slotLimitsOf(options, 400), {
    shredsPerSlotMax: 32_768,
    window: { backSlots: 100, aheadSlots: 10 },
  })
  assert.deepEqual(slotLimitsOf(options, 200), {
    shredsPerSlotMax: 32_768,
    window: { backSlots: 200, aheadSlots: 20 },
  })
  const timed = parseShredsOptions({ window: { backMs: 40_000, aheadMs: 4000 } })
  assert.deepEqual(slotLimitsOf(timed, 400).window, { backSlots: 100, aheadSlots: 10 })
})
