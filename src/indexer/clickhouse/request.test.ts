import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../core/random.ts'
import { readQueryRequest } from '../query/request.ts'
import { createForm } from './form.ts'
import { clickHouseCall } from './request.ts'

const random = createSeededRandom(1)
const callOf = (search: string, parameters: Record<string, string> = {}) => {
  const request = readQueryRequest(search, { format: undefined, database: undefined }, new Set(['chain']))
  return clickHouseCall({ ...request, parameters: { ...request.parameters, ...parameters } }, FORCED, random)
}
const fieldsOf = (target: string) => new URLSearchParams(target.slice(2))
const FORCED = {
  queryId: 'q',
  database: 'chain',
  limits: { secondsMax: 10, rowsMax: 1000, bytesMax: 1000 },
  isHeld: false,
}

test('the revision in which a client reads Native is passed on as a number', () => {
  const revisionOf = (search: string) => fieldsOf(callOf(search).target).get('client_protocol_version')
  assert.equal(revisionOf('query=1&client_protocol_version=54460'), '54460')
  assert.equal(revisionOf('query=1'), null)
  assert.throws(() => revisionOf('query=1&client_protocol_version=x'), { type: 'BAD_ARGUMENTS' })
})

test('the limits of the server are the lower ones of the customer and the operator', () => {
  const limitsOf = (search: string) => {
    const fields = fieldsOf(callOf(search).target)
    return ['max_execution_time', 'max_result_rows', 'max_result_bytes'].map((name) => Number(fields.get(name)))
  }
  assert.deepEqual(limitsOf('query=1'), [10, 1000, 1000])
  assert.deepEqual(limitsOf('query=1&max_execution_time=2.5&max_result_rows=7&max_result_bytes=20.5'), [3, 7, 20])
  assert.deepEqual(
    limitsOf('query=1&max_execution_time=99&max_result_rows=2000&max_result_bytes=2000'),
    [10, 1000, 1000],
  )
  assert.deepEqual(limitsOf('query=1&max_execution_time=0&max_result_rows=0&max_result_bytes=0.5'), [10, 1000, 1])
})

const formOf = (call: ReturnType<typeof callOf>) =>
  new Response(Uint8Array.from(call.body), { headers: call.headers }).formData()

test('parameters of up to 4 KiB as they are encoded are sent in the URL, and more than that in the body', async () => {
  const inUrl = callOf('query=select+1', { ids: 'a'.repeat(4096 - 'param_ids='.length) })
  assert.deepEqual([inUrl.body.toString(), inUrl.headers], ['select 1', {}])
  assert.equal(fieldsOf(inUrl.target).get('param_ids')?.length, 4086)
  // Each quote takes three bytes in a URL.
  const ids = "'".repeat(1363)
  const other = '\r\n--x\r\nä'
  const inBody = callOf('query=select+1', { ids, other })
  assert.deepEqual(Object.fromEntries(await formOf(inBody)), { query: 'select 1', param_ids: ids, param_other: other })
  assert.deepEqual([...fieldsOf(inBody.target)], [...fieldsOf(callOf('query=select+1').target)])
})

test('a long statement beside long parameters is sent in several fields, which the server joins', async () => {
  const query = `select '${'ä'.repeat(100_001)}'`
  const form = await formOf(callOf(`query=${query}`, { ids: 'a'.repeat(5000) }))
  const parts = form.getAll('query') as string[]
  assert.equal(parts.length, 4)
  assert.equal(parts.join(''), query)
})

test('the format of times is part of the statement beside a form, where the server does not read it from the URL', async () => {
  const call = callOf('query=select+now()&date_time_output_format=iso&default_format=CSV', { ids: 'a'.repeat(5000) })
  assert.equal(fieldsOf(call.target).get('date_time_output_format'), null)
  assert.equal((await formOf(call)).get('query'), "select now() FORMAT CSV SETTINGS date_time_output_format = 'iso'")
})

test('a parameter whose name is no identifier cannot become a header of the form', async () => {
  const names = ['a"; filename="b', 'c\r\nx: y', '']
  const given = Object.fromEntries(names.map((name) => [name, 'v']))
  const call = callOf('query=select+1', { ...given, ids: 'a'.repeat(5000) })
  assert.deepEqual([...(await formOf(call)).keys()], ['query', 'param_ids'])
})

test('the boundary of a form does not occur in its values', () => {
  let given = 0
  const boundaries = [Buffer.alloc(16, 1), Buffer.alloc(16, 2)]
  const next = { ...random, bytes: () => boundaries[given++] as Buffer }
  const { contentType } = createForm('select 1', [['a', `x${'01'.repeat(16)}`]], next)
  assert.equal(contentType, `multipart/form-data; boundary=${'02'.repeat(16)}`)
})
