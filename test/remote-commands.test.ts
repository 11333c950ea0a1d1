import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { AccessStore } from '../src/access/store/store.ts'
import { ADMIN_ROUTES, type AdminRoute } from '../src/contract/admin-routes.ts'
import { LOCAL_COMMANDS, LOCAL_FLAGS } from '../src/contract/local-commands.ts'
import { HOUR_MS, usageOf } from './support/admin/billing.ts'
import { createMask, lastLine, recordsOf, STEPS, withStore } from './support/admin/steps.ts'
import { createOutputMask, shapeOf } from './support/cli/compare-output.ts'
import { sluiceHere } from './support/cli/in-process.ts'
import { type CliResult, temporaryFolder } from './support/cli/run.ts'
import { type Served, serve } from './support/process/serve.ts'

type Row = {
  readonly words: readonly string[]
  /** Values are measured by each process: only the names of the fields are compared. */
  readonly isMeasured?: true
  /** Where it does not succeed on either side. */
  readonly code?: number
}

/** Commands that change something besides the records of the steps. */
const OTHER_CHANGES: readonly Row[] = [
  { words: ['admin', 'add', 'bob', '--role', 'support', '--expires', '90d', '--print-token', '--json'] },
  { words: ['admin', 'rotate', 'bob', '--yes', '--print-token'] },
  { words: ['admin', 'remove', 'bob', '--yes'] },
  // States of which the effective one differs from the stored one.
  { words: ['customer', 'add', 'late', '--json'] },
  { words: ['sub', 'create', 'late-1', '--customer', 'late', '--json', '--print-token'] },
  { words: ['customer', 'suspend', 'late', '--yes', '--json'] },
  { words: ['customer', 'show', 'late'] },
  { words: ['customer', 'show', 'late', '--json'] },
  { words: ['sub', 'limit', 'late-1', '--units-per-second', '9', '--json'] },
  { words: ['customer', 'remove', 'late', '--yes'], code: 1 },
  { words: ['customer', 'remove', 'late', '--force', '--yes', '--json'] },
  { words: ['notice', 'test'], isMeasured: true },
  { words: ['upstream', 'drain', 'n1'] },
  { words: ['upstream', 'undrain', 'n1', '--json'] },
  { words: ['upstream', 'drain', 'n9'], code: 1 },
]

/** Run while the steps have made records, and with each form of output that a command has. */
const READS: readonly Row[] = [
  { words: ['plan', 'list'] },
  { words: ['plan', 'show', 'build'] },
  { words: ['plan', 'show', 'build', '--json'] },
  { words: ['plan', 'show', 'biuld'], code: 1 },
  { words: ['customer', 'list'] },
  { words: ['customer', 'list', '--all', '-o', 'csv'] },
  { words: ['customer', 'show', 'acme'] },
  { words: ['customer', 'show', 'acme', '--json'] },
  { words: ['customer', 'show', 'acmee'], code: 1 },
  { words: ['sub', 'list', '-o', 'wide'] },
  { words: ['sub', 'list', '--customer', 'acme', '--state-is', 'active', '--json'] },
  { words: ['sub', 'list', '--ending', '7d'] },
  { words: ['sub', 'list', '--state-is', 'gone'], code: 2 },
  { words: ['sub', 'show', 'one'] },
  { words: ['sub', 'show', 'one', '--json'] },
  { words: ['sub', 'create', 'two', '--customer', 'acme', '--dry-run'] },
  { words: ['sub', 'create', 'two', '--customer', 'acme'], code: 2 },
  { words: ['sub', 'create', 'two', '--customer', 'nobody', '--print-token'], code: 1 },
  { words: ['sub', 'create', 'two', '--customer', 'acme', '--products', 'bundel', '--print-token'], code: 2 },
  {
    words: ['sub', 'create', 'two', '--customer', 'acme', '--products', 'shreds-raw', '--destination', '8.8.8.8:20001'],
    code: 1,
  },
  { words: ['sub', 'cancel', 'one'], code: 2 },
  { words: ['sub', 'cancel', 'one', '--dry-run', '--json'] },
  { words: ['sub', 'limit', 'one', '--clear', 'all', '--dry-run'] },
  { words: ['sub', 'limit', 'one'], code: 2 },
  { words: ['token', 'list', 'one'] },
  { words: ['token', 'list', '--json'] },
  { words: ['token', 'issue', 'one', '--print-token'], code: 1 },
  { words: ['token', 'rotate', 'one', '--yes', '--print-token', '--dry-run'] },
  { words: ['node', 'list', '-o', 'wide'] },
  { words: ['node', 'remove', 'big', '--yes'], code: 1 },
  { words: ['node', 'remove', 'big', '--force', '--yes', '--dry-run'] },
  { words: ['shred', 'show', '-o', 'wide'] },
  { words: ['shred', 'show', 'one', '--json'] },
  { words: ['shred', 'report'] },
  { words: ['admin', 'list'] },
  { words: ['admin', 'list', '--json'] },
  { words: ['usage'] },
  { words: ['usage', 'show', '--month', '2026-10', '--by', 'method', '--json'] },
  { words: ['usage', '--month', '2026-10', '--by', 'day', '-o', 'wide'] },
  { words: ['usage', '--month', '2026-10', '--customer', 'acme', '--by', 'hour', '-o', 'csv'] },
  { words: ['usage', '--month', '2026-10', '--since', '7d'], code: 2 },
  { words: ['usage', 'export', '--month', '2026-10'] },
  { words: ['usage', 'export', '--month', '2026-10', '--customer', 'acme', '--by', 'method', '--format', 'jsonl'] },
  { words: ['invoice', 'preview', '--month', '2026-10'] },
  { words: ['invoice', 'preview', '--month', '2026-10', '--customer', 'acme', '--json'] },
  { words: ['billing', 'status'] },
  { words: ['billing', 'status', '--sink', 'stripe'], isMeasured: true },
  { words: ['billing', 'pause'], code: 2 },
  { words: ['notice', 'list'] },
  { words: ['audit', 'tail', '--lines', '5'] },
  { words: ['audit', 'verify'] },
  { words: ['status', '--json'], isMeasured: true },
  { words: ['status'], isMeasured: true },
  { words: ['top', '--json'], isMeasured: true },
  { words: ['upstream', 'list', '--json'], isMeasured: true },
  { words: ['tip', 'stats', '--json'], isMeasured: true },
  { words: ['indexer', 'status', '--json'], isMeasured: true },
]

/** The step after which the commands that read are compared: a subscription has all that it can have. */
const READ_AFTER = 'nodeAssign'

const CONFIG = `
[upstreams]
allowPrivate = true
[[upstreams.nodes]]
name = "n1"
rpc = "http://127.0.0.1:9"
[notices]
command = ["/bin/true"]
[billing.prices.build]
currency = "EUR"
perMonth = "49"
`

type Home = Awaited<ReturnType<typeof temporaryFolder>>

describe('a command on the machine and the same command over the admin API', () => {
  let homes: [Home, Home]
  let served: [Served, Served]
  let remote: Record<string, string>
  const [maskHere, maskThere] = [createOutputMask(), createOutputMask()]
  const [recordsHere, recordsThere] = [createMask(), createMask()]

  before(async () => {
    homes = [await temporaryFolder(), await temporaryFolder()]
    for (const home of homes) writeFileSync(home.file('sluice.toml'), CONFIG)
    served = homes.map(({ path }) =>
      serve({ cwd: path, args: ['--no-demo'], env: { SLUICE_INDEXER__ENABLED: 'true' } }),
    ) as [Served, Served]
    for (const process of served) await process.line(/"msg":"started"/)
    for (const home of homes) {
      const { code, stderr } = await sluiceHere(
        ['admin', 'add', 'ana', '--role', 'owner', '--out', home.file('ana.token')],
        { SLUICE_STATE: home.file('.sluice') },
      )
      assert.equal(code, 0, stderr)
    }
    remote = {
      SLUICE_REMOTE: `http://${await served[1].address('admin')}`,
      SLUICE_ADMIN_TOKEN_FILE: homes[1].file('ana.token'),
    }
  })
  after(async () => {
    for (const process of served) await process[Symbol.asyncDispose]()
    for (const home of homes) await home[Symbol.asyncDispose]()
  })

  const here = (words: readonly string[]) =>
    sluiceHere(words, { SLUICE_STATE: homes[0].file('.sluice'), SLUICE_CONFIG: homes[0].file('sluice.toml') })
  const there = (words: readonly string[]) => sluiceHere(words, remote)
  const stores = () => homes.map((home) => home.file('.sluice')) as [string, string]

  /** All differences are reported together. */
  const differences: string[] = []
  function compare(row: Row, local: CliResult, distant: CliResult): void {
    try {
      compareOne(row, local, distant)
    } catch (error) {
      differences.push((error as Error).message)
    }
  }

  function compareOne(row: Row, local: CliResult, distant: CliResult): void {
    const name = row.words.join(' ')
    const [ours, theirs] = [local, distant].map(({ stderr }) => stderr)
    assert.equal(local.code, row.code ?? 0, `${name} here: ${ours}`)
    assert.equal(distant.code, local.code, `${name} there: ${theirs}`)
    if (row.isMeasured === true) {
      if (row.words.includes('--json')) assert.deepEqual(shapeOf(distant.stdout), shapeOf(local.stdout), name)
      else assert.deepEqual(labelsOf(distant.stdout), labelsOf(local.stdout), name)
      return
    }
    assert.equal(withoutAuthor(maskThere(distant.stdout)), withoutAuthor(maskHere(local.stdout)), name)
    // The days for which usage is kept are known on the machine only; an error over the API has the id of the request.
    const messages = (text: string) => text.replace(/; usage is kept for \d+ days/, '').replace(/\n {2}request: .*/, '')
    assert.equal(messages(maskThere(distant.stderr)), messages(maskHere(local.stderr)), `messages of ${name}`)
  }

  test('every command with a route is in the tables', () => {
    const routed = Object.values(ADMIN_ROUTES as Readonly<Record<string, AdminRoute>>).flatMap(
      ({ commands = [] }) => commands,
    )
    const compared = [
      ...STEPS.map(({ words }) => (typeof words === 'function' ? 'shred verify' : words.join(' '))),
      ...[...OTHER_CHANGES, ...READS].map(({ words }) => words.join(' ')),
    ]
    assert.deepEqual(
      routed.filter((name) => !compared.some((line) => `${line} `.startsWith(`${name} `))),
      [],
    )
  })

  test('have the same exit code, output, records and audit lines', { timeout: 300_000 }, async () => {
    let isRead = false
    for (const step of STEPS) {
      const [ours, theirs] = stores()
      for (const folder of stores()) await withStore(folder, async (store) => step.before?.(store))
      const wordsOf = async (folder: string) =>
        typeof step.words === 'function' ? withStore(folder, step.words) : step.words
      const [mine, distant] = [await wordsOf(ours), await wordsOf(theirs)]
      compare({ words: mine }, await here(mine), await there(distant))

      const lines = [await withStore(ours, lastLine), await withStore(theirs, lastLine)]
      assert.deepEqual(recordsThere(lines[1]?.entry), recordsHere(lines[0]?.entry), `audit line of ${mine.join(' ')}`)
      assert.equal(lines[1]?.seq, lines[0]?.seq, `one line for ${mine.join(' ')}`)
      assert.deepEqual(await withStore(theirs, actorOfLast), ['ana', 'owner'])
      if (step.id === READ_AFTER && !isRead) {
        isRead = true
        for (const folder of stores()) await withStore(folder, addSomeUsage)
        for (const row of READS) compare(row, await here(row.words), await there(row.words))
      }
    }
    for (const row of OTHER_CHANGES) compare(row, await here(row.words), await there(row.words))
    assert.ok(isRead)
    assert.equal(differences.join('\n\n'), '')
    const [mine, distant] = stores()
    assert.deepEqual(recordsThere(await withStore(distant, recordsOf)), recordsHere(await withStore(mine, recordsOf)))
  })

  test('--remote stands before or after the command, and a secret goes to a new file', async () => {
    const url = remote['SLUICE_REMOTE'] as string
    const tokenFile = remote['SLUICE_ADMIN_TOKEN_FILE'] as string
    const token = { SLUICE_ADMIN_TOKEN: readFileSync(tokenFile, 'utf8').trim() }
    for (const words of [
      ['--remote', url, 'plan', 'list', '--json'],
      ['plan', 'list', '--json', '--remote', url],
      ['plan', 'list', `--remote=${url}`, '--json'],
    ]) {
      const { code, stdout, stderr } = await sluiceHere(words, token)
      assert.equal(code, 0, stderr)
      assert.ok((JSON.parse(stdout) as { name: string }[]).some(({ name }) => name === 'build'))
    }
    const file = homes[0].file('new.token')
    const words = ['--remote', url, '--remote-token-file', tokenFile, 'admin', 'add', 'eve', '--role', 'billing']
    const { code, stdout, stderr } = await sluiceHere([...words, '--out', file])
    assert.equal(code, 0, stderr)
    assert.equal(stdout, '')
    assert.match(readFileSync(file, 'utf8'), /^sla_\w{38}\n$/)

    const refused = await sluiceHere(['customer', 'add', 'initech', '--json'], {
      ...remote,
      SLUICE_ADMIN_TOKEN_FILE: file,
    })
    assert.equal(refused.code, 77)
    const error = JSON.parse(refused.stderr) as Record<string, string>
    assert.equal(error['code'], 'forbidden')
    assert.match(error['request_id'] ?? '', /\S/)
    assert.equal((await sluiceHere(['admin', 'remove', 'eve', '--yes'], remote)).code, 0)
    const revoked = await sluiceHere(['plan', 'list'], { ...remote, SLUICE_ADMIN_TOKEN_FILE: file })
    assert.equal(revoked.code, 77)
    assert.match(revoked.stderr, /fix: [\s\S]*request: \S+/)
    assert.ok(!revoked.stderr.includes(readFileSync(file, 'utf8').trim()))
  })

  test('a command without a route stays local, and names why and what to do', async () => {
    for (const [name, because] of Object.entries({ ...LOCAL_COMMANDS, ...LOCAL_FLAGS })) {
      const url = remote['SLUICE_REMOTE'] as string
      const { code, stdout, stderr } = await sluiceHere(['--remote', url, ...name.split(' ')], remote)
      assert.equal(code, 2, name)
      assert.equal(stdout, '', name)
      assert.ok(stderr.includes(`sluice ${name} stays local because it ${because}`), stderr)
      assert.match(stderr, /fix: Run it without --remote/)
    }
    const printed = await sluiceHere(['version'], remote)
    assert.equal(printed.code, 0, 'what only prints is the same everywhere')
  })
})

/** Who made a change is what differs: the user of the machine, or the process for an administrator. */
function withoutAuthor(text: string): string {
  return text.replaceAll(/^( *\d+ {2}TIME {2})\S+/gm, '$1WHO')
}

async function actorOfLast(store: Parameters<typeof lastLine>[0]): Promise<unknown[]> {
  const { lines } = await store.auditPage({ limit: 1 })
  const { actor } = JSON.parse(lines[0] ?? '{}') as { actor: { admin?: { name: string; role: string } } }
  return [actor.admin?.name, actor.admin?.role]
}

async function addSomeUsage(store: AccessStore): Promise<void> {
  const [{ id: subscriptionId } = { id: '' }] = await store.find('subscriptions', { name: 'one' })
  const rows = [2, 3, 30].map((hour) => ({ ...usageOf('one', OCTOBER_MS + hour * HOUR_MS, hour), subscriptionId }))
  await store.addUsage(rows, new Map())
}

const OCTOBER_MS = Date.UTC(2026, 9)

/** The first words of the lines. */
function labelsOf(text: string): string[] {
  return text.split('\n').map((line) => line.trim().split(/ {2,}/)[0] ?? '')
}
