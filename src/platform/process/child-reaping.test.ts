import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { silentLogger } from '../telemetry/logger.ts'
import { reapChildren } from './child.ts'
import { systemClock } from './clock.ts'
import { until } from './test-wait.ts'

/** A thread that starts a process which runs for ever, and dies of an error. */
const THREAD = `
  const { spawn } = require('node:child_process')
  const { parentPort } = require('node:worker_threads')
  const child = spawn('sleep', ['600'], { stdio: 'ignore' })
  parentPort.postMessage(child.pid)
  parentPort.once('message', () => { throw new Error('on purpose') })
`

/** R, S, Z and so on; undefined where the process does not exist. */
function stateOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0]
  } catch {
    return undefined
  }
}

async function startAndDie(): Promise<number> {
  const thread = new Worker(THREAD, { eval: true })
  const pid = await new Promise<number>((resolve) => thread.once('message', resolve))
  const ended = new Promise((resolve) => void thread.once('error', resolve))
  thread.postMessage('die')
  await ended
  return pid
}

test('the child of a dead thread is ended and reaped', async () => {
  const pid = await startAndDie()
  assert.ok(['S', 'R', 'D'].includes(stateOf(pid) ?? ''), 'it runs')
  await reapChildren([pid], { clock: systemClock, log: silentLogger })
  assert.equal(stateOf(pid), undefined)
})

test('a child that has ended is a zombie until then; a process that is not a child is left alone', async () => {
  const pid = await startAndDie()
  process.kill(pid, 'SIGKILL')
  await until('it has ended', () => stateOf(pid) === 'Z')
  await reapChildren([pid, process.ppid, 2 ** 22 + 1], { clock: systemClock, log: silentLogger })
  assert.equal(stateOf(pid), undefined)
  assert.notEqual(stateOf(process.ppid), undefined)
})
