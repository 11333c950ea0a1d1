import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HELD_BLOCKS, SIMULATED_HELD_BLOCKS } from '../../../execution/rpc/block-store.ts'
import { RESUME_BYTES, SIMULATED_RESUME_BYTES } from '../../../execution/stream/resume-buffer.ts'
import { blocksOf, resumeOf } from './execution.ts'

test('simulated events are kept in less memory for clients that resume', () => {
  assert.ok(SIMULATED_RESUME_BYTES < RESUME_BYTES)
  assert.deepEqual(resumeOf({ bytesMax: undefined }, true), { bytesMax: SIMULATED_RESUME_BYTES })
})

test('events of a real chain are kept as before, and a limit of the operator always holds', () => {
  assert.deepEqual(resumeOf({ bytesMax: undefined }, false), { bytesMax: undefined })
  assert.deepEqual(resumeOf({ bytesMax: 2 ** 20 }, true), { bytesMax: 2 ** 20 })
  assert.deepEqual(resumeOf({ bytesMax: 2 ** 30 }, true), { bytesMax: 2 ** 30 })
})

test('fewer blocks of a simulated chain are held in memory, unless the operator has set how many', () => {
  assert.ok(SIMULATED_HELD_BLOCKS < HELD_BLOCKS)
  assert.deepEqual(blocksOf({ heldMax: undefined }, true), { heldMax: SIMULATED_HELD_BLOCKS })
  assert.deepEqual(blocksOf({ heldMax: undefined }, false), { heldMax: undefined })
  assert.deepEqual(blocksOf({ heldMax: 1000 }, true), { heldMax: 1000 })
})
