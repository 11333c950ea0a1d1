import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { SMALL, serve } from '../support/process/serve.ts'

test('the first start shows a demo card once; the second re-uses the folder and shows no token', async () => {
  await using home = await temporaryFolder()
  {
    await using first = serve({ cwd: home.path })
    await first.line(/"msg":"started"/)
    assert.equal(new Set(first.stdout().match(/slc_[0-9A-Za-z]{38}/g)).size, 1)
    assert.match(first.stdout(), /^Sluice subscription {2}demo/m)
    assert.match(first.stdout(), /UDP to 127\.0\.0\.1:20001 \(vouched\)/)
    assert.equal(await first.stop(), 0)
  }
  await using second = serve({ cwd: home.path })
  await second.line(/"msg":"started"/)
  assert.doesNotMatch(second.stdout(), /slc_[0-9A-Za-z]{38}|Sluice subscription/)
  assert.match(second.stdout(), /^RPC +http:\/\/127\.0\.0\.1:\d+$/m)
  assert.match(second.stdout(), /sluice token rotate demo/, 'the output names the command for a new token')
  const { stdout } = await sluice(['sub', 'list', '--json'], { cwd: home.path })
  assert.equal((JSON.parse(stdout) as unknown[]).length, 1)
})

test('a start that the environment configures is no trial: it makes no demo subscription and prints no token', async () => {
  await using home = await temporaryFolder()
  const nodes = '[{ name = "a", rpc = "http://127.0.0.1:1", allowPrivate = true }]'
  await using running = serve({ cwd: home.path, env: { SLUICE_UPSTREAMS__NODES: nodes } })
  await running.line(/"msg":"started"/)
  assert.equal(await running.stop(), 0)
  assert.doesNotMatch(running.stdout() + running.stderr(), /slc_|Sluice subscription/)
  assert.equal((await sluice(['sub', 'list', '--json'], { cwd: home.path })).stdout.trim(), '[]')
})

test('status, reload and drain reach the running process', async () => {
  await using home = await temporaryFolder()
  const run = (...words: string[]) => sluice(words, { cwd: home.path })
  const alone = await run('status')
  assert.equal(alone.code, 69)
  assert.match(alone.stderr, /sluice serve/)

  writeFileSync(home.file('sluice.toml'), '[log]\nlevel = "info"\n')
  await using running = serve({ cwd: home.path })
  await running.line(/"msg":"started"/)
  const report = JSON.parse((await run('status', '--json')).stdout) as Record<string, unknown>
  assert.equal(report['state'], 'ok')
  assert.equal(report['pid'], running.child.pid)
  assert.match((await run('status')).stdout, /^state +ok$/m)

  writeFileSync(
    home.file('sluice.toml'),
    '[log]\nlevel = "warn"\n[drain]\ndeadlineMs = 9000\n[plans.big]\nunitsPerSecond = 1000\nsendsPerSecond = 1\nwsConnections = 1\nwsSubscriptions = 10\ngrpcStreams = 1\ngrpcAccountsPerStream = 1\n',
  )
  const reloaded = await run('reload')
  assert.equal(reloaded.code, 0, reloaded.stderr)
  assert.match(reloaded.stderr, /log\.level is in effect/)
  assert.match(reloaded.stderr, /drain\.deadlineMs needs a restart/)
  assert.match(reloaded.stderr, /plans\.big\.unitsPerSecond is in effect/)
  const again = await run('reload')
  assert.match(again.stderr, /drain\.deadlineMs needs a restart/, 'the file is compared with the running configuration')
  assert.doesNotMatch(again.stderr, /is in effect|nothing changed/)

  writeFileSync(home.file('sluice.toml'), '[log]\nlevle = "info"\n')
  const refused = await run('reload')
  assert.equal(refused.code, 78, 'an invalid file is refused')
  assert.match(refused.stderr, /:2:1.*level/s)
  assert.match((await run('status')).stdout, /^state +ok$/m, 'the running process is not affected')

  assert.equal((await run('drain')).code, 2, 'drain asks for confirmation')
  assert.equal((await run('drain', '--yes')).code, 0)
  assert.equal(await running.exit(), 0)
})

test('a second instance on the same folder exits with 75 and names the running process', async () => {
  await using home = await temporaryFolder()
  await using first = serve({ cwd: home.path })
  await first.line(/"msg":"started"/)
  const second = await sluice(['serve'], { cwd: home.path, env: SMALL })
  assert.equal(second.code, 75)
  assert.match(second.stderr, new RegExp(`process ${first.child.pid}`))
  assert.equal((await sluice(['status'], { cwd: home.path })).code, 0, 'the first process keeps running')
})

test('after SIGKILL the folder is free again and nothing is lost', async () => {
  await using home = await temporaryFolder()
  await using first = serve({ cwd: home.path })
  await first.line(/"msg":"started"/)
  await first.stop('SIGKILL')
  await using second = serve({ cwd: home.path })
  await second.line(/"msg":"started"/)
  const { stdout } = await sluice(['sub', 'list', '--json'], { cwd: home.path })
  assert.equal((JSON.parse(stdout) as unknown[]).length, 1)
})

test('a signal ends readiness first, and a second signal stops the process at once', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path, env: { SLUICE_DRAIN__LAME_DUCK_MS: '20000' } })
  const address = await running.address('metrics')
  await running.line(/"msg":"started"/)
  assert.equal((await fetch(`http://${address}/readyz`)).status, 200)
  running.child.kill('SIGTERM')
  await running.line(/"msg":"draining"/)
  assert.equal((await fetch(`http://${address}/readyz`)).status, 503)
  assert.equal((await fetch(`http://${address}/healthz`)).status, 200)
  running.child.kill('SIGTERM')
  assert.equal(await running.exit(), 1)
})

test('a damaged store prevents the start with exit code 78, the file and a fix', async () => {
  await using home = await temporaryFolder()
  await sluice(['customer', 'add', 'acme'], { cwd: home.path })
  writeFileSync(home.file('.sluice/access.db'), Buffer.alloc(8192, 7))
  const { code, stderr } = await sluice(['serve'], { cwd: home.path, env: SMALL })
  assert.equal(code, 78)
  assert.match(stderr, /access\.db/)
  assert.match(stderr, /[Rr]estore/)
})
