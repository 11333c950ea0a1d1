import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { after, before, test } from 'node:test'
import { BARE_ENV, CLI, sluice, temporaryFolder } from '../support/cli/run.ts'
import { type Served, serve } from '../support/process/serve.ts'

/** `sluice top`, `status --watch` and `logs tail` beside a real process with a little traffic. */

const ESCAPE = String.fromCharCode(27)
const home = await temporaryFolder()
let running: Served
let token = ''

before(async () => {
  running = serve({ cwd: home.path })
  await running.line(/"msg":"started"/)
  token = /slc_[0-9A-Za-z]{38}/.exec(running.stdout())?.[0] ?? ''
})
after(async () => {
  await running[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
})

const run = (...words: string[]) => sluice(words, { cwd: home.path })

/** Refused without a node or without a token; counted nevertheless. */
async function call(given: string): Promise<void> {
  const headers = { 'content-type': 'application/json', 'x-token': given }
  const body = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}'
  const response = await fetch(`http://${await running.address('rpc')}/`, { method: 'POST', headers, body })
  await response.arrayBuffer()
}

test('top as JSON has the figures of every product, and no secret', async () => {
  for (let n = 0; n < 5; n++) await call(`slc_${'a'.repeat(38)}`)
  await call(token)
  const { code, stdout, stderr } = await run('top', '--json')
  assert.equal(code, 0, stderr)
  const view = JSON.parse(stdout) as Record<string, unknown>
  assert.deepEqual(Object.keys(view), [
    'status',
    'process',
    'calls',
    'units_per_second',
    'streams',
    'out',
    'shreds',
    'sender',
    'indexer',
    'execution',
    'upstreams',
    'subscriptions',
    'refusals',
  ])
  assert.equal(view['indexer'], null, 'a stopped service has no figures')
  const refusals = view['refusals'] as { part: string; reason: string; count: number }[]
  assert.equal(refusals.find(({ part, reason }) => part === 'token' && reason === 'malformed')?.count, 5)
  assert.doesNotMatch(stdout, /slc_/)
})

test('top without a terminal prints once, without escape sequences', async () => {
  for (const words of [['top'], ['top', '--once']]) {
    const { code, stdout } = await run(...words)
    assert.equal(code, 0)
    assert.match(stdout, /sluice .* ● ok/)
    assert.match(stdout, /^ REFUSED BY/m)
    assert.ok(!stdout.includes(ESCAPE) && !stdout.includes('q to quit'))
  }
})

test('on a terminal top refreshes, and q restores the terminal', async () => {
  // util-linux's script is what makes a terminal where there is none.
  const command = `"${process.execPath}" --disable-warning=ExperimentalWarning "${CLI}" top`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: home.path,
    env: { ...BARE_ENV, TERM: 'xterm' },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  let shown = ''
  const { promise: drawnTwice, resolve } = Promise.withResolvers<void>()
  child.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString()
    if (shown.split(`${ESCAPE}[?2026h`).length > 2) resolve()
  })
  const ended = new Promise<number | null>((done) => void child.once('close', done))
  const limit = setTimeout(() => child.kill(), 30_000)
  await Promise.race([drawnTwice, ended])
  child.stdin.write('q')
  assert.equal(await ended, 0, shown)
  clearTimeout(limit)
  assert.ok(shown.includes('q to quit') && shown.includes('UPSTREAM'))
  assert.ok(shown.trimEnd().endsWith(`${ESCAPE}[?25h${ESCAPE}[?1049l`), 'the cursor and the old screen are back')
})

test('logs tail shows lines of the running process, by level and by subscription', async () => {
  const all = await run('logs', 'tail', '--lines', '1000')
  assert.match(all.stdout, /INFO .* listening .*service=rpc/)
  assert.doesNotMatch(all.stdout, /slc_/, 'the card was never a log record')
  const asWritten = (await run('logs', 'tail', '--json', '-n', '1')).stdout
  assert.equal(typeof (JSON.parse(asWritten) as Record<string, unknown>)['msg'], 'string')
  const none = await run('logs', 'tail', '--sub', 'demo', '--level', 'error')
  assert.equal(none.code, 0)
  assert.match(none.stderr, /no matching lines/)
  const unknown = await run('logs', 'tail', '--sub', 'nobody')
  assert.equal(unknown.code, 1)
  assert.match(unknown.stderr, /unknown subscription "nobody"/)
  assert.equal((await run('logs', 'tail', '--lines', '1001')).code, 2)
})

test('status --watch prints each change, including a stop and a restart of the process', async () => {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', CLI, 'status', '--watch'], {
    cwd: home.path,
    env: BARE_ENV,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let reported = ''
  child.stdout.on('data', (chunk: Buffer) => (reported += chunk.toString()))
  const ended = new Promise<number | null>((done) => void child.once('close', done))
  const until = async (pattern: RegExp) => {
    const signal = AbortSignal.timeout(30_000)
    while (!pattern.test(reported)) {
      assert.ok(!signal.aborted, `no ${pattern} in:\n${reported}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  try {
    await until(/^ok \(process \d+/m)
    await running.stop('SIGKILL')
    await until(/^not running$/m)
    running = serve({ cwd: home.path })
    await running.line(/"msg":"started"/)
    await until(/not running\n(.*\n)*ok \(process/m)
  } finally {
    child.kill('SIGINT')
  }
  assert.equal(await ended, 0)
  assert.equal(
    reported.split('\n').filter((line) => line.startsWith('ok')).length,
    2,
    'a second without a change prints nothing',
  )
})

test('without a running process all three exit with 69', async () => {
  await using empty = await temporaryFolder()
  for (const words of [['top'], ['top', '--json'], ['status', '--watch'], ['logs', 'tail']]) {
    const { code, stdout, stderr } = await sluice(words, { cwd: empty.path })
    assert.equal(code, 69, words.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, /sluice serve/)
  }
})
