import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { readNotification } from './frame-id.ts'

function idOf(text: string): string | undefined {
  const frame = Buffer.from(text)
  const found = readNotification(frame)
  if (found !== undefined) assert.equal(frame.toString('utf8', found.idFrom, found.idTo), found.subscription)
  return found?.subscription
}

test('reads the id of a notification in any order of members', () => {
  assert.equal(
    idOf('{"jsonrpc":"2.0","method":"slotNotification","params":{"result":{"slot":5},"subscription":23784}}'),
    '23784',
  )
  assert.equal(
    idOf('{"jsonrpc":"2.0","method":"a","params":{"result":1,"subscription":18446744073709551615}}'),
    '18446744073709551615',
  )
  assert.equal(idOf('{"jsonrpc":"2.0","method":"a","params":{"subscription":7,"result":{"subscription":9}}}'), '7')
  assert.equal(
    idOf('{"params":{"subscription":7,"result":{"x":{"subscription":9}}},"method":"a","jsonrpc":"2.0"}'),
    '7',
  )
  assert.equal(idOf('{"params":{"result":"\\"subscription\\":1","subscription":8},"method":"é","jsonrpc":"2.0"}'), '8')
  assert.equal(idOf(' { "method" : "a" , "params" : { "result" : [] , "subscription" : 3 } } \n'), '3')
})

test('returns undefined for responses and for what is no notification', () => {
  for (const text of [
    '{"jsonrpc":"2.0","result":23784,"id":1}',
    '{"jsonrpc":"2.0","error":{"code":-32602,"message":"\\"method\\" and \\"subscription\\""},"id":1}',
    '{"method":"a","params":{"subscription":"7"}}',
    '{"method":"a","params":{"subscription":1.5}}',
    '{"method":"a","params":[]}',
    '{"method":"a","subscription":5}',
    'not json "method" "subscription"',
    '',
  ]) {
    assert.equal(idOf(text), undefined, text)
  }
})

test('property: reads the id of any notification, whatever its result contains', () => {
  fc.assert(
    fc.property(
      fc.jsonValue(),
      fc.nat(),
      fc.shuffledSubarray(['jsonrpc', 'method', 'params'], { minLength: 3 }),
      fc.boolean(),
      (result, id, order, isLast) => {
        const params = isLast ? { result, subscription: id } : { subscription: id, result }
        const members: Record<string, unknown> = { jsonrpc: '2.0', method: 'aNotification', params }
        const text = JSON.stringify(Object.fromEntries(order.map((name) => [name, members[name]])))
        assert.equal(idOf(text), String(id))
      },
    ),
    seedFor('notification id', 1000),
  )
})
