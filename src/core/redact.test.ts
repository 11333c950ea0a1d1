import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { isServiceError, messageOf, ServiceError } from './error.ts'
import { isSecretName, maskSecret, redactText } from './redact.ts'
import { seedFor } from './test-seed.ts'

const TOKEN = 'slc_0123456789ABCDEFGHIJKLMNOPQRSTUV4LgkA2'

test('tokens, schemes, queries and user info are masked anywhere in a text', () => {
  const cases: Record<string, string> = {
    [`got ${TOKEN}.`]: 'got [redacted:gkA2].',
    [`x${TOKEN}y`]: 'x[redacted:kA2y]',
    [TOKEN.slice(0, 30)]: '[redacted:NOPQ]'.replace('NOPQ', TOKEN.slice(26, 30)),
    'Authorization: Basic dXNlcjpzZWNyZXQtcGFzc3dvcmQ=': 'Authorization: Basic [redacted:cmQ=]',
    'authorization: bearer abc.def.ghi': 'authorization: bearer [redacted]',
    'see /etc/bearer hunter22': 'see /etc/bearer [redacted]',
    'Basic/Bearer letmein': 'Basic/Bearer [redacted]',
    'x-bearer letmein': 'x-bearer [redacted]',
    'GET / Bearer letmein': 'GET / Bearer [redacted]',
    'GET /?api-key=hunter22 HTTP/1.1': 'GET /?[query] HTTP/1.1',
    'https://rpc.example.net/path?x=1&y=2#z done': 'https://rpc.example.net/path?[query] done',
    'postgres://sluice:hunter22@db/sluice': 'postgres://[redacted]@db/sluice',
    'x-api-key: hunter22, next': 'x-api-key: [redacted], next',
    '{"x-token":"hunter22"}': '{"x-token":"[redacted]"}',
    '{"password":"hunter22"}': '{"password":"[redacted]"}',
    'password=hunter22': 'password=[redacted]',
    'redis://USER:hunter22@db': 'redis://[redacted]@db',
    'redis://USERhunter22@db': 'redis://[redacted]@db',
    'password = "file:PATHhunter"': 'password = "[redacted]"',
    'token=true.hunter22': 'token=[redacted]',
  }
  for (const [text, expected] of Object.entries(cases)) assert.equal(redactText(text), expected)
})

test('sentences without secrets stay unchanged', () => {
  for (const text of [
    'is it there? yes',
    'indexer.password: is required',
    'the token was rotated',
    'slot 12 > 11',
    'file:/etc/x',
    'Bearer token',
    'Check that /etc/sluice/metrics-bearer exists and can be read.',
    'the file ./keys/basic cannot be read',
    'why?',
    'Write it as redis://USER@HOST:PORT/NUMBER and give the password as a secret reference.',
    'give postgres://USER@HOST:PORT/DATABASE',
    'Set access.store.password = "file:PATH" or "env:NAME" to the password of this user.',
    'The operator can accept it with bundle.ws.queryToken = true.',
  ]) {
    assert.equal(redactText(text), text)
  }
})

test('terminal control characters are escaped', () => {
  assert.equal(redactText('a\u009b31m\u2028b\u202ec\u007f'), 'a\\u009b31m\\u2028b\\u202ec\\u007f')
})

test('masking twice changes nothing more', () => {
  const pieces = fc.constantFrom(
    TOKEN,
    'Bearer ',
    'Basic YTpiYzEyMw==',
    '?api-key=x1',
    ' ',
    '"',
    'x-token: ',
    'a=b',
    '://u:p@h',
    '\n',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const once = redactText(parts.join(''))
      assert.equal(redactText(once), once)
    }),
    seedFor('redact'),
  )
})

test('a token is masked in any surrounding text', () => {
  const base62 = fc.stringMatching(/^[0-9A-Za-z]{38}$/)
  fc.assert(
    fc.property(fc.string(), base62, fc.string(), (before, body, after) => {
      const shown = redactText(`${before}slc_${body}${after}`)
      assert(!shown.includes(body) && !shown.includes(body.slice(0, 20)), shown)
    }),
    seedFor('redact-token', 1000),
  )
})

test('names that carry secrets', () => {
  for (const name of [
    'x-token',
    'X-API-Key',
    'api_key',
    'Authorization',
    'dbPassword',
    'ticket',
    'set-cookie',
    'X-ClickHouse-Key',
    'clientSecret',
  ]) {
    assert.equal(isSecretName(name), true, name)
  }
  for (const name of ['tokenId', 'key', 'tokens', 'part', 'passwordless', 'publicKey'])
    assert.equal(isSecretName(name), false, name)
  assert.equal(maskSecret('short'), '[redacted]')
  assert.equal(maskSecret(TOKEN), '[redacted:gkA2]')
})

test('printing a ServiceError in any form shows no secret', () => {
  const error = new ServiceError('secret-invalid', `bad token ${TOKEN}`, {
    fields: { token: TOKEN, url: `http://h/?api-key=${TOKEN}`, port: 1 },
    fix: `do not send ${TOKEN}`,
  })
  const printed = [
    String(error),
    JSON.stringify(error),
    inspect(error, { depth: 9 }),
    error.stack ?? '',
    error.message,
  ].join('\n')
  assert(!printed.includes(TOKEN.slice(4, 30)), printed)
  assert.equal(String(error), 'secret-invalid: bad token [redacted:gkA2]')
  assert.equal(error.fields['port'], 1)
  assert(isServiceError(error, 'secret-invalid') && !isServiceError(error, 'other') && !isServiceError(new Error('x')))
})

test('messageOf returns one masked line for any thrown value', () => {
  assert.equal(messageOf(new Error(`a\nb ${TOKEN}`)), 'a b [redacted:gkA2]')
  assert.equal(messageOf('text'), 'text')
  assert.equal(messageOf(new TypeError('')), 'TypeError')
})
