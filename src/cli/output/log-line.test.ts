import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { test } from 'node:test'
import { terminalLine } from './log-line.ts'

/** Not a terminal: no colours. */
const STREAM = new PassThrough() as unknown as NodeJS.WriteStream
const line = (record: object) => terminalLine(JSON.stringify({ time: '2027-01-02T03:04:05.678Z', ...record }), STREAM)

test('a log record is one line to read', () => {
  assert.equal(
    line({ level: 'info', msg: 'listening', service: 'rpc', address: '127.0.0.1:8899' }),
    '03:04:05  listening  service=rpc  address=127.0.0.1:8899',
  )
  assert.equal(
    line({ level: 'warn', part: 'sender', msg: 'slow', ms: 7, why: 'two words' }),
    '03:04:05  WARN sender: slow  ms=7  why="two words"',
  )
})

test('an error is shown by its message, and control characters are replaced', () => {
  const shown = line({ level: 'error', msg: 'failed', err: { message: 'no route', stack: 'Error\n  at x' } })
  assert.match(shown, /ERROR .*failed {2}err="no route"$/)
  assert.equal(line({ level: 'info', msg: 'a\u001b[2Jb\nc' }), '03:04:05  a·[2Jb·c')
})
