import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import { createIndexText } from './index-text.ts'

const COUNT = 120_000

test('runs of numbers are the text that JSON has', async () => {
  const text = await createIndexText(COUNT, createTimeSlices())
  const runs = [
    [0, 0],
    [0, 1],
    [0, 12],
    [9, 10],
    [9, 11],
    [10, 12],
    [99, 101],
    [4095, 4098],
    [99_998, 100_003],
    [COUNT - 1, COUNT],
    [0, COUNT],
  ] as const
  for (const [from, to] of runs)
    assert.equal(text(from, to), Array.from({ length: to - from }, (_none, at) => from + at).join(), `${from} to ${to}`)
})

test('other work comes between its slices', async () => {
  let turns = 0
  const nextTurn = async () => void (turns += 1)
  let nowMs = 0
  await createIndexText(
    COUNT,
    createTimeSlices(() => (nowMs += 10), { nextTurn }),
  )
  assert.equal(turns, Math.ceil(COUNT / 4096))
})
