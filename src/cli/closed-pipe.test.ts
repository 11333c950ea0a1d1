import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { test } from 'node:test'
import { BARE_ENV, CLI, temporaryFolder } from '../../test/support/cli/run.ts'
import { openControlSocket } from '../platform/process/control-socket.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { endOnClosedPipe } from './closed-pipe.ts'
import { serveUntilSignal } from './commands/services/run/serve-until-signal.ts'
import type { CliContext } from './define.ts'

/** What a command sees of its process, with the exit code that it ended with. */
function fakeProcess() {
  const ended: (number | undefined)[] = []
  const stderr: string[] = []
  const process = Object.assign(new EventEmitter(), {
    ...{ env: {}, pid: 1, exitCode: undefined as number | undefined, umask() {} },
    stdout: Object.assign(new EventEmitter(), { isTTY: false }),
    stderr: { write: (line: string) => void stderr.push(line) },
    exit: (code?: number) => void ended.push(code),
  })
  endOnClosedPipe(process as unknown as NodeJS.Process)
  const fail = (code: string) => process.stdout.emit('error', Object.assign(new Error(code), { code }))
  return { process, ended, stderr, fail }
}

test('a command ends with its exit code when the reader of its output is gone', () => {
  const { process, ended, fail } = fakeProcess()
  fail('EPIPE')
  process.exitCode = 1
  fail('EPIPE')
  assert.deepEqual(ended, [0, 1])
})

test('a command whose output cannot be written for another reason reports it, and goes on', () => {
  const { process, ended, stderr, fail } = fakeProcess()
  fail('ENOSPC')
  assert.deepEqual([ended, process.exitCode], [[], 1])
  assert.match(stderr.join(), /standard output cannot be written: ENOSPC/)
})

test('a service outlives the reader of its log', async () => {
  const { process, ended, fail } = fakeProcess()
  const start = () => {
    fail('EPIPE')
    return Promise.reject(new Error('started'))
  }
  await assert.rejects(serveUntilSignal({ process } as unknown as CliContext, {}, start), /started/)
  assert.deepEqual(ended, [])
})

test('logs tail --follow ends when the reader of its output is gone', async () => {
  await using home = await temporaryFolder()
  /** As much as is read, without an end. */
  async function* logs(signal: AbortSignal) {
    while (!signal.aborted) {
      yield JSON.stringify({ level: 'info', time: '2026-01-01T00:00:00.000Z', msg: 'a line '.repeat(40) })
      await new Promise<void>((resolve) => void setImmediate(resolve))
    }
  }
  await using _process = await openControlSocket(home.file('control.sock'), {
    log: silentLogger,
    methods: { logs: (_params, { signal }) => logs(signal) },
  })
  const words = ['logs', 'tail', '--follow', '--json', '--state', home.path]
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CLI, ...words], {
    ...{ env: BARE_ENV, stdio: ['ignore', 'pipe', 'inherit'], timeout: 60_000 },
  })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  assert.deepEqual(await once(child, 'close'), [0, null])
})
