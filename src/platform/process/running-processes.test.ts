import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeTestFolder } from '../files/test-folder.ts'
import { announceProcess, runningProcesses } from './running-processes.ts'

test('a process is found while it is announced, by a reader with the same runtime folder', (t) => {
  const { env, folder, state } = machine(t)
  const self = { pid: process.pid, state, config: null }
  {
    using _announced = announceProcess(self, env)
    assert.deepEqual(runningProcesses(env), [self])
    assert.deepEqual(runningProcesses({ XDG_RUNTIME_DIR: join(folder, 'other') }), [])
    assert.equal(statSync(join(folder, 'sluice')).mode & 0o777, 0o700)
  }
  assert.deepEqual(runningProcesses(env), [])
  assert.deepEqual(readdirSync(join(folder, 'sluice')), [])
})

test('another process with the same number, a dead one and one without a socket are not running', (t) => {
  const { env, folder, state } = machine(t)
  using _announced = announceProcess({ pid: process.pid, state, config: null }, env)
  const file = join(folder, 'sluice', `${process.pid}.json`)
  const good = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  for (const change of [{ start: '1' }, { pid: 2 ** 30 }, { state: join(folder, 'none') }]) {
    writeFileSync(file, JSON.stringify({ ...good, ...change }))
    assert.deepEqual(runningProcesses(env), [], JSON.stringify(change))
  }
  for (const text of ['', '{', '[]', 'null', JSON.stringify({ ...good, state: 'relative' }), 'x'.repeat(20_000)]) {
    writeFileSync(file, text)
    assert.deepEqual(runningProcesses(env), [], text.slice(0, 20))
  }
  writeFileSync(file, JSON.stringify(good))
  assert.equal(runningProcesses(env).length, 1)
})

test('a start removes what a killed process left', (t) => {
  const { env, folder, state } = machine(t)
  mkdirSync(join(folder, 'sluice'), { mode: 0o700 })
  const left = { pid: process.pid, start: '1', state, config: null }
  writeFileSync(join(folder, 'sluice', `${process.ppid}.json`), JSON.stringify({ ...left, pid: process.ppid }))
  using _announced = announceProcess({ pid: process.pid, state, config: null }, env)
  assert.deepEqual(readdirSync(join(folder, 'sluice')), [`${process.pid}.json`])
})

test('a folder that others can write to is neither read nor written', (t) => {
  const { env, folder, state } = machine(t)
  using _announced = announceProcess({ pid: process.pid, state, config: null }, env)
  chmodSync(join(folder, 'sluice'), 0o777)
  assert.deepEqual(runningProcesses(env), [])
  using _other = announceProcess({ pid: process.ppid, state, config: null }, env)
  assert.deepEqual(readdirSync(join(folder, 'sluice')), [`${process.pid}.json`])
})

test('a folder that another user made first is neither read nor written', (t) => {
  if (process.geteuid?.() !== 0) return t.diagnostic('not root: the folder of another user cannot be made here')
  const { env, folder, state } = machine(t)
  using _announced = announceProcess({ pid: process.pid, state, config: null }, env)
  assert.equal(runningProcesses(env).length, 1)
  chownSync(join(folder, 'sluice'), 12_345, 12_345)
  assert.deepEqual(runningProcesses(env), [])
  using _other = announceProcess({ pid: process.ppid, state, config: null }, env)
  assert.deepEqual(readdirSync(join(folder, 'sluice')), [`${process.pid}.json`])
})

function machine(t: TestContext) {
  const made = makeTestFolder()
  t.after(() => made[Symbol.dispose]())
  const folder = made.path
  const state = join(folder, 'state')
  mkdirSync(state)
  writeFileSync(join(state, 'control.sock'), '')
  return { folder, state, env: { XDG_RUNTIME_DIR: folder } }
}
