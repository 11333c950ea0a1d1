import assert from 'node:assert/strict'
import { fstatSync } from 'node:fs'
import { test } from 'node:test'
import { createLogSink, isJournal } from './log-sink.ts'

/** A descriptor whose writes follow the script: a number of bytes taken, or an error code. */
function scripted(script: (number | string)[], options: { isJournal?: boolean } = {}) {
  let text = ''
  const write = (_fd: number, bytes: Uint8Array): number => {
    const step = script.length > 0 ? script.shift() : Number.POSITIVE_INFINITY
    if (typeof step === 'string') throw Object.assign(new Error(step), { code: step })
    const taken = Math.min(step as number, bytes.length)
    text += Buffer.from(bytes.subarray(0, taken)).toString()
    return taken
  }
  return { sink: createLogSink({ fd: 1, write, ...options }), text: () => text }
}

test('short writes are continued', () => {
  const { sink, text } = scripted([2, 1])
  sink.write('hello\n')
  assert.equal(text(), 'hello\n')
  assert.equal(sink.lost(), 0)
})

test('a full disk loses lines; their number is logged when there is space again', () => {
  const { sink, text } = scripted(['ENOSPC', 'ENOSPC'])
  sink.write('a\n')
  sink.write('b\n')
  sink.write('c\n')
  assert.equal(sink.lost(), 2)
  const [reported, line] = text().split('\n')
  assert.equal((JSON.parse(reported ?? '') as { lost: number }).lost, 2)
  assert.equal(line, 'c')
  sink.write('d\n')
  assert.match(text(), /c\nd\n$/)
})

test('a line that a full disk interrupted is finished before the next begins', () => {
  const { sink, text } = scripted([3, 'ENOSPC', 'ENOSPC'])
  sink.write('first\n')
  sink.write('second\n')
  sink.write('third\n')
  assert.equal(sink.lost(), 1)
  const lines = text().trimEnd().split('\n')
  assert.equal(lines[0], 'first')
  assert.match(lines[1] ?? '', /"lost":1/)
  assert.equal(lines[2], 'third')
})

test('a full pipe is retried for 100 ms; later lines are dropped without waiting', () => {
  const { sink, text } = scripted(['EAGAIN', 'EAGAIN'])
  sink.write('a\n')
  assert.equal(text(), 'a\n')
  const stuck = scripted(Array.from({ length: 25 }, () => 'EAGAIN'))
  const startMs = performance.now()
  for (const line of ['a\n', 'b\n', 'c\n', 'd\n', 'e\n', 'f\n']) stuck.sink.write(line)
  assert(performance.now() - startMs < 1000)
  assert.equal(stuck.sink.lost(), 6)
  stuck.sink.write('g\n')
  assert.match(stuck.text(), /"lost":6.*\ng\n$/)
})

test('lines for the journal begin with their priority', () => {
  const { sink, text } = scripted([], { isJournal: true })
  for (const level of ['fatal', 'error', 'warn', 'info', 'debug', 'trace']) sink.write(`{"level":"${level}","n":1}\n`)
  sink.write('a text with "level":"error" in it\n')
  const begins = text().match(/^<\d>/gm)
  assert.deepEqual(begins, ['<2>', '<3>', '<4>', '<6>', '<7>', '<7>', '<6>'])
})

test('lines that were lost are reported to the journal as a warning', () => {
  const { sink, text } = scripted(['ENOSPC'], { isJournal: true })
  sink.write('{"level":"info"}\n')
  sink.write('{"level":"info"}\n')
  assert.match(text(), /^<4>\{"level":"warn".*"lost":1.*\n<6>\{"level":"info"\}\n$/)
})

test('the journal is recognized by device and inode, not by the variable alone', () => {
  const { dev, ino } = fstatSync(2)
  assert.equal(isJournal(2, { JOURNAL_STREAM: `${dev}:${ino}` }), true)
  assert.equal(isJournal(2, { JOURNAL_STREAM: `${dev}:${ino + 1}` }), false)
  assert.equal(isJournal(2, {}), false)
  assert.equal(isJournal(-1, { JOURNAL_STREAM: `${dev}:${ino}` }), false)
})
