import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toWireJson } from '../../contract/wire-json.ts'
import type { CliContext } from '../define.ts'
import { printList } from './print.ts'

test('JSON has snake_case names, ISO times, no revision of a record, and the former names of renamed fields', () => {
  assert.deepEqual(
    toWireJson({ id: 'sub_1', revision: 4, createdAt: 0, out: [{ gapsReported: 2 }] }, { gapsReported: 'gaps_told' }),
    { id: 'sub_1', created_at: '1970-01-01T00:00:00.000Z', out: [{ gaps_reported: 2, gaps_told: 2 }] },
  )
  assert.deepEqual(toWireJson({ message: 'ok', revision: 4 }), { message: 'ok', revision: 4 })
})

test('a renamed column of a list has its former key in JSON, and as a last column in CSV', () => {
  let text = ''
  const context = { process: { stdout: { write: (part: string) => (text += part) } } } as unknown as CliContext
  const list = {
    rows: [{ endpoint: 'rpc', ok: true }],
    columns: [
      { title: 'ENDPOINT', former: 'door', value: (row: { endpoint: string }) => row.endpoint },
      { title: 'OK', value: (row: { ok: boolean }) => row.ok },
    ],
    empty: 'none',
  }
  printList(context, { output: 'json' }, list)
  assert.deepEqual(JSON.parse(text), [{ endpoint: 'rpc', ok: true, door: 'rpc' }])
  text = ''
  printList(context, { output: 'csv' }, list)
  assert.equal(text, 'endpoint,ok,door\nrpc,true,rpc\n')
})
