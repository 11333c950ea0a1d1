import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { readJson } from './read-request.ts'

function requestWith(body: Buffer, more: Record<string, string> = {}): IncomingMessage {
  const headers = { 'content-type': 'application/json', 'content-length': String(body.length), ...more }
  return Object.assign(Readable.from([body]), {
    headers,
    rawHeaders: Object.entries(headers).flat(),
  }) as unknown as IncomingMessage
}

test('a body that is not UTF-8 is refused, because its text would change', async () => {
  const read = await readJson(requestWith(Buffer.from('{"name":"Müller"}')))
  assert.deepEqual(read.value, { name: 'Müller' })
  for (const body of [Buffer.from('{"name":"Müller"}', 'latin1'), Buffer.from('{"name":"\u00e9"}', 'utf16le')])
    await assert.rejects(readJson(requestWith(body)), { code: 'invalid-value', message: 'the body is not UTF-8' })
})

test('a compressed body is refused as such; identity is none', async () => {
  const body = Buffer.from('{}')
  await assert.rejects(readJson(requestWith(body, { 'content-encoding': 'gzip' })), {
    code: 'not-json',
    message: 'Content-Encoding: send the body uncompressed',
    headers: { 'accept-encoding': 'identity' },
  })
  assert.deepEqual((await readJson(requestWith(body, { 'content-encoding': 'identity' }))).value, {})
})
