import assert from 'node:assert/strict'
import { test } from 'node:test'
import { scheduleFinding } from './schedule.ts'

test('a priority that the kernel did not grant is a warning with its way out', () => {
  assert.deepEqual(scheduleFinding('shred relay', { priority: 'realtime', core: 2, refused: [] }).level, 'ok')
  assert.match(
    scheduleFinding('sender', { priority: 'raised', core: 1, refused: [] }).message,
    /^priority raised within this service \(CPUWeight= .*\), on processor 1$/,
  )
  const finding = scheduleFinding('shred relay', {
    priority: 'normal',
    core: null,
    refused: ['priority raised: not permitted'],
  })
  assert.deepEqual([finding.level, finding.message], ['warn', 'priority normal; priority raised: not permitted'])
  assert.match(JSON.stringify(finding), /relay-priority\.conf/)
})
