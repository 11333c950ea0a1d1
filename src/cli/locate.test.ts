import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { makeTestFolder } from '../platform/files/test-folder.ts'
import { announceProcess } from '../platform/process/running-processes.ts'
import type { CliContext } from './define.ts'
import { locate } from './locate.ts'

/** A machine with two running processes on the config file of the machine, and a command in a folder of neither. */
function machine(t: TestContext) {
  const made = makeTestFolder()
  t.after(() => made[Symbol.dispose]())
  const before = process.cwd()
  mkdirSync(made.file('elsewhere'))
  process.chdir(made.file('elsewhere'))
  t.after(() => process.chdir(before))
  const env = { XDG_RUNTIME_DIR: made.path }
  const config = made.file('etc.toml')
  const start = (name: string, pid: number) => {
    const state = made.file(name)
    mkdirSync(state)
    writeFileSync(made.file(`${name}/control.sock`), '')
    const announced = announceProcess({ pid, state, config }, env)
    t.after(() => announced[Symbol.dispose]())
    return state
  }
  const stderr: string[] = []
  const context = { process: { env, stderr: { write: (line: string) => void stderr.push(line) } } }
  return {
    stderr,
    states: [start('sluice', process.pid), start('sluice-sender', process.ppid)],
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
