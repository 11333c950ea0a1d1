import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { CLI, sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

type Home = Awaited<ReturnType<typeof temporaryFolder>>

/** Folders of two processes, a third folder for commands, and a runtime folder that all of them share. */
async function machine(): Promise<Home & { env: Record<string, string> }> {
  const home = await temporaryFolder()
  for (const name of ['a', 'b', 'elsewhere']) mkdirSync(home.file(name))
  mkdirSync(home.file('run'), { mode: 0o700 })
  return { ...home, env: { XDG_RUNTIME_DIR: home.file('run') } }
}

const typed = (home: Home & { env: Record<string, string> }, folder: string, line: string, env = {}) =>
  sluice(line.split(' '), { cwd: home.file(folder), env: { ...home.env, ...env }, isAsTyped: true })

test('a command in another folder uses the configuration and the store of the running process', async () => {
  await using home = await machine()
  writeFileSync(home.file('a/sluice.toml'), 'host = "rpc.example.net"\n[bundle.rpc]\nplaintext = "behind-proxy"\n')
  await using running = serve({ cwd: home.file('a'), env: home.env })
  await running.line(/"msg":"started"/)
  const port = (await running.address('rpc')).split(':').at(-1)

  const added = await typed(home, 'elsewhere', 'customer add acme')
  assert.equal(added.code, 0, added.stderr)
  assert.match(
    added.stderr,
    new RegExp(`using process ${running.child.pid} on ${home.file('a/.sluice')} \\(${home.file('a/sluice.toml')}\\)`),
  )
  const card = await typed(home, 'elsewhere', 'sub create acme-prod --customer acme --print-token')
  assert.equal(card.code, 0, card.stderr)
  assert.match(
    card.stdout,
    new RegExp(`https://rpc\\.example\\.net:${port}`),
    'the address and port of the running process',
  )
  const status = await typed(home, 'elsewhere', 'status --json')
  assert.equal((JSON.parse(status.stdout) as { pid: number }).pid, running.child.pid)
  assert.equal(status.stderr, '', 'JSON output has no message beside it')
  const doctor = await typed(home, 'elsewhere', 'doctor')
  assert.match(doctor.stdout, new RegExp(`config +${home.file('a/sluice.toml')}, of the running process`))
  assert.doesNotMatch(doctor.stdout, /✗ (port|config|state|store)/)
  assert.deepEqual(readdirSync(home.file('elsewhere')), [], 'the commands made nothing in their folder')

  const inPlace = await typed(home, 'a', 'sub list')
  assert.equal(inPlace.code, 0)
  assert.equal(inPlace.stderr, '', 'in its own folder nothing needs to be said')

  const announced = readdirSync(home.file('run/sluice'))
  assert.deepEqual(announced, [`${running.child.pid}.json`])
  assert.equal(statSync(home.file(`run/sluice/${announced[0]}`)).mode & 0o777, 0o600)
  assert.equal(statSync(home.file('run/sluice')).mode & 0o777, 0o700)
  assert.equal(await running.stop(), 0)
  assert.deepEqual(readdirSync(home.file('run/sluice')), [], 'a process that ended is not announced')
})

test('a config file that was edited since the start: commands use the store of the running process until its restart', async () => {
  await using home = await machine()
  writeFileSync(home.file('a/sluice.toml'), '')
  await using running = serve({ cwd: home.file('a'), env: home.env })
  await running.line(/"msg":"started"/)
  writeFileSync(home.file('a/sluice.toml'), '[access]\nstore = { engine = "sqlite", file = "other.db" }\n')
  const added = await typed(home, 'elsewhere', 'customer add acme')
  assert.equal(added.code, 0, added.stderr)
  const status = await typed(home, 'a', 'status --json')
  assert.equal((JSON.parse(status.stdout) as { customers: number }).customers, 1)
  assert.ok(!existsSync(home.file('a/.sluice/other.db')))
})

test('a folder that was removed: the command says so', async () => {
  await using home = await machine()
  const script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" --disable-warning=ExperimentalWarning "$1" status'
  const { status, stderr } = spawnSync('sh', ['-c', script, process.execPath, CLI], {
    cwd: home.file('elsewhere'),
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...home.env },
  })
  assert.equal(status, 2, stderr)
  assert.match(stderr, /^error: the current folder was removed\n {2}fix: Change to another folder/m)
})

test('two running processes: a command in a third folder asks which; a flag, its folder or its config file choose', async () => {
  await using home = await machine()
  writeFileSync(home.file('b.toml'), 'state = "b/state"\n')
  await using a = serve({ cwd: home.file('a'), env: home.env })
  await using b = serve({ cwd: home.file('b'), args: ['--config', home.file('b.toml')], env: home.env })
  await Promise.all([a.line(/"msg":"started"/), b.line(/"msg":"started"/)])
  assert.ok(existsSync(home.file('b/state/access.db')), 'state of the config file is the state folder')

  const pidOf = async (folder: string, line: string, env = {}) => {
    const { code, stdout, stderr } = await typed(home, folder, `${line} --json`, env)
    assert.equal(code, 0, stderr)
    return (JSON.parse(stdout) as { pid: number }).pid
  }
  const unclear = await typed(home, 'elsewhere', 'status')
  assert.equal(unclear.code, 2)
  for (const text of [
    `process ${a.child.pid} on ${home.file('a/.sluice')}`,
    `process ${b.child.pid} on ${home.file('b/state')}`,
    '--state',
  ])
    assert.ok(unclear.stderr.includes(text), unclear.stderr)
  assert.equal((await typed(home, 'elsewhere', 'customer add acme')).code, 2)
  assert.deepEqual(readdirSync(home.file('elsewhere')), [])

  assert.equal(await pidOf('a', 'status'), a.child.pid)
  assert.equal(await pidOf('elsewhere', `status --state ${home.file('a/.sluice')}`), a.child.pid)
  assert.equal(await pidOf('elsewhere', `status --config ${home.file('b.toml')}`), b.child.pid)
  assert.equal(await pidOf('elsewhere', 'status', { SLUICE_CONFIG: home.file('b.toml') }), b.child.pid)
  assert.equal(await pidOf('elsewhere', 'status', { SLUICE_STATE: home.file('a/.sluice') }), a.child.pid)

  // A killed process leaves its announcement; it counts no longer.
  await a.stop('SIGKILL')
  assert.equal(readdirSync(home.file('run/sluice')).length, 2)
  assert.equal(await pidOf('elsewhere', 'status'), b.child.pid)
})

test('no command but serve, init and --create-store makes a store', async () => {
  await using home = await machine()
  for (const line of [
    'customer add acme',
    'customer list',
    'sub create x --customer y --print-token',
    'node add n --rpc https://n.example.net',
    'usage',
    'audit tail',
    `backup ${home.file('b.jsonl')}`,
    'doctor',
  ]) {
    const { code, stderr } = await typed(home, 'elsewhere', line)
    assert.deepEqual(readdirSync(home.file('elsewhere')), [], line)
    if (line === 'doctor') continue
    assert.equal(code, 1, `${line}: ${stderr}`)
    assert.match(stderr, /there is no access store at \S+elsewhere\/\.sluice\/access\.db: is this the right folder\?/)
    assert.match(stderr, /--state DIR.*--config FILE.*--create-store/)
  }
  const first = await typed(home, 'elsewhere', 'customer add acme --create-store')
  assert.equal(first.code, 0, first.stderr)
  assert.deepEqual(readdirSync(home.file('elsewhere')), ['.sluice'])

  const init = await typed(home, 'a', 'init --host rpc.example.net')
  assert.equal(init.code, 0, init.stderr)
  assert.equal((await typed(home, 'a', 'customer add acme')).code, 0, 'init made the store')
  assert.equal((await typed(home, 'b', `init --host h --config ${home.file('far.toml')}`)).code, 0)
  assert.deepEqual(readdirSync(home.file('b')), [], 'a config file for elsewhere makes nothing here')
  const both = await typed(home, 'b', `init --host h --config ${home.file('far2.toml')} --state ${home.file('far')}`)
  assert.equal(both.code, 0, both.stderr)
  const found = await typed(home, 'b', `customer add acme --config ${home.file('far2.toml')}`)
  assert.equal(found.code, 0, found.stderr)
  assert.ok(existsSync(home.file('far/access.db')))
})

test('a local state folder is used, with a message that a process runs elsewhere', async () => {
  await using home = await machine()
  await using running = serve({ cwd: home.file('a'), env: home.env })
  await running.line(/"msg":"started"/)
  assert.equal((await typed(home, 'b', `customer add local --create-store --state ${home.file('b/.sluice')}`)).code, 0)
  const listed = await typed(home, 'b', 'customer list')
  assert.match(listed.stdout, /local/)
  assert.match(
    listed.stderr,
    new RegExp(`this uses ${home.file('b/.sluice')}; running now: process ${running.child.pid}`),
  )
})

test('an absolute access.store.file is that file', async () => {
  await using home = await machine()
  const file = home.file('a/customers.db')
  writeFileSync(home.file('b/sluice.toml'), `[access]\nstore = { engine = "sqlite", file = "${file}" }\n`)
  const added = await typed(home, 'b', 'customer add acme --create-store')
  assert.equal(added.code, 0, added.stderr)
  assert.ok(existsSync(file))
  assert.ok(!existsSync(home.file('b/.sluice/access.db')))
  assert.match((await typed(home, 'b', 'customer list')).stdout, /acme/)
  assert.match((await typed(home, 'b', 'doctor')).stdout, /store +\S*customers\.db/)
  const made = await typed(home, 'b', `backup ${home.file('b.jsonl')} --json`)
  assert.equal(made.code, 0, made.stderr)
  const restored = await typed(home, 'b', `restore ${home.file('b.jsonl')} --force`)
  assert.equal(restored.code, 0, restored.stderr)
  assert.ok(readdirSync(home.file('a')).some((name) => name.startsWith('customers.db.before-restore-')))
})
