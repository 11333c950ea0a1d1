import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { STATE_FILES, stateFileOf } from '../../src/processes/compose/process/state-files.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

/** Every service runs, on the embedded chains. */
const ALL = {
  SLUICE_EXECUTION__ENABLED: 'true',
  SLUICE_INDEXER__ENABLED: 'true',
  SLUICE_LOCALNET__ENABLED: 'true',
}

function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
}

test('every file that a real process writes into its state folder is classified for the backup', async () => {
  await using home = await temporaryFolder()
  const state = home.file('.sluice')
  await using running = serve({ cwd: home.path, env: ALL })
  await running.line(/"msg":"started"/)
  await until('the stream has numbers', () => filesOf(state).includes('execution/seq'))
  const live = filesOf(state)
  assert.equal(await running.stop(), 0)
  const found = [...new Set([...live, ...filesOf(state)])].toSorted()
  assert.deepEqual(
    found.filter((path) => stateFileOf(path) === undefined),
    [],
    'a file without a row in src/processes/compose/process/state-files.ts: can it be made again, or does the backup need it?',
  )
  for (const path of ['access.db', 'audit.log', 'keys/tip-1.json', 'keys/sender-identity.json', 'execution/seq'])
    assert.equal(found.includes(path) && stateFileOf(path)?.keep, 'backup', path)
  for (const path of ['sender/journal-0', 'indexer/chain.duckdb', 'localnet/keys/faucet.json', 'control.sock', 'lock'])
    assert.equal(found.includes(path) && stateFileOf(path)?.keep, 'made-again', `${path} in ${found.join()}`)
})

test('a new file has no row', () => {
  for (const path of ['tips.db', 'keys/old/tip-1.json', 'keys/tip-1.pem', 'sender/other', 'access.dbx'])
    assert.equal(stateFileOf(path), undefined, path)
})

test('the documentation lists every file of the state folder', () => {
  const text = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8')
  for (const { path, keep, contents } of STATE_FILES) {
    const row = `| \`${path}\` | ${contents} | ${keep === 'backup' ? 'yes' : 'no'}`
    assert.ok(text.includes(row), row)
  }
})
