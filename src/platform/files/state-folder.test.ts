import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isServiceError } from '../../core/error.ts'
import { writeFileAtomic } from './atomic.ts'
import { checkSecretFile, openStateFolder } from './state-folder.ts'
import { makeTestFolder } from './test-folder.ts'

const modeOf = (path: string) => statSync(path).mode & 0o777

test('creates the folder and those inside with mode 0700', async () => {
  using position = makeTestFolder()
  const state = await openStateFolder(position.file('a/b'))
  assert.equal(modeOf(state.path), 0o700)
  assert.equal(modeOf(await state.folder('keys')), 0o700)
  assert.equal(state.file('access.db'), `${state.path}/access.db`)
  await openStateFolder(position.file('a/b'))
})

test('refuses a folder that others can read, with the chmod command as fix', async () => {
  using position = makeTestFolder()
  chmodSync(position.path, 0o755)
  await assert.rejects(
    openStateFolder(position.path),
    (error) => isServiceError(error, 'file-mode') && error.fix === `chmod 700 ${position.path}`,
  )
})

test('refuses a path that cannot be a folder', async () => {
  using position = makeTestFolder()
  writeFileSync(position.file('plain'), '')
  await assert.rejects(openStateFolder(position.file('plain/x')), (error) => isServiceError(error, 'state-unwritable'))
})

test('secret files must be 0600 and of this user; the fix quotes unusual paths', async () => {
  using position = makeTestFolder()
  mkdirSync(position.file("it's here"), { mode: 0o700 })
  const path = position.file("it's here/secret")
  writeFileSync(path, 'x', { mode: 0o600 })
  await checkSecretFile(path)
  chmodSync(path, 0o400)
  await checkSecretFile(path)
  for (const mode of [0o644, 0o640, 0o604, 0o601]) {
    chmodSync(path, mode)
    await assert.rejects(checkSecretFile(path), (error) => {
      assert(isServiceError(error, 'file-mode'))
      assert.match(error.fix ?? '', /^chmod 600 '.*it'\\''s here\/secret'$/)
      return true
    })
  }
  await assert.rejects(checkSecretFile(position.file('none')), (error) => isServiceError(error, 'secret-invalid'))
  if (process.getuid?.() === 0) {
    chmodSync(path, 0o600)
    chownSync(path, 12345, 12345)
    await assert.rejects(checkSecretFile(path), /belongs to user 12345/)
  }
})

test('writeFileAtomic replaces a file with mode 0600 and leaves no temporary file', async () => {
  using position = makeTestFolder()
  const path = position.file('data')
  await writeFileAtomic(path, 'one')
  await writeFileAtomic(path, Buffer.from('two'))
  assert.equal(readFileSync(path, 'utf8'), 'two')
  assert.equal(modeOf(path), 0o600)
  await assert.rejects(writeFileAtomic(position.file('no/such'), 'x'), (error) =>
    isServiceError(error, 'state-unwritable'),
  )
  mkdirSync(position.file('folder'))
  await assert.rejects(writeFileAtomic(position.file('folder'), 'x'))
  assert.deepEqual(readdirSync(position.path).toSorted(), ['data', 'folder'])
})

test('a systemd credential may be owned by root and readable by the group', async (t) => {
  using position = makeTestFolder()
  mkdirSync(position.file('credentials'), { mode: 0o700 })
  for (const path of ['credentials/key', 'beside']) writeFileSync(position.file(path), 'x', { mode: 0o440 })
  const before = process.env['CREDENTIALS_DIRECTORY']
  t.after(() => {
    if (before === undefined) delete process.env['CREDENTIALS_DIRECTORY']
    else process.env['CREDENTIALS_DIRECTORY'] = before
  })
  process.env['CREDENTIALS_DIRECTORY'] = position.file('credentials')
  await checkSecretFile(position.file('credentials/key'))
  await assert.rejects(checkSecretFile(position.file('beside')), (error) => isServiceError(error, 'file-mode'))
  await assert.rejects(checkSecretFile(position.file('credentials/../beside')), (error) =>
    isServiceError(error, 'file-mode'),
  )
})

test('a credential of a unit is accepted outside of the unit too, where no other user can put or read one', async () => {
  using position = makeTestFolder()
  const unit = position.file('credentials/sluice.service')
  mkdirSync(unit, { recursive: true })
  for (const folder of [position.file('credentials'), unit]) writeFileSync(join(folder, 'key'), 'x', { mode: 0o440 })
  const credentials = position.file('credentials')
  const check = async (path: string, modes: { readonly all: number; readonly unit: number }) => {
    chmodSync(credentials, modes.all)
    chmodSync(unit, modes.unit)
    return checkSecretFile(path, { credentials }).then(
      () => 'accepted',
      (error: { code: string }) => error.code,
    )
  }
  const key = join(unit, 'key')
  assert.equal(await check(key, { all: 0o755, unit: 0o500 }), 'accepted')
  assert.equal(await check(key, { all: 0o755, unit: 0o550 }), 'accepted', 'an ACL shows as rights of the group')
  assert.equal(await check(key, { all: 0o755, unit: 0o755 }), 'file-mode')
  assert.equal(await check(key, { all: 0o755, unit: 0o770 }), 'file-mode')
  assert.equal(await check(key, { all: 0o777, unit: 0o500 }), 'file-mode')
  assert.equal(await check(position.file('credentials/key'), { all: 0o755, unit: 0o500 }), 'file-mode')
  assert.equal(await check(join(unit, '../key'), { all: 0o755, unit: 0o500 }), 'file-mode')
  if (process.getuid?.() !== 0) return
  chownSync(unit, 12345, 12345)
  assert.equal(await check(key, { all: 0o755, unit: 0o500 }), 'file-mode', 'the folder of another user')
})
