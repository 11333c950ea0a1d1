import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { sluiceHere } from '../../../../../test/support/cli/in-process.ts'
import { makeTestFolder } from '../../../../platform/files/test-folder.ts'
import { announceProcess } from '../../../../platform/process/running-processes.ts'

test('tip revenue in another folder reads the ledger of the running process', async (t) => {
  using made = makeTestFolder()
  const state = made.file('state')
  mkdirSync(state)
  writeFileSync(made.file('state/control.sock'), '')
  mkdirSync(made.file('elsewhere'))
  const before = process.cwd()
  process.chdir(made.file('elsewhere'))
  t.after(() => process.chdir(before))
  const env = { XDG_RUNTIME_DIR: made.path }
  using _announced = announceProcess({ pid: process.pid, state, config: null }, env)
  const { code, stderr } = await sluiceHere(['tip', 'revenue'], env)
  assert.equal(code, 0, stderr)
  assert.match(stderr, new RegExp(`using process ${process.pid} on ${state} `))
})
