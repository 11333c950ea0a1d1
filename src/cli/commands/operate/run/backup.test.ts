import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sluiceHere } from '../../../../../test/support/cli/in-process.ts'
import { temporaryFolder } from '../../../../../test/support/cli/run.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import { announceProcess } from '../../../../platform/process/running-processes.ts'
import { listTipDays, putTipDays, type TipDay } from '../../../../sender/tips/days.ts'
import { createLedgerFile, openLedgerToRead } from '../../../../sender/tips/ledger-file.ts'

type Home = Awaited<ReturnType<typeof temporaryFolder>>

const DEPS = { clock: systemClock, random: secureRandom }
const DAY: TipDay = ['2026-11-01', 'account', 'payer', 3, 2, 1, 0, 5_000_000, 3_000_000]

/** The state folder of `sluice sender`: wallets and tips, and no access store. */
async function senderFolder(home: Home): Promise<string> {
  const state = home.file('sender-state')
  for (const folder of [state, join(state, 'keys'), join(state, 'sender')]) mkdirSync(folder, { mode: 0o700 })
  for (const n of [1, 2]) writeFileSync(join(state, `keys/tip-${n}.json`), `[${n},7]`, { mode: 0o600 })
  await createLedgerFile(join(state, 'sender/tips.db'), DEPS, (tx) => putTipDays(tx, [DAY]))
  return state
}

function backupKey(home: Home): string {
  const file = home.file('backup.key')
  writeFileSync(file, createHash('sha256').update('a key file').digest(), { mode: 0o600 })
  return file
}

const keysOf = (state: string) =>
  readdirSync(join(state, 'keys')).map((name) => [name, readFileSync(join(state, 'keys', name), 'utf8')])

async function tipsOf(state: string): Promise<unknown> {
  await using ledger = await openLedgerToRead(join(state, 'sender'), DEPS)
  return ledger && (await listTipDays(ledger))
}

test('the wallets and tips of a sender without an access store are backed up and restored', async () => {
  await using home = await temporaryFolder()
  const [state, key, file] = [await senderFolder(home), backupKey(home), home.file('backup.jsonl')]
  const made = await sluiceHere(['backup', file, '--key-file', key, '--state', state])
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /keys +tip-1\.json, tip-2\.json, encrypted/)
  assert.match(made.stdout, /store +none/)
  assert.ok(!existsSync(join(state, 'access.db')), 'a backup makes no store')

  const target = home.file('fresh')
  const restored = await sluiceHere(['restore', file, '--key-file', key, '--state', target])
  assert.equal(restored.code, 0, restored.stderr)
  assert.deepEqual(keysOf(target), keysOf(state))
  assert.deepEqual(await tipsOf(target), [DAY])
  for (const name of ['access.db', 'audit.log'])
    assert.ok(!existsSync(join(target, name)), `a backup without a store makes no ${name}`)

  writeFileSync(join(target, 'keys/tip-1.json'), '[9,9]', { mode: 0o600 })
  const refused = await sluiceHere(['restore', file, '--key-file', key, '--state', target])
  assert.match(refused.stderr, /tip-1\.json.*--force/s, 'other keys are not replaced silently')
})

test('a backup of a sender is restored beside an existing store, which stays as it is', async () => {
  await using home = await temporaryFolder()
  const [state, key, file] = [await senderFolder(home), backupKey(home), home.file('backup.jsonl')]
  await sluiceHere(['backup', file, '--key-file', key, '--state', state])
  const target = home.file('serve-state')
  await sluiceHere(['customer', 'add', 'acme', '--state', target])
  const restored = await sluiceHere(['restore', file, '--key-file', key, '--state', target])
  assert.equal(restored.code, 0, restored.stderr)
  assert.deepEqual(keysOf(target), keysOf(state))
  assert.match((await sluiceHere(['customer', 'list', '--state', target])).stdout, /acme/)
})

test('a folder whose store was lost is not backed up without it', async () => {
  await using home = await temporaryFolder()
  const [state, key, file] = [await senderFolder(home), backupKey(home), home.file('backup.jsonl')]
  writeFileSync(join(state, 'audit.log'), '{"seq":1}\n', { mode: 0o600 })
  const refused = await sluiceHere(['backup', file, '--key-file', key, '--state', state])
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /no access store/)
  assert.ok(!existsSync(file))
})

test('a backup names the folders of other running processes that have keys of their own', async () => {
  await using home = await temporaryFolder()
  const [state, key] = [await senderFolder(home), backupKey(home)]
  const serve = home.file('serve-state')
  const env = { XDG_RUNTIME_DIR: home.path }
  await sluiceHere(['customer', 'add', 'acme', '--state', serve], env)
  writeFileSync(join(state, 'control.sock'), '')
  const backupTo = (name: string) => sluiceHere(['backup', home.file(name), '--key-file', key, '--state', serve], env)
  {
    using _announced = announceProcess({ pid: process.pid, state, config: null }, env)
    const made = await backupTo('a.jsonl')
    assert.equal(made.code, 0, made.stderr)
    assert.ok(made.stderr.includes(`--state ${state}`), made.stderr)
  }
  assert.doesNotMatch((await backupTo('b.jsonl')).stderr, /--state/)
})
