import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { ALONE, BARE_ENV, CLI, sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

type Result = {
  first: string
  second: string
  transactions: number
  both: number
  only_first: number
  only_second: number
  first_share: number
  lead_ms: Record<string, number>
  failure: string | null
}

const transactionsOf = (stdout: string) => (JSON.parse(stdout) as Result).transactions

test('sluice bench stream: of the embedded chain both streams have every transaction, and the decoded one is often first', async (t) => {
  await using home = await temporaryFolder()
  writeFileSync(home.file('sluice.toml'), '[products.shreds-decoded]\nstatus = "preview"\n')
  await using running = serve({
    cwd: home.path,
    env: { SLUICE_LOCALNET__ENABLED: undefined, SLUICE_SENDER__ENABLED: 'false', SLUICE_LOCALNET__TRAFFIC__TPS: '50' },
  })
  await running.line(/"msg":"started"/)
  const run = async (words: readonly string[], env: Record<string, string> = {}) =>
    sluice(words, { cwd: home.path, env })
  assert.equal((await run(['customer', 'add', 'acme', '--contact', 'a@b.c'])).code, 0)
  const words = ['--customer', 'acme', '--plan', 'build', '--products', 'bundle,shreds-decoded', '--print-token']
  const created = await run(['sub', 'create', 'early', ...words])
  const token = /slc_[0-9A-Za-z]{38}/.exec(created.stdout)?.[0] as string
  writeFileSync(home.file('token'), `${token}\n`)
  chmodSync(home.file('token'), 0o600)
  const tokens = ['--first-token', 'env:TOKEN', '--second-token', `file:${home.file('token')}`]
  const env = { TOKEN: token }

  // The token is valid within a second, in each thread by itself. On a machine that stands still the chain does too: few transactions prove nothing.
  let done = { code: -1 as number | null, stdout: '', stderr: '' }
  const isEnough = () => !done.stderr.includes('status 7') && (done.code !== 0 || transactionsOf(done.stdout) > 20)
  await until(
    'both streams have transactions',
    async () => {
      done = await run(['bench', 'stream', '--seconds', '4', '--json', ...tokens], env)
      return isEnough()
    },
    120_000,
  )
  assert.equal(done.code, 0, done.stderr)
  const result = JSON.parse(done.stdout) as Result
  t.diagnostic(JSON.stringify(result))
  assert.deepEqual([result.first, result.second, result.failure], ['decoded', 'geyser', null])
  assert.equal(result.only_first + result.only_second, 0)
  // The chain gives a block to its nodes and to the shreds at the same time, so on a busy machine the other stream is first now and then.
  assert.ok(result.first_share > 0.3, `${result.first_share}`)
  assert.ok((result.lead_ms['max'] as number) > 0)
  for (const { stdout, stderr } of [done]) assert.ok(!`${stdout}${stderr}`.includes(token))

  // The other way round, at an address, ended by Ctrl-C: it prints what it has.
  const grpc = `http://${await running.address('grpc')}`
  const child = spawn(
    process.execPath,
    [CLI, 'bench', 'stream', '--first', `geyser=${grpc}`, '--second', `decoded=${grpc}`, '--seconds', '600', ...tokens],
    { cwd: home.path, env: { ...BARE_ENV, ...ALONE, ...env } },
  )
  let [out, err] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  await until('it shows its progress', () => /10 of 600 s: \d+ transactions/.test(err), 60_000)
  child.kill('SIGINT')
  const [code] = (await once(child, 'close')) as [number | null]
  assert.equal(code, 0, err)
  assert.match(out, /first stream +geyser/)
  assert.ok(Number(/second earlier +\d+ and \d+ alone: (\d+\.\d\d) %/.exec(out)?.[1]) > 30, out)
  assert.match(out, /lead of the first +mean -?[\d.]+ ms, p50 .* from -/)

  const refused = await run(['bench', 'stream', '--seconds', '1', '--first-token', 'env:TOKEN'], env)
  assert.equal(refused.code === 0, false)
  assert.match(refused.stderr, /the second stream ended: status 7/)
})

test('sluice bench stream refuses what it cannot use, by name and without the secret', async () => {
  await using home = await temporaryFolder()
  const secret = 'slc_secret'
  for (const [words, message] of [
    [['--first-token', secret], /not a reference/],
    [['--first-token', 'env:NOT_SET'], /NOT_SET is not set/],
    [['--first', `http://user:${secret}@127.0.0.1:1`], /--first is neither decoded nor geyser/],
    [['--second', 'ftp://127.0.0.1:1'], /--second is neither decoded nor geyser/],
    [['--seconds', '0'], /"0" is not a number of seconds from 1 to 86400/],
    [['--accounts', 'abc'], /"abc" is not an address/],
    [['--token-header', 'a b', '--first-token', 'env:HOME'], /"a b" is not the name of a header/],
    [['--first', 'http://127.0.0.1:1'], /the first stream cannot be opened: ECONNREFUSED/],
  ] as const) {
    const { code, stderr, stdout } = await sluice(['bench', 'stream', ...words], { cwd: home.path })
    assert.ok(code !== 0 && code !== null, words.join(' '))
    assert.match(stderr, message)
    assert.ok(!`${stdout}${stderr}`.includes(secret), words.join(' '))
  }
})
