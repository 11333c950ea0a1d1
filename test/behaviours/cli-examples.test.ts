import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cpSync, writeFileSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { COMMANDS } from '../support/cli/commands.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { splitWords, temporaryFolder } from '../support/cli/run.ts'
import { makeRingSnapshots } from '../support/execution/ring-snapshots.ts'
import { makeShredCapture } from '../support/shreds/captures.ts'

/** Commands that need a running process or a node, or that run one; other tests run their examples. */
const NEED_A_PROCESS = [
  'serve',
  'localnet',
  'localnet run',
  'localnet set',
  'execution',
  'shreds',
  'sender',
  'gateway',
  'indexer run',
  'status',
  'reload',
  'drain',
  'top',
  'logs tail',
  'upstream list',
  'upstream drain',
  'upstream undrain',
  'node test',
  'bench stream',
  'tip stats',
  'notice list',
  'notice test',
  'indexer status',
  'indexer backfill',
  'indexer query',
]

const BASE = [
  'customer add acme',
  'sub create acme-prod --customer acme --plan build --products bundle,dedicated-node --print-token',
  'sub create acme-shreds --customer acme --products shreds-raw --destination 127.0.0.1:20001 --vouched',
  'sub create acme-sql --customer acme --products bundle,indexer --print-token',
  'node add ded-1 --rpc https://ded-1.example.net',
]

/** Preconditions of the examples. */
const GIVEN: Record<string, string[]> = {
  'customer add': [],
  'customer resume': [...BASE, 'customer suspend acme --yes'],
  'sub create': ['customer add acme'],
  'sub resume': [...BASE, 'sub suspend acme-prod --yes'],
  'token issue': [...BASE, 'token revoke acme-prod --yes'],
  'shred resume': [...BASE, 'shred pause acme-shreds'],
  'shred verify': [...BASE, 'shred set-destination acme-shreds 1.2.3.4:20005'],
  'node add': [],
  'admin rotate': [...BASE, 'admin add ana --role owner --print-token'],
  'admin remove': [...BASE, 'admin add ana --role owner --print-token', 'admin add bob --role owner --print-token'],
  'indexer grant': [...BASE, 'indexer revoke acme-sql --yes'],
}

const home = await temporaryFolder()
const startedIn = process.cwd()
before(async () => {
  process.chdir(home.path)
  makeRingSnapshots(home.path)
  makeShredCapture(home.path)
  writeFileSync('backup.key', randomBytes(32), { mode: 0o600 })
  for (const setUp of [...BASE, 'backup yesterday.jsonl']) await must(setUp, 'base')
})
after(async () => {
  process.chdir(startedIn)
  await home[Symbol.asyncDispose]()
})

async function must(text: string, state: string): Promise<void> {
  const done = await sluiceHere(splitWords(text), { SLUICE_STATE: state })
  assert.equal(done.code, 0, `${text}: ${done.stderr}`)
}

test('every command has an example and a brief', () => {
  assert.ok(COMMANDS.length > 45, `only ${COMMANDS.length} commands were found`)
  for (const { path, brief, examples } of COMMANDS) {
    assert.ok(examples.length > 0, `sluice ${path.join(' ')} has no example`)
    assert.ok(brief.length > 5, `sluice ${path.join(' ')} has no brief`)
  }
})

for (const { path, examples } of COMMANDS) {
  const words = path.join(' ')
  if (NEED_A_PROCESS.includes(words)) continue
  test(`the examples of "sluice ${words}" work as the help shows them`, async () => {
    for (const [at, example] of examples.entries()) {
      const state = `state-${path.join('-')}-${at}`
      const given = GIVEN[words]
      if (given === undefined) cpSync('base', state, { recursive: true })
      for (const setUp of given ?? []) await must(setUp, state)
      const result = await sluiceHere(splitWords(`${words} ${example}`), { SLUICE_STATE: state })
      if (words === 'doctor') {
        assert.ok(result.stdout.includes('store'), result.stderr)
      } else {
        assert.equal(result.code, 0, `sluice ${words} ${example}: ${result.stderr}`)
      }
    }
  })
}
