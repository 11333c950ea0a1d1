import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { isServiceError } from '../../core/error.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { isSecretRef, resolveSecret } from './secret-ref.ts'

test('distinguishes references from literals', () => {
  for (const text of ['file:/etc/x', 'file:keys/x', 'env:DB_PASSWORD']) assert(isSecretRef(text), text)
  for (const text of ['hunter2', 'file:', 'env:', 'env:a b', 'env:1A', '', 'https://x'])
    assert(!isSecretRef(text), text)
})

test('reads a secret from a file or the environment, without its last line break, and never prints it', async () => {
  using position = makeTestFolder()
  writeFileSync(position.file('password'), 'hunter 22\n', { mode: 0o600 })
  const secret = await resolveSecret('file:password', { env: {}, folder: position.path })
  assert.equal(secret.reveal(), 'hunter 22')
  assert(
    !/hunter/.test(
      `${String(secret)} ${JSON.stringify({ secret })} ${inspect({ secret }, { depth: 9, showHidden: true })}`,
    ),
  )
  assert.equal((await resolveSecret('env:PW', { env: { PW: 'x' } })).reveal(), 'x')
})

test('refuses an unreadable reference without quoting it', async () => {
  using position = makeTestFolder()
  const refused = (reference: string, env = {}) =>
    resolveSecret(reference, { env, folder: position.path }).then(
      () => assert.fail('was accepted'),
      (error: unknown) => {
        assert(isServiceError(error))
        return error
      },
    )
  const literal = await refused('hunter22hunter22')
  assert.equal(literal.code, 'secret-invalid')
  assert(!/hunter/.test(JSON.stringify(literal)) && /file:PATH/.test(literal.fix ?? ''))
  assert.match((await refused('env:NOT_SET')).message, /NOT_SET is not set/)
  assert.match((await refused('env:EMPTY', { EMPTY: '' })).message, /empty/)
  assert.equal((await refused('file:none')).code, 'secret-invalid')
  writeFileSync(position.file('open'), 'x')
  chmodSync(position.file('open'), 0o644)
  assert.equal((await refused('file:open')).code, 'file-mode')
  writeFileSync(position.file('empty'), '\n', { mode: 0o600 })
  assert.match((await refused('file:empty')).message, /is empty/)
  writeFileSync(position.file('large'), Buffer.alloc(70_000), { mode: 0o600 })
  assert.match((await refused('file:large')).message, /larger than/)
})
