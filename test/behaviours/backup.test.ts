import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { sluice, temporaryFolder } from '../support/cli.ts'
import { sluiceHere } from '../support/cli-in-process.ts'
import { createRandom, isFull, seedOf } from '../support/property.ts'
import { serve } from '../support/serve.ts'

type Home = Awaited<ReturnType<typeof temporaryFolder>>

const CLI_CHILD = new URL('../support/cli-on-signal.ts', import.meta.url).pathname

const inState = (home: Home) => (words: string) => sluiceHere(words.split(' '), { SLUICE_STATE: home.file('.sluice') })

async function namesOf(home: Home): Promise<string[]> {
  const { code, stdout, stderr } = await inState(home)('customer list --json')
  assert.equal(code, 0, stderr)
  return (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)
}

test('a backup of a running process restores a customer whose old token works', async () => {
  await using home = await temporaryFolder()
  const file = home.file('backup.jsonl')
  let token = ''
  {
    await using first = serve({ cwd: home.path })
    await first.line(/"msg":"started"/)
    token = /slc_[0-9A-Za-z]{38}/.exec(first.stdout())?.[0] ?? ''
    const made = await inState(home)(`backup ${file} --json`)
    assert.equal(made.code, 0, made.stderr)
    const summary = JSON.parse(made.stdout) as { counts: Record<string, number>; sha256: string }
    assert.equal(summary.counts['customers'], 1)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    assert.doesNotMatch(readFileSync(file, 'utf8'), /slc_[0-9A-Za-z]{38}/)
    const running = await inState(home)(`restore ${file} --force`)
    assert.equal(running.code, 75, 'a restore is refused while a process uses the folder')
    assert.match(running.stderr, new RegExp(`process ${first.child.pid}`))
    assert.equal(await first.stop(), 0)
  }
  await inState(home)('customer add too-late')
  const timid = await inState(home)(`restore ${file}`)
  assert.notEqual(timid.code, 0)
  assert.match(timid.stderr, /--force/)
  assert.deepEqual(await namesOf(home), ['demo', 'too-late'], 'nothing was changed')

  const restored = await inState(home)(`restore ${file} --force`)
  assert.equal(restored.code, 0, restored.stderr)
  assert.match(restored.stderr, /1 changes were made after this backup/)
  assert.deepEqual(await namesOf(home), ['demo'])
  const kept = readdirSync(home.file('.sluice')).filter((name) => name.includes('before-restore'))
  assert.deepEqual(kept.map((name) => name.replace(/-restore-.*/, '')).toSorted(), [
    'access.db.before',
    'audit.log.before',
  ])
  assert.match((await inState(home)('audit tail')).stdout, /store\.restore/, 'the audit log records who restored it')
  assert.equal((await inState(home)('audit verify')).code, 0)

  await using second = serve({ cwd: home.path })
  await second.line(/"msg":"started"/)
  const whoami = await fetch(`http://${await second.address('rpc')}/v1/whoami`, { headers: { 'x-token': token } })
  assert.equal(whoami.status, 200)
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
  const { writeFileSync } = await import('node:fs')
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
  const { writeFileSync } = await import('node:fs')
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

test('killed at any point, a backup is complete or absent, and a restore leaves a store that opens', async (t) => {
  await using home = await temporaryFolder()
  const run = inState(home)
  await run('customer add old')
  for (let n = 0; n < 40; n++) await run(`customer add customer-${n}`)
  await run(`backup ${home.file('whole')}`)
  await run('customer add newest')
  const random = createRandom(seedOf(t))
  const lasts: number[] = []
  const outcomes = { old: 0, restored: 0, file: 0, none: 0 }
  for (let n = 0; n < (isFull ? 60 : 8); n++) {
    const state = home.file(`.state-${n}`)
    cpSync(home.file('.sluice'), state, { recursive: true })
    const made = home.file(`made-${n}`)
    const words = n % 2 === 0 ? ['restore', home.file('whole'), '--force'] : ['backup', made]
    const kind = n % 2
    // The first of each kind completes and shows how long that takes on this machine.
    const tookMs = await runAndKill(words, state, n < 2 ? undefined : random(Math.ceil((lasts[kind] as number) * 1.2)))
    if (n < 2) lasts[kind] = tookMs
    const look = (text: string) => sluiceHere(text.split(' '), { SLUICE_STATE: state })
    if (n % 2 === 0) {
      const listed = await look('customer list --json')
      // A log that is ahead of the store is reported with the fix; both kept files exist.
      if (listed.code !== 0) {
        assert.match(listed.stderr, /has lost changes.*mv /s)
        outcomes.restored += 1
        continue
      }
      const names = (JSON.parse(listed.stdout) as { name: string }[]).map(({ name }) => name)
      assert.ok(names.includes('old') && names.length >= 41, 'never an empty store')
      outcomes[names.includes('newest') ? 'old' : 'restored'] += 1
    } else if (readdirSync(home.path).includes(`made-${n}`)) {
      assert.equal((await look(`restore ${made} --dry-run`)).code, 0, 'an existing file is complete')
      outcomes.file += 1
    } else outcomes.none += 1
  }
  t.diagnostic(JSON.stringify(outcomes))
})

/** Runs a command in a process that reports when it is loaded, and kills it that long afterwards. Returns how long it ran. */
async function runAndKill(words: readonly string[], state: string, afterMs: number | undefined): Promise<number> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CLI_CHILD, ...words], {
    env: { PATH: process.env['PATH'] ?? '', SLUICE_STATE: state },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const closed = once(child, 'close')
  await once(child.stdout, 'data')
  const startedMs = performance.now()
  child.stdin.write('go\n')
  const timer = afterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), afterMs)
  await closed
  clearTimeout(timer)
  return performance.now() - startedMs
}
