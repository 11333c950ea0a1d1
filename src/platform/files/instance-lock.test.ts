import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { test } from 'node:test'
import { isServiceError } from '../../core/error.ts'
import { isInstanceLocked, takeInstanceLock } from './instance-lock.ts'
import { openStateFolder } from './state-folder.ts'
import { makeTestFolder } from './test-folder.ts'

/** A process that takes the lock, prints a line, and stays until it is killed. */
async function holder(folder: string): Promise<ChildProcess> {
  const module = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
  const script = `
    import { takeInstanceLock } from ${module('./instance-lock.ts')}
    import { openStateFolder } from ${module('./state-folder.ts')}
    globalThis.lock = takeInstanceLock(await openStateFolder(${JSON.stringify(folder)}))
    console.log('held')
    setInterval(() => {}, 1000)
  `
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await new Promise((resolve) => child.stdout?.once('data', resolve))
  return child
}

test('refuses a second process and names the holder, in this process and in another', async () => {
  using position = makeTestFolder()
  const state = await openStateFolder(position.path)
  assert.equal(isInstanceLocked(state), false)
  const lock = takeInstanceLock(state)
  assert.equal(isInstanceLocked(state), true)
  assert.throws(
    () => takeInstanceLock(state),
    (error) => isServiceError(error, 'instance-running') && error.fields['pid'] === process.pid,
  )
  lock[Symbol.dispose]()
  lock[Symbol.dispose]()
  assert.equal(isInstanceLocked(state), false)
})

test('the lock of a killed process is released', async () => {
  using position = makeTestFolder()
  const state = await openStateFolder(position.path)
  const child = await holder(position.path)
  try {
    assert.throws(
      () => takeInstanceLock(state),
      (error) => {
        assert(isServiceError(error, 'instance-running'))
        assert.equal(error.fields['pid'], child.pid)
        assert.match(error.fix ?? '', /--state/)
        return true
      },
    )
  } finally {
    child.kill('SIGKILL')
    await new Promise((resolve) => child.once('exit', resolve))
  }
  using _lock = takeInstanceLock(state)
})
