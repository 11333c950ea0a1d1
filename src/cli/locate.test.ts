import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { makeTestFolder } from '../platform/files/test-folder.ts'
import { announceProcess } from '../platform/process/running-processes.ts'
import type { CliContext } from './define.ts'
import { locate } from './locate.ts'

/** A machine with two running processes on the config file of the machine, and a command in a folder of neither. */
function machine(
  t: TestContext,
  names: readonly { name: string; more?: object }[] = [{ name: 'sluice' }, { name: 'sluice-sender' }],
) {
  const made = makeTestFolder()
  t.after(() => made[Symbol.dispose]())
  const before = process.cwd()
  mkdirSync(made.file('elsewhere'))
  process.chdir(made.file('elsewhere'))
  t.after(() => process.chdir(before))
  const env = { XDG_RUNTIME_DIR: made.path }
  const config = made.file('etc.toml')
  const start = (name: string, pid: number, more: object = {}) => {
    const state = made.file(name)
    mkdirSync(state)
    writeFileSync(made.file(`${name}/control.sock`), '')
    const announced = announceProcess({ pid, state, config, ...more }, env)
    t.after(() => announced[Symbol.dispose]())
    return state
  }
  const stderr: string[] = []
  const context = { process: { env, stderr: { write: (line: string) => void stderr.push(line) } } }
  return {
    stderr,
    made,
    states: names.map(({ name, more }, at) => start(name, at === 0 ? process.pid : process.ppid, more)),
    locate: (text: string) => {
      writeFileSync(config, text)
      return locate(context as unknown as CliContext, {}, config)
    },
  }
}

test('of several processes a command uses the one on the state folder that the config file of the machine names', (t) => {
  const { locate: find, states, stderr } = machine(t)
  assert.equal(find(`state = "${states[0]}"\n`).stateDir, states[0])
  assert.match(stderr.join(), new RegExp(`using process ${process.pid} on ${states[0]}`))
})

test('of several processes on a file that names no state folder, or one of another process, the operator chooses', (t) => {
  const { locate: find, states } = machine(t)
  for (const text of ['', 'state = "/var/lib/other"\n'])
    assert.throws(() => find(text), { code: 'usage', message: new RegExp(`${states[0]}[^]*${states[1]}`) })
})

test('with its service stopped a command is about the state folder of the machine, not about a unit beside it', (t) => {
  const beside = machine(t, [
    { name: 'sluice-sender' },
    { name: 'sluice-localnet', more: { config: null, isChain: true } },
  ])
  const state = beside.made.file('installed')
  mkdirSync(state)
  assert.equal(beside.locate(`state = "${state}"\n`).stateDir, state)
})

test('a unit alone is found where the machine has no other state folder, and a process of its own file everywhere', (t) => {
  const alone = machine(t, [{ name: 'sluice-sender' }])
  assert.equal(alone.locate('state = "/var/lib/other"\n').stateDir, alone.states[0])
})

const CHAIN = { name: 'chain', more: { config: null, isChain: true } }

test('a chain alone is chosen where nothing else runs', (t) => {
  const alone = machine(t, [CHAIN])
  assert.equal(alone.locate('').stateDir, alone.states[0])
})

test('of a chain and another process a command uses the other one', (t) => {
  const both = machine(t, [{ name: 'serve', more: { config: null } }, CHAIN])
  assert.equal(both.locate('').stateDir, both.states[0])
})
