import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { RawEventPart } from '../source/message.ts'
import { eventsBytes, ResumeBuffer } from './resume-buffer.ts'

test('raw events are counted with the objects around their text, as much as they take in memory', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const buffer = new ResumeBuffer({ entriesMax: 100_000, bytesMax: 2 ** 30 })
  collect()
  const before = process.memoryUsage().heapUsed
  for (let seq = 1; seq <= 300; seq++) {
    const events = fromThread(seq)
    buffer.append({ seq, kind: 'Events', events, bytes: eventsBytes(events) })
  }
  collect()
  const ratio = (process.memoryUsage().heapUsed - before) / buffer.bytes
  assert.equal(buffer.size, 300)
  assert.ok(ratio > 0.8 && ratio < 1.2, `${ratio} bytes of memory for each counted one`)
})

/** Logs and call frames of 32 transactions, as they arrive from the thread of the source. */
function fromThread(block: number): RawEventPart[] {
  const parts = Array.from({ length: 32 }, (_, txnIndex): RawEventPart[] => {
    const from = address(block * 100 + txnIndex)
    const header = { txnIndex, addresses: [from, address(txnIndex)] }
    const called = { txnIndex, addresses: [from, address(txnIndex + 7)] }
    const logged = {
      txnIndex,
      logIndex: 0,
      addresses: [address(txnIndex + 9)],
      topics: [`0x${'ab'.repeat(32)}` as const],
    }
    return [
      { name: 'TxnHeaderStart', json: text(1200, txnIndex), fields: header, header },
      { name: 'TxnCallFrame', json: text(850, txnIndex), fields: called, header },
      { name: 'TxnLog', json: text(680, txnIndex), fields: logged, header },
    ]
  })
  return structuredClone(parts.flat())
}

function address(number: number): `0x${string}` {
  return `0x${number.toString(16).padStart(40, '0')}`
}

function text(length: number, number: number): string {
  return JSON.stringify(String(number).padEnd(length))
}
