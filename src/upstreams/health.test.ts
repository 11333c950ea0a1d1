import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlotHealth } from './health.ts'

const limits = { lagMsMax: 10_000, shredLagMsMax: 40_000 }

test('lags at more than 25 slots behind the best, and no more at half of that', () => {
  const health = createSlotHealth(limits)
  health.recordReportedSlot(1000)
  assert.equal(health.assess(1025), false)
  assert.equal(health.isLagging, false)
  assert.equal(health.assess(1026), true)
  assert.deepEqual([health.isLagging, health.lagSlots, health.lagReason], [true, 26, 'behind-best'])
  health.recordSlot(1010)
  assert.equal(health.assess(1026), false, 'still out: at the edge it would go in and out')
  health.recordSlot(1014)
  assert.equal(health.assess(1026), true)
  assert.equal(health.isLagging, false)
})

test('lags when far behind its own shreds, although no node is ahead', () => {
  const health = createSlotHealth(limits)
  health.recordReportedSlot(1000)
  health.recordShredSlot(1100)
  health.assess(1000)
  assert.equal(health.isLagging, false)
  health.recordShredSlot(1101)
  health.assess(1000)
  assert.equal(health.lagReason, 'behind-own-shreds')
  health.recordReportedSlot(1051)
  health.assess(1051)
  assert.equal(health.isLagging, false)
})

test('does not lag while its slot is unknown', () => {
  const health = createSlotHealth(limits)
  health.recordShredSlot(5000)
  health.assess(10_000)
  assert.deepEqual([health.isLagging, health.lagSlots], [false, 0])
})

test('only raises the slot by responses; a reported slot far below the known one means a restart', () => {
  const health = createSlotHealth(limits)
  assert.equal(health.recordReportedSlot(1000), true)
  assert.equal(health.recordSlot(968), false)
  assert.equal(health.recordReportedSlot(990), false, 'a fork, or another machine behind the same name')
  assert.equal(health.slot, 1000)
  assert.equal(health.recordReportedSlot(10), true)
  assert.equal(health.slot, 10)
})

test('the limits are times: a slot of 200 ms has twice as many slots', () => {
  let slotMs = 200
  const health = createSlotHealth(limits, () => slotMs)
  health.recordReportedSlot(1000)
  health.assess(1050)
  assert.deepEqual([health.isLagging, health.lagSlots, health.lagMs], [false, 50, 10_000])
  health.assess(1051)
  assert.equal(health.lagReason, 'behind-best')
  health.recordReportedSlot(1051)
  health.assess(1051)
  health.recordShredSlot(1251)
  health.assess(1051)
  assert.deepEqual([health.isLagging, health.isBehindShreds], [false, false])
  health.recordShredSlot(1252)
  health.assess(1051)
  assert.deepEqual([health.lagReason, health.isBehindShreds], ['behind-own-shreds', true])
  health.recordShredSlot(1051)
  health.assess(1051)
  slotMs = 400
  health.assess(1077)
  assert.equal(health.lagReason, 'behind-best', 'the length changes at run time')
})

test('a reported slot is a restart when it is more than 25.6 s below the known one, at any length of a slot', () => {
  for (const [slotMs, slots] of [
    [400, 64],
    [200, 128],
  ] as const) {
    const health = createSlotHealth(limits, () => slotMs)
    health.recordReportedSlot(1000)
    assert.equal(health.recordReportedSlot(1000 - slots), false)
    assert.equal(health.recordReportedSlot(1000 - slots - 1), true)
  }
})

test('a node far above the best slot is out of rotation, until it no longer is', () => {
  const health = createSlotHealth(limits)
  health.recordReportedSlot(1e9)
  assert.equal(health.assess(1000, true), true)
  assert.deepEqual([health.isLagging, health.lagSlots, health.lagReason], [true, 0, 'ahead-of-all'])
  assert.equal(health.assess(1000, false), true)
  assert.deepEqual([health.isLagging, health.lagReason], [false, undefined])
})
