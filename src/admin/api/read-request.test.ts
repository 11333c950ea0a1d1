import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { readJson } from './read-request.ts'

function requestWith(body: Buffer): IncomingMessage {
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length) }
  return Object.assign(Readable.from([body]), {
    headers,
    rawHeaders: Object.entries(headers).flat(),
  }) as unknown as IncomingMessage
}

test('a body that is not UTF-8 is refused, because its text would change', async () => {
  const read = await readJson(requestWith(Buffer.from('{"name":"Müller"}')))
  assert.deepEqual(read.value, { name: 'Müller' })
  for (const body of [Buffer.from('{"name":"Müller"}', 'latin1'), Buffer.from('{"name":"\u00e9"}', 'utf16le')])
    await assert.rejects(readJson(requestWith(body)), { code: 'invalid-value', message: 'the body is not valid JSON' })
})
