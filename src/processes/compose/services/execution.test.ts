import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RESUME_BYTES, SIMULATED_RESUME_BYTES } from '../../../execution/stream/resume-buffer.ts'
import { resumeOf } from './execution.ts'

test('simulated events are kept in less memory for clients that resume', () => {
  assert.ok(SIMULATED_RESUME_BYTES < RESUME_BYTES)
  assert.deepEqual(resumeOf({ bytesMax: undefined }, true), { bytesMax: SIMULATED_RESUME_BYTES })
})

test('events of a real chain are kept as before, and a limit of the operator always holds', () => {
  assert.deepEqual(resumeOf({ bytesMax: undefined }, false), { bytesMax: undefined })
  assert.deepEqual(resumeOf({ bytesMax: 2 ** 20 }, true), { bytesMax: 2 ** 20 })
  assert.deepEqual(resumeOf({ bytesMax: 2 ** 30 }, true), { bytesMax: 2 ** 30 })
})
