import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogger } from '../../../platform/telemetry/logger.ts'
import { notifyChanges } from './notify-changes.ts'

function open(lines: string[]) {
  const message: Record<string, unknown>[] = []
  const log = createLogger({
    level: 'info',
    destination: { write: (line: string) => message.push(JSON.parse(line) as never) },
  })
  let moved = () => {}
  const store = {
    auditHead: () => Promise.resolve({ seq: lines.length, hash: '' }),
    async *auditLines(from: number) {
      yield* lines.slice(from - 1)
    },
  }
  const access = {
    onChange(listener: () => void) {
      moved = listener
      return { [Symbol.dispose]: () => void (moved = () => {}) }
    },
  }
  const add = (action: string, subjects: string[]) =>
    lines.push(
      JSON.stringify({ seq: lines.length + 1, actor: { user: 'ann' }, action, subjects, after: { note: 'n' } }),
    )
  return { logged: message, add, moved: () => moved(), reporting: notifyChanges(store, access, log) }
}

test('each change is logged once, with its subject and operator; earlier changes are not', async () => {
  const { logged: message, add, moved, reporting } = open(['{}', '{}'])
  {
    await using _reporting = await reporting
    add('token.rotate', ['sub_1', 'tok_2', 'tok_1'])
    add('customer.suspend', ['cus_1'])
    moved()
    moved()
  }
  assert.deepEqual(
    message.map(({ subscription, customer, action, by, audit }) => [subscription, customer, action, by, audit]),
    [
      ['sub_1', undefined, 'token.rotate', 'ann', 3],
      [undefined, 'cus_1', 'customer.suspend', 'ann', 4],
    ],
  )
  assert.ok(!JSON.stringify(message).includes('note'))
})

test('of many changes the last hundred are logged, with the number of the others', async () => {
  const { logged: message, add, moved, reporting } = open([])
  {
    await using _reporting = await reporting
    for (let at = 0; at < 250; at++) add('sub.create', [`sub_${at}`])
    moved()
  }
  assert.equal(message.length, 101)
  assert.equal(message[0]?.['changes'], 150)
  assert.equal(message.at(-1)?.['audit'], 250)
})
