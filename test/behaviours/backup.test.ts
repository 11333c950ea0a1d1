import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { listTipDays, putTipDays } from '../../src/sender/tips/days.ts'
import { createLedgerFile, openLedgerToRead } from '../../src/sender/tips/ledger-file.ts'
import { openReportStore } from '../../src/shreds/report/store.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { onTerminal } from '../support/cli/terminal.ts'
import { serve } from '../support/process/serve.ts'

type Home = Awaited<ReturnType<typeof temporaryFolder>>

const inState = (home: Home) => (words: string) => sluiceHere(words.split(' '), { SLUICE_STATE: home.file('.sluice') })

async function namesOf(home: Home): Promise<string[]> {
  const { code, stdout, stderr } = await inState(home)('customer list --json')
  assert.equal(code, 0, stderr)
  return (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)
}

/** The tip accounts of a state folder, by their keys. */
async function tipsOf(home: Home): Promise<string[]> {
  const { code, stdout, stderr } = await inState(home)('tip accounts --json')
  assert.equal(code, 0, stderr)
  return (JSON.parse(stdout) as { account: string }[]).map(({ account }) => account)
}

test('a backup of a running process restores a customer whose old token works, and the tip wallets', async () => {
  await using home = await temporaryFolder()
  const file = home.file('backup.jsonl')
  const key = home.file('backup.key')
  writeFileSync(key, randomBytes(32), { mode: 0o600 })
  let token = ''
  {
    await using first = serve({ cwd: home.path })
    await first.line(/"msg":"started"/)
    token = /slc_[0-9A-Za-z]{38}/.exec(first.stdout())?.[0] ?? ''
    const refused = await inState(home)(`backup ${file}`)
    assert.equal(refused.code, 2, 'the tip wallets are never in a backup in the clear, and never left out silently')
    assert.match(refused.stderr, /--key-file.*--passphrase-file.*--without-keys/s)
    const made = await inState(home)(`backup ${file} --key-file ${key} --json`)
    assert.equal(made.code, 0, made.stderr)
    const summary = JSON.parse(made.stdout) as { counts: Record<string, number>; sha256: string; keys: string[] }
    assert.equal(summary.counts['customers'], 1)
    assert.deepEqual(
      summary.keys,
      ['sender-identity', 'tip-1', 'tip-2', 'tip-3', 'tip-4', 'tip-5'].map((name) => `${name}.json`),
    )
    const secretKey = readFileSync(home.file('.sluice/keys/tip-1.json'), 'utf8')
    assert.ok(!readFileSync(file, 'utf8').includes(secretKey.slice(1, 40)), 'the keys are encrypted')
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.doesNotMatch(readFileSync(file, 'utf8'), /slc_[0-9A-Za-z]{38}/)
    const running = await inState(home)(`restore ${file} --key-file ${key} --force`)
    assert.equal(running.code, 75, 'a restore is refused while a process uses the folder')
    assert.match(running.stderr, new RegExp(`process ${first.child.pid}`))
    assert.equal(await first.stop(), 0)
  }
  await inState(home)('customer add too-late')
  const timid = await inState(home)(`restore ${file} --key-file ${key}`)
  assert.notEqual(timid.code, 0)
  assert.match(timid.stderr, /--force/)
  assert.deepEqual(await namesOf(home), ['demo', 'too-late'], 'nothing was changed')

  const restored = await inState(home)(`restore ${file} --key-file ${key} --force`)
  assert.equal(restored.code, 0, restored.stderr)
  assert.match(restored.stderr, /1 changes were made after this backup/)
  assert.deepEqual(await namesOf(home), ['demo'])
  const kept = readdirSync(home.file('.sluice')).filter((name) => name.includes('before-restore'))
  assert.deepEqual(kept.map((name) => name.replace(/-restore-.*/, '')).toSorted(), [
    'access.db.before',
    'audit.log.before',
  ])
  assert.deepEqual(
    readdirSync(home.file('.sluice/keys')).filter((name) => name.includes('before')),
    [],
    'equal keys are not replaced',
  )
  assert.match((await inState(home)('audit tail')).stdout, /store\.restore/, 'the audit log records who restored it')
  assert.equal((await inState(home)('audit verify')).code, 0)

  // A machine that has nothing but the backup and the key file.
  await using fresh = await temporaryFolder()
  const moved = await inState(fresh)(`restore ${file} --key-file ${key}`)
  assert.equal(moved.code, 0, moved.stderr)
  assert.deepEqual(await tipsOf(fresh), await tipsOf(home), 'the tip wallets are back')
  assert.equal((await tipsOf(home)).length, 5)
  for (const name of readdirSync(fresh.file('.sluice/keys')))
    assert.equal(statSync(fresh.file(`.sluice/keys/${name}`)).mode & 0o777, 0o600, name)
  assert.equal(statSync(fresh.file('.sluice/keys')).mode & 0o777, 0o700)

  await using second = serve({ cwd: fresh.path })
  await second.line(/"msg":"started"/)
  assert.doesNotMatch(second.stdout(), /tip wallets were created/)
  const whoami = await fetch(`http://${await second.address('rpc')}/v1/whoami`, { headers: { 'x-token': token } })
  assert.equal(whoami.status, 200)
})

/** A state folder with a customer and two key files. */
async function withKeys(home: Home): Promise<void> {
  await inState(home)('customer add acme')
  mkdirSync(home.file('.sluice/keys'), { mode: 0o700 })
  for (const n of [1, 2]) writeFileSync(home.file(`.sluice/keys/tip-${n}.json`), `[${n},7]`, { mode: 0o600 })
}

test('a wrong passphrase and an altered file change nothing', async () => {
  await using home = await temporaryFolder()
  await withKeys(home)
  writeFileSync(home.file('right'), 'one two three four five\n', { mode: 0o600 })
  writeFileSync(home.file('wrong'), 'one two three four fiv\n', { mode: 0o600 })
  const made = await inState(home)(`backup ${home.file('b')} --passphrase-file ${home.file('right')}`)
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /tip-1\.json, tip-2\.json/)
  const text = readFileSync(home.file('b'), 'utf8')
  writeFileSync(home.file('cut'), text.slice(0, -20))
  writeFileSync(home.file('altered'), text.replace(/"tag":"./, '"tag":"_'))

  await using empty = await temporaryFolder()
  const attempts: [string, number, RegExp][] = [
    [`restore ${home.file('b')} --passphrase-file ${home.file('wrong')}`, 78, /does not open the keys/],
    [`restore ${home.file('b')}`, 2, /--passphrase-file/],
    [`restore ${home.file('cut')} --passphrase-file ${home.file('right')}`, 78, /not a complete backup/],
    [`restore ${home.file('altered')} --passphrase-file ${home.file('right')}`, 78, /not a complete backup/],
    [`restore ${home.file('b')} --dry-run --passphrase-file ${home.file('wrong')}`, 78, /does not open/],
  ]
  for (const [words, code, message] of attempts) {
    const refused = await inState(empty)(words)
    assert.equal(refused.code, code, `${words}: ${refused.stderr}`)
    assert.match(refused.stderr, message)
    assert.ok(!existsSync(empty.file('.sluice')), `${words} wrote something`)
  }
  const right = await sluiceHere(['restore', home.file('b'), '--passphrase-env', 'PASS'], {
    SLUICE_STATE: empty.file('.sluice'),
    PASS: 'one two three four five',
  })
  assert.equal(right.code, 0, right.stderr)
  assert.equal(readFileSync(empty.file('.sluice/keys/tip-2.json'), 'utf8'), '[2,7]')
})

test('a restore never loses a wallet: other keys are replaced only with --force, and kept', async () => {
  await using home = await temporaryFolder()
  await withKeys(home)
  writeFileSync(home.file('key'), randomBytes(40), { mode: 0o600 })
  assert.equal((await inState(home)(`backup ${home.file('b')} --key-file ${home.file('key')}`)).code, 0)
  await using other = await temporaryFolder()
  mkdirSync(other.file('.sluice/keys'), { recursive: true, mode: 0o700 })
  writeFileSync(other.file('.sluice/keys/tip-1.json'), '[9,9]', { mode: 0o600 })
  const timid = await inState(other)(`restore ${home.file('b')} --key-file ${home.file('key')}`)
  assert.equal(timid.code, 1)
  assert.match(timid.stderr, /tip-1\.json already exists.*--force/s)
  assert.equal(readFileSync(other.file('.sluice/keys/tip-1.json'), 'utf8'), '[9,9]')
  const forced = await inState(other)(`restore ${home.file('b')} --key-file ${home.file('key')} --force`)
  assert.equal(forced.code, 0, forced.stderr)
  const names = readdirSync(other.file('.sluice/keys'))
  const kept = names.find((name) => name.startsWith('tip-1.json.before-restore-'))
  assert.equal(readFileSync(other.file(`.sluice/keys/${kept}`), 'utf8'), '[9,9]')
  assert.equal(readFileSync(other.file('.sluice/keys/tip-1.json'), 'utf8'), '[1,7]')

  await using without = await temporaryFolder()
  const left = await inState(without)(`restore ${home.file('b')} --without-keys`)
  assert.equal(left.code, 0, left.stderr)
  assert.ok(!existsSync(without.file('.sluice/keys')))
})

test('the secret of a backup is refused when it is weak, readable by others or given twice', async () => {
  await using home = await temporaryFolder()
  await withKeys(home)
  const file = (name: string, text: string, mode = 0o600) => writeFileSync(home.file(name), text, { mode })
  file('short', 'too short\n')
  file('open', 'a passphrase that others can read\n', 0o644)
  file('small.key', 'x'.repeat(31))
  const attempts: [string, number, RegExp][] = [
    [`--passphrase-file ${home.file('short')}`, 2, /at least 12 characters/],
    [`--passphrase-file ${home.file('open')}`, 78, /0644/],
    [`--passphrase-file ${home.file('none')}`, 78, /cannot be read/],
    [`--key-file ${home.file('small.key')}`, 78, /31 bytes/],
    ['--passphrase-env NOT_SET', 78, /NOT_SET/],
    ['--passphrase-env s3cr3t-words', 2, /the name of an environment variable/],
    [`--without-keys --key-file ${home.file('small.key')}`, 2, /exclude each other/],
  ]
  for (const [flags, code, message] of attempts) {
    const refused = await inState(home)(`backup ${home.file('b')} ${flags}`)
    assert.equal(refused.code, code, `${flags}: ${refused.stderr}`)
    assert.match(refused.stderr, message)
    assert.doesNotMatch(refused.stderr, /s3cr3t/)
  }
  assert.ok(!existsSync(home.file('b')))
  const without = await inState(home)(`backup ${home.file('b')} --without-keys`)
  assert.equal(without.code, 0)
  assert.match(without.stdout, /LEFT OUT: tip-1\.json, tip-2\.json/)
})

test('on a terminal a backup asks for the passphrase twice and does not show it; a restore asks once', async () => {
  await using home = await temporaryFolder()
  await withKeys(home)
  await using backup = onTerminal(home.path, 'backup b.jsonl')
  for (const [at, typed] of ['correct horse battery', 'correct horse batterx'].entries()) {
    const question = ['Passphrase that encrypts the keys', 'The same again'][at] as string
    await until(question, () => backup.text().includes(question))
    backup.type(`${typed}\r`)
  }
  assert.equal(await backup.exit(), 2)
  assert.match(backup.text(), /the two passphrases differ/)
  assert.doesNotMatch(backup.text(), /horse/)
  assert.ok(!existsSync(home.file('b.jsonl')))

  writeFileSync(home.file('pass'), 'correct horse battery', { mode: 0o600 })
  const made = await inState(home)(`backup ${home.file('b.jsonl')} --passphrase-file ${home.file('pass')}`)
  assert.equal(made.code, 0)
  assert.ok(
    made.stderr.includes(`sluice restore ${home.file('b.jsonl')} --passphrase-file ${home.file('pass')}\n`),
    made.stderr,
  )
  await using again = onTerminal(home.path, 'backup b.jsonl')
  assert.equal(await again.exit(), 1)
  assert.match(again.text(), /b\.jsonl already exists/)
  assert.doesNotMatch(again.text(), /Passphrase/, 'refused before anything is asked')
  await using restore = onTerminal(home.path, 'restore b.jsonl --state other')
  await until('it asks', () => restore.text().includes('Passphrase of the backup'))
  restore.type('correct horse battery\r')
  assert.equal(await restore.exit(), 0, restore.text())
  assert.equal(readFileSync(home.file('other/keys/tip-1.json'), 'utf8'), '[1,7]')
})

test('delivery reports and the number of the execution stream come back; the number never goes back', async () => {
  await using home = await temporaryFolder()
  await inState(home)('customer add acme')
  const deps = { clock: systemClock, random: secureRandom }
  const row = {
    subscriptionId: 'sub_1',
    hour: 3_600_000,
    packets: 5,
    bytes: 50,
    unsentRate: 1,
    unsentTotalRate: 0,
    unsentBuffer: 0,
    unsentPaused: 0,
    unsentError: 0,
    refusals: 0,
    slots: 2,
    firstSlot: 10,
    lastSlot: 11,
    duplicates: 0,
  }
  const delays = { hour: 3_600_000, packets: [3, 2, ...Array.from({ length: 16 }, () => 0)] }
  {
    await using reports = await openReportStore(home.file('.sluice/shreds/reports.db'), { ...deps, create: true })
    await reports.add([row], [delays])
  }
  const tipDay = ['2026-11-01', 'account', 'payer', 3, 2, 1, 0, 5_000_000, 3_000_000]
  mkdirSync(home.file('.sluice/sender'), { mode: 0o700 })
  await createLedgerFile(home.file('.sluice/sender/tips.db'), deps, (tx) => putTipDays(tx, [tipDay]))
  mkdirSync(home.file('.sluice/execution'), { mode: 0o700 })
  const seqFile = home.file('.sluice/execution/seq')
  writeFileSync(seqFile, '8000000000000000\n')
  const made = await inState(home)(`backup ${home.file('b')}`)
  assert.equal(made.code, 0, 'nothing in it needs a passphrase')
  const dry = await inState(home)(`restore ${home.file('b')} --dry-run`)
  assert.equal(dry.code, 0, dry.stderr)
  for (const { stdout } of [made, dry]) {
    assert.match(stdout, /^tips +1 daily sums by account and payer$/m)
    assert.match(stdout, /^reports +1 hours of shred delivery$/m)
    assert.match(stdout, /^other .*1 shred_delays/m)
    assert.match(stdout, /^stream +number of the execution stream$/m)
  }
  // Every kind of line in the file is in the text, whichever it is.
  const kinds = readFileSync(home.file('b'), 'utf8')
    .trimEnd()
    .split('\n')
    .slice(1, -1)
    .map((line) => Object.keys(JSON.parse(line) as object)[0] as string)
  const { counts } = JSON.parse((await inState(home)(`restore ${home.file('b')} --dry-run --json`)).stdout) as {
    counts: Record<string, number>
  }
  assert.deepEqual(Object.keys(counts).toSorted(), [...new Set(kinds)].toSorted())
  assert.deepEqual([counts['tip_day'], counts['shred_delivery'], counts['cursor']], [1, 1, 1])

  await using fresh = await temporaryFolder()
  const restored = await inState(fresh)(`restore ${home.file('b')}`)
  assert.equal(restored.code, 0, restored.stderr)
  await using reports = await openReportStore(fresh.file('.sluice/shreds/reports.db'), { ...deps, create: false })
  assert.deepEqual(await reports.list({}), [row])
  assert.deepEqual(await reports.delays({ fromMs: 0 }), [delays])
  await using tips = await openLedgerToRead(fresh.file('.sluice/sender'), deps)
  assert.ok(tips)
  assert.deepEqual(await listTipDays(tips), [tipDay])
  assert.equal(readFileSync(fresh.file('.sluice/execution/seq'), 'utf8').trim(), '8000000000000000')

  // Numbers that were used after the backup are below the clock in microseconds.
  writeFileSync(seqFile, '5\n')
  assert.equal((await inState(home)(`backup ${home.file('b2')}`)).code, 0)
  await using later = await temporaryFolder()
  const before = Date.now() * 1000
  assert.equal((await inState(later)(`restore ${home.file('b2')}`)).code, 0)
  assert.ok(Number(readFileSync(later.file('.sluice/execution/seq'), 'utf8')) >= before)
})

test('restore works in an empty folder, and keeps the audit log of a folder without a store', async () => {
  await using home = await temporaryFolder()
  await inState(home)('customer add acme')
  await inState(home)(`backup ${home.file('b')}`)
  await using empty = await temporaryFolder()
  const fresh = await inState(empty)(`restore ${home.file('b')}`)
  assert.equal(fresh.code, 0, fresh.stderr)
  assert.deepEqual(await namesOf(empty), ['acme'])

  await using half = await temporaryFolder()
  cpSync(home.file('.sluice'), half.file('.sluice'), { recursive: true })
  const { rmSync } = await import('node:fs')
  for (const ending of ['', '-wal', '-shm']) rmSync(half.file(`.sluice/access.db${ending}`), { force: true })
  assert.match((await inState(half)('sub list')).stderr, /there is no access store/)
  assert.match((await sluice(['doctor'], { cwd: half.path })).stdout, /sluice restore BACKUP/)
  const back = await inState(half)(`restore ${home.file('b')}`)
  assert.equal(back.code, 0, back.stderr)
  assert.deepEqual(await namesOf(half), ['acme'])
})

test('restore replaces a damaged store and keeps it under another name', async () => {
  await using home = await temporaryFolder()
  await inState(home)('customer add acme')
  await inState(home)(`backup ${home.file('b')}`)
  writeFileSync(home.file('.sluice/access.db'), Buffer.alloc(8192, 7))
  assert.equal((await inState(home)('customer list')).code, 78)
  const { code, stderr } = await inState(home)(`restore ${home.file('b')} --force`)
  assert.equal(code, 0, stderr)
  assert.deepEqual(await namesOf(home), ['acme'])
})

test('a dry run reads the complete file and changes nothing; a damaged or missing file is refused', async () => {
  await using home = await temporaryFolder()
  await inState(home)('customer add acme')
  await inState(home)(`backup ${home.file('b')}`)
  await inState(home)('customer add later')
  const dry = await inState(home)(`restore ${home.file('b')} --dry-run`)
  assert.equal(dry.code, 0, dry.stderr)
  assert.match(dry.stderr, /nothing changed/)
  writeFileSync(home.file('cut'), readFileSync(home.file('b')).subarray(0, -30))
  for (const words of [`restore ${home.file('cut')} --force`, `restore ${home.file('cut')} --dry-run`]) {
    const { code, stderr } = await inState(home)(words)
    assert.equal(code, 78)
    assert.match(stderr, /not a complete backup/)
  }
  assert.equal((await inState(home)(`restore ${home.file('none')}`)).code, 1)
  assert.deepEqual(await namesOf(home), ['acme', 'later'])
  const again = await inState(home)(`backup ${home.file('b')}`)
  assert.match(again.stderr, /already exists/)
})
