import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import { BARE_ENV } from '../../../test/support/cli/run.ts'
import { createManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { runCommand } from './run-command.ts'
import { until } from './test-wait.ts'

const clock = createManualClock()
const node = (script: string, ...more: string[]): string[] => [process.execPath, '-e', script, '--', ...more]
const run = (command: readonly string[], more: { input?: string; signal?: AbortSignal } = {}) =>
  runCommand({ command, input: '', timeoutMs: 15_000, env: { ONLY: 'this' }, ...more }, { clock })
/** Prints what it got to standard error, and fails so that it is reported. */
const PRINT = `let text = ''
process.stdin.on('data', (part) => (text += part)).on('end', () => {
  console.error(JSON.stringify([text, process.argv.slice(1), process.env]))
  process.exit(3)
})`

test('a program gets its input, its arguments as they are, and no other environment', async () => {
  const args = ['$(id)', '; exit 0', '*', 'a b']
  const result = await run(node(PRINT, ...args), { input: 'the notice' })
  const reason = result.ok ? '' : result.reason
  const printed = reason.slice(reason.indexOf('['))
  assert.match(reason, /ended with code 3: /)
  assert.deepEqual(JSON.parse(printed), ['the notice', args, { ONLY: 'this' }])
  assert.deepEqual(await run(node('')), { ok: true })
})

test('its time ends it, and what it wrote to standard error is kept within a limit', async () => {
  using folder = makeTestFolder()
  const ready = folder.file('ready')
  const script = `process.stderr.write('e'.repeat(5000), () => require('node:fs').writeFileSync(process.argv[1], ''))
setInterval(() => {}, 1000)`
  const running = run(node(script, ready))
  await until('the program runs', () => existsSync(ready))
  clock.advance(14_999)
  assert.equal(clock.pendingTimers(), 1)
  clock.advance(1)
  const result = await running
  const reason = result.ok ? '' : result.reason
  assert.match(reason, /did not end within 15000 ms: e{400}$/)
})

test('a signal ends it, also one that was given before', async () => {
  const abort = new AbortController()
  const running = run(node('setInterval(() => {}, 1000)'), { signal: abort.signal })
  abort.abort()
  for (const result of [await running, await run(node('setInterval(() => {}, 1000)'), { signal: abort.signal })])
    assert.match(result.ok ? '' : result.reason, /ended with SIGKILL/)
  assert.equal(clock.pendingTimers(), 0)
})

test('a program that does not exist, and one that does not read its input', async () => {
  const missing = await run(['/nonexistent/program'])
  assert.match(missing.ok ? '' : missing.reason, /^\/nonexistent\/program could not be started: .*ENOENT/)
  assert.deepEqual(await run(node('process.stdin.destroy()'), { input: 'x'.repeat(1_000_000) }), { ok: true })
})

test('without a free file descriptor, and with arguments that are too long, it fails and the process continues', () => {
  const script = `
    import { closeSync, openSync } from 'node:fs'
    import { runCommand } from ${JSON.stringify(import.meta.resolve('./run-command.ts'))}
    import { systemClock } from ${JSON.stringify(import.meta.resolve('./clock.ts'))}
    const run = (command) => runCommand({ command, input: 'x', timeoutMs: 15000, env: {} }, { clock: systemClock })
    const held = []
    try {
      for (;;) held.push(openSync('/dev/null'))
    } catch {}
    const starved = await run(['/bin/true'])
    held.forEach(closeSync)
    const tooLong = await run(['/bin/true', 'x'.repeat(10_000_000)])
    process.stdout.write(JSON.stringify([starved, tooLong, await run(['/bin/true'])]))`
  const line = 'ulimit -n 64; exec "$0" --input-type=module -e "$1"'
  const done = spawnSync('/bin/sh', ['-c', line, process.execPath, script], { encoding: 'utf8', env: BARE_ENV })
  assert.equal(done.status, 0, done.stderr)
  const [starved, tooLong, after] = JSON.parse(done.stdout)
  assert.match(starved.reason, /^\/bin\/true could not be started: .*EMFILE/)
  assert.match(tooLong.reason, /^\/bin\/true could not be started: .*E2BIG/)
  assert.deepEqual(after, { ok: true })
})
