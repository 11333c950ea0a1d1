import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { createWorkBudget } from '../api/work-budget.ts'
import { createCallMeter } from './call-meter.ts'
import type { JsonRpcDeps } from './json-rpc.ts'
import { countingMeter, responseBody } from './test-rpc.ts'

const deps: JsonRpcDeps = {
  methods: {
    *ok(_params, { out }) {
      yield
      out.add('"yes"')
    },
    *large([chars], { out }) {
      yield
      for (let left = Number(chars); left > 0; left -= 100) out.add('x'.repeat(Math.min(100, left)))
    },
    *broken() {
      yield
      throw new Error('as planned')
    },
  },
  onFault: () => {},
}

const respond = (body: string, more: Parameters<typeof responseBody>[2] = {}) =>
  responseBody(Buffer.from(body), deps, more)

test('no parameters, null and an empty list are the same', () => {
  for (const params of ['', ',"params":null', ',"params":[]'])
    assert.equal(
      respond(`{"jsonrpc":"2.0","id":1,"method":"ok"${params}}`).text,
      '{"jsonrpc":"2.0","result":"yes","id":1}',
    )
  assert.match(respond('{"jsonrpc":"2.0","id":1,"method":"ok","params":{}}').text, /-32602/)
})

describe('ids of JSON-RPC', () => {
  const table = ['12345678901234567890', '1.0', '1e2', '-0', '9007199254740993', '"\\u0041"', '"ü\\/"', 'null', '1E400']
  for (const id of table) {
    test(`${id} is returned byte for byte, in results and errors, single and in a batch`, () => {
      const call = (method: string) => `{"params":[{"id":7}],"jsonrpc":"2.0", "id" : ${id} ,"method":"${method}"}`
      assert.equal(respond(call('ok')).text, `{"jsonrpc":"2.0","result":"yes","id":${id}}`)
      for (const method of ['nothing', 'broken']) assert(respond(call(method)).text.endsWith(`,"id":${id}}`), method)
      assert(respond(`{"id":${id}}`).text.endsWith(`,"id":${id}}`), 'an invalid call')
      assert.equal(
        respond(`[${call('ok')}, ${call('ok')}]`).text,
        `[{"jsonrpc":"2.0","result":"yes","id":${id}},{"jsonrpc":"2.0","result":"yes","id":${id}}]`,
      )
    })
  }

  test('any number or string id is returned as it was sent', (t) => {
    const number = fc.stringMatching(/^-?(0|[1-9]\d{0,30})(\.\d{1,20})?([eE][+-]?\d{1,3})?$/)
    const text = fc.string({ unit: 'binary' }).map((value) => JSON.stringify(value))
    checkProperty(
      t,
      fc.property(fc.oneof(number, text), (id) => {
        const body = `{"jsonrpc":"2.0","method":"ok","id":${id}}`
        // Half a surrogate pair is not UTF-8.
        fc.pre(Buffer.from(body).toString() === body)
        assert.equal(respond(body).text, `{"jsonrpc":"2.0","result":"yes","id":${id}}`)
      }),
      300,
      5000,
    )
  })

  test('a body that is not UTF-8 is a parse error with a null id', () => {
    const body = Buffer.concat([
      Buffer.from('{"jsonrpc":"2.0","method":"ok","id":"'),
      Buffer.of(0xff),
      Buffer.from('"}'),
    ])
    assert.match(responseBody(body, deps).text, /-32700/)
  })
})

describe('bodies that parsers read differently', () => {
  const call = '"jsonrpc":"2.0","id":1,"method":"ok"'
  const refused = (text: string, id: string) => {
    assert.match(text, /"code":-32600.*a member occurs twice/)
    assert(text.endsWith(`"id":${id}}`), text)
  }

  test('a call with a member twice is refused, other calls of the batch are not', () => {
    refused(respond(`{${call},"method":"nothing"}`).text, '1')
    refused(respond(`{${call},"m\\u0065thod":"ok"}`).text, '1')
    refused(respond(`{${call},"id":2}`).text, 'null')
    refused(respond(`{${call},"id":2,"id":3}`).text, 'null')
    const [good, bad, last] = JSON.parse(respond(`[{${call}},{${call},"params":[],"params":[]},{${call}}]`).text)
    assert.deepEqual([good.result, bad.error.code, last.result], ['yes', -32600, 'yes'])
  })

  test('members of params are not those of the call', () => {
    assert.match(respond(`{${call},"params":[{"id":1,"method":2},{"id":1}]}`).text, /"result":"yes"/)
  })

  test('a body that is nested deeper than 32 is a parse error, and is not parsed', () => {
    const nested = (depth: number) => `{${call},"params":${'['.repeat(depth)}${']'.repeat(depth)}}`
    assert.match(respond(nested(31)).text, /"result":"yes"/)
    assert.match(respond(nested(32)).text, /-32700/)
    for (const text of ['['.repeat(60_000), '{"a":'.repeat(20_000), '"', '{"', '{"a', '{"a\\', '[{"id":', '{:'])
      assert.match(respond(text).text, /-32700/, text.slice(0, 9))
  })
})

describe('limits of a request', () => {
  const call = (method: string, ...params: unknown[]) => ({ jsonrpc: '2.0', method, params, id: 1 })
  const batch = (...calls: unknown[]) => JSON.stringify(calls)

  test('a call whose result does not fit gets an error, other calls of the batch their results', () => {
    const { text, status } = respond(batch(call('ok'), call('large', 3000), call('ok')), { bytesMax: 2000 })
    assert.equal(status, 200)
    const [first, second, third] = JSON.parse(text) as Record<string, { data?: unknown }>[]
    assert.equal(first?.['result'], 'yes')
    assert.deepEqual(second?.['error']?.data, {
      limit: 'responseBytes',
      size: 2000,
      fix: 'Ask for fewer blocks, transactions or logs in one request.',
    })
    assert.equal(third?.['result'], 'yes')
  })

  test('a batch over batchItems is refused with the limit and its size', () => {
    const { text, status } = respond(batch(call('ok'), call('ok')), { batchItemsMax: 1 })
    assert.equal(status, 413)
    assert.match(text, /"code":-32413.*"limit":"batchItems","size":1/)
  })

  test('calls over the budget are refused one by one; a request with only refused calls is a 429', () => {
    let nowMs = 0
    const clock = { monotonicMs: () => nowMs } as never
    const budget = createWorkBudget({ unitsPerSecond: 10, burstUnits: 3 }, clock)
    const meter = createCallMeter(budget, 'a')
    const five = respond(batch(...Array.from({ length: 5 }, () => call('ok'))), { meter })
    assert.equal(five.status, 200)
    const items = JSON.parse(five.text) as {
      result?: string
      error?: { code: number; message: string; data: unknown }
    }[]
    assert.deepEqual(
      items.map(({ result, error }) => result ?? error?.code),
      ['yes', 'yes', 'yes', -32429, -32429],
    )
    assert.equal(items[4]?.error?.message, 'limit reached: 10 work units per second')
    assert.deepEqual(items[4]?.error?.data, { limit: 'unitsPerSecond', size: 10, cost: 1, retryAfterMs: 100 })
    const whole = respond(batch(call('ok'), call('ok')), { meter })
    assert.deepEqual([whole.status, whole.retryAfterMs], [429, 100])
    assert.equal(respond(JSON.stringify(call('ok')), { meter }).status, 429)
    nowMs = 100
    assert.equal(respond(JSON.stringify(call('ok')), { meter }).status, 200, 'the refusals were not charged')
  })

  test('invalid calls and large bodies are charged', () => {
    const meter = countingMeter()
    respond(batch(1, 2, { id: {} }), { meter })
    assert.equal(meter.units, 3)
    respond(JSON.stringify({ ...call('nothing'), note: 'x'.repeat(40_000) }), { meter })
    assert(meter.units >= 3 + 9, String(meter.units))
  })
})
