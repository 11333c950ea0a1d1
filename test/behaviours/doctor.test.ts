import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { BARE_ENV, CLI, temporaryFolder } from '../support/cli/run.ts'

type Home = Awaited<ReturnType<typeof temporaryFolder>>
type Finding = { check: string; level: 'ok' | 'warn' | 'bad'; message: string; fix: string | null }
type Seed = {
  name: string
  /** Causes one fault; returns how to undo changes outside the folder. */
  plant(home: Home): void | Promise<void> | (() => void) | Promise<() => void>
  env?: Record<string, string>
  finds: { check: string; level: 'warn' | 'bad'; message: RegExp; fix: RegExp }
}

const config = (home: Home, toml: string) => writeFileSync(home.file('sluice.toml'), toml)
const tls = (listen = '127.0.0.1:0') =>
  `[metrics]\nlisten = "${listen}"\ntls = { cert = "cert.pem", key = "key.pem" }\n`

/** `at` sets the date of openssl, by libfaketime. */
function makeCertificate(home: Home, days: string, name = '', at?: string): void {
  const faked = { LD_PRELOAD: globSync('/usr/lib/{*/,}faketime/libfaketime.so.1')[0] ?? '', FAKETIME: at ?? '' }
  const args = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    '/CN=localhost',
  ]
  execFileSync(
    'openssl',
    [...args, ...days.split(' '), '-keyout', home.file(`${name}key.pem`), '-out', home.file(`${name}cert.pem`)],
    { stdio: 'ignore', env: { ...process.env, ...(at === undefined ? {} : faked) } },
  )
  chmodSync(home.file(`${name}key.pem`), 0o600)
}

function changeStore(home: Home, sql: string): void {
  const database = new DatabaseSync(home.file('.sluice/access.db'))
  database.exec(sql)
  database.close()
}

const SEEDS: Seed[] = [
  {
    name: 'no event ring at the path',
    plant: (home) => config(home, '[execution]\nring = "ring"\n'),
    finds: { check: 'ring', level: 'bad', message: /there is no file/, fix: /execution\.ring/ },
  },
  {
    name: 'an event ring of another layout',
    plant(home) {
      config(home, '[execution]\nring = "ring"\n')
      writeFileSync(home.file('ring'), 'RING99'.padEnd(4096, ' '))
    },
    finds: { check: 'ring', level: 'bad', message: /ring: /, fix: /ring inspect/ },
  },
  {
    name: 'config is not TOML',
    plant: (home) => config(home, '[metrics\n'),
    finds: { check: 'config', level: 'bad', message: /:1:/, fix: /config check/ },
  },
  {
    name: 'unknown key',
    plant: (home) => config(home, '[metrics]\nlissten = "127.0.0.1:1"\n'),
    finds: { check: 'config', level: 'bad', message: /:2:.*listen/s, fix: /config check/ },
  },
  {
    name: 'wrong type',
    plant: (home) => config(home, '[drain]\nlameDuckMs = "soon"\n'),
    finds: { check: 'config', level: 'bad', message: /:2:/, fix: /config check/ },
  },
  {
    name: 'misspelt environment',
    plant() {},
    env: { SLUICE_METRICS__LISTN: 'x' },
    finds: { check: 'config', level: 'bad', message: /SLUICE_METRICS__LISTN/, fix: /./ },
  },
  {
    name: 'plan that breaks its own promise',
    plant: (home) =>
      config(
        home,
        '[plans.odd]\nunitsPerSecond = 10\nsendsPerSecond = 100\nwsConnections = 1\nwsSubscriptions = 10\ngrpcStreams = 1\ngrpcAccountsPerStream = 1\nbatchItems = 10\n',
      ),
    finds: { check: 'config', level: 'bad', message: /sendsPerSecond/, fix: /./ },
  },
  {
    name: 'secret file readable by others',
    plant: (home) => {
      config(home, '[metrics]\nlisten = "127.0.0.1:0"\nbearer = "file:secret"\n')
      writeFileSync(home.file('secret'), 'x\n', { mode: 0o644 })
    },
    finds: { check: 'secret', level: 'bad', message: /metrics\.bearer/, fix: /chmod 600/ },
  },
  {
    name: 'secret file missing',
    plant: (home) => config(home, '[metrics]\nlisten = "127.0.0.1:0"\nbearer = "file:nowhere"\n'),
    finds: { check: 'secret', level: 'bad', message: /metrics\.bearer/, fix: /nowhere/ },
  },
  {
    name: 'secret variable not set',
    plant: (home) => config(home, '[metrics]\nlisten = "127.0.0.1:0"\nbearer = "env:NOT_SET_HERE"\n'),
    finds: { check: 'secret', level: 'bad', message: /NOT_SET_HERE/, fix: /NOT_SET_HERE/ },
  },
  {
    name: 'public listener without TLS',
    plant: (home) => config(home, '[metrics]\nlisten = "0.0.0.0:0"\n'),
    finds: { check: 'listener', level: 'bad', message: /without TLS/, fix: /tls|behind-proxy/ },
  },
  {
    name: 'public metrics without protection',
    plant: (home) => config(home, '[metrics]\nlisten = "0.0.0.0:0"\nplaintext = "behind-proxy"\n'),
    finds: { check: 'metrics', level: 'bad', message: /open to everyone/, fix: /bearer/ },
  },
  {
    name: 'certificate missing',
    plant: (home) => config(home, tls()),
    finds: { check: 'certificate', level: 'bad', message: /cannot be read/, fix: /openssl/ },
  },
  {
    name: 'certificate expired',
    plant: (home) => {
      config(home, tls())
      makeCertificate(home, '-days 5', '', '2020-01-01 00:00:00')
    },
    finds: { check: 'certificate', level: 'bad', message: /expired/, fix: /renew/ },
  },
  {
    name: 'certificate ends soon',
    plant: (home) => {
      config(home, tls())
      makeCertificate(home, '-days 5')
    },
    finds: { check: 'certificate', level: 'warn', message: /expires in [45] days/, fix: /renew/ },
  },
  {
    name: 'key of another certificate',
    plant: (home) => {
      config(home, tls())
      makeCertificate(home, '-days 90')
      makeCertificate(home, '-days 90', 'other-')
      writeFileSync(home.file('key.pem'), readFileSync(home.file('other-key.pem')), { mode: 0o600 })
    },
    finds: { check: 'certificate', level: 'bad', message: /is not the key of/, fix: /openssl/ },
  },
  {
    name: 'key readable by others',
    plant: (home) => {
      config(home, tls())
      makeCertificate(home, '-days 90')
      chmodSync(home.file('key.pem'), 0o644)
    },
    finds: { check: 'certificate', level: 'bad', message: /0644/, fix: /chmod 600/ },
  },
  {
    name: 'port taken by another process',
    async plant(home) {
      const server = createServer().listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      const { port } = server.address() as { port: number }
      config(home, `[metrics]\nlisten = "127.0.0.1:${port}"\n`)
      return () => void server.close()
    },
    finds: { check: 'port', level: 'bad', message: /in use by another process/, fix: /ss -lntup/ },
  },
  {
    name: 'address of another machine',
    plant: (home) => config(home, '[metrics]\nlisten = "192.0.2.1:9464"\nplaintext = "behind-proxy"\n'),
    finds: { check: 'port', level: 'bad', message: /not an address of this machine/, fix: /ip addr/ },
  },
  {
    name: 'state folder open to others',
    plant: (home) => chmodSync(home.file('.sluice'), 0o755),
    finds: { check: 'state', level: 'bad', message: /0755/, fix: /chmod 700/ },
  },
  {
    name: 'store damaged',
    plant: (home) => changeStore(home, "UPDATE customers SET name = 'somebody'"),
    finds: { check: 'store', level: 'bad', message: /access\.db/, fix: /backup/i },
  },
  {
    name: 'store cut short',
    plant: (home) => truncateSync(home.file('.sluice/access.db'), 5000),
    finds: { check: 'store', level: 'bad', message: /access\.db/, fix: /backup/i },
  },
  {
    name: 'store gone, audit log there',
    plant: (home) => rmSync(home.file('.sluice/access.db')),
    finds: { check: 'store', level: 'bad', message: /is missing/, fix: /backup/i },
  },
  {
    name: 'audit line changed',
    plant: (home) => {
      const file = home.file('.sluice/audit.log')
      writeFileSync(file, readFileSync(file, 'utf8').replace('customer.add', 'customer.odd'))
    },
    finds: { check: 'audit', level: 'bad', message: /line 1 /, fix: /audit verify/ },
  },
  {
    name: 'audit tail cut',
    plant: (home) => {
      const file = home.file('.sluice/audit.log')
      truncateSync(file, readFileSync(file, 'utf8').indexOf('\n') + 1)
    },
    finds: { check: 'audit', level: 'bad', message: /line 2 /, fix: /audit verify/ },
  },
  {
    name: 'plan of a subscription not configured',
    async plant(home) {
      config(
        home,
        '[plans.gone]\nunitsPerSecond = 100\nsendsPerSecond = 1\nwsConnections = 1\nwsSubscriptions = 10\ngrpcStreams = 1\ngrpcAccountsPerStream = 1\n',
      )
      await inHome(home, ['sub', 'limit', 'acme-shreds', '--plan', 'gone'])
      rmSync(home.file('sluice.toml'))
    },
    finds: { check: 'plan', level: 'bad', message: /"gone"/, fix: /sub limit acme-shreds --plan/ },
  },
  {
    name: 'dedicated node that does not respond',
    async plant(home) {
      config(home, '[upstreams]\nallowPrivate = true\n')
      const { code, stderr } = await inHome(home, ['node', 'add', 'own-1', '--rpc', 'http://127.0.0.1:1'])
      assert.equal(code, 0, stderr)
    },
    finds: { check: 'dedicated node', level: 'bad', message: /own-1 over rpc/, fix: /node test own-1/ },
  },
  {
    name: 'dedicated node whose credential is gone',
    async plant(home) {
      config(home, '[upstreams]\nallowPrivate = true\n')
      const words = ['node', 'add', 'own-1', '--rpc', 'http://127.0.0.1:1', '--credential', 'env:OWN_NODE_KEY']
      const { code, stderr } = await inHome(home, words, { OWN_NODE_KEY: 'key' })
      assert.equal(code, 0, stderr)
    },
    finds: { check: 'dedicated node', level: 'bad', message: /own-1: .*OWN_NODE_KEY/, fix: /./ },
  },
  {
    name: 'two listeners with one port',
    plant: (home) =>
      config(home, '[bundle.rpc]\nlisten = "127.0.0.1:18899"\n[bundle.ws]\nlisten = "127.0.0.1:18899"\n'),
    finds: {
      check: 'listener',
      level: 'bad',
      message: /bundle\.rpc\.listen and bundle\.ws\.listen/,
      fix: /bundle\.ws/,
    },
  },
  {
    name: 'destination unproven',
    async plant(home) {
      await inHome(home, ['shred', 'set-destination', 'acme-shreds', '8.8.8.8:20001'])
    },
    finds: { check: 'destination', level: 'warn', message: /unproven/, fix: /set-destination acme-shreds/ },
  },
  {
    name: 'shared quota server down',
    plant: (home) => config(home, '[access.quota.shared]\nurl = "redis://127.0.0.1:1"\n'),
    finds: { check: 'redis', level: 'bad', message: /does not respond/, fix: /redis/ },
  },
  {
    name: 'OpenID Connect issuer down',
    plant: (home) =>
      config(home, '[admin.oidc]\nissuer = "http://127.0.0.1:1"\nclientId = "c"\nroles = { ops = "owner" }\n'),
    finds: {
      check: 'openid',
      level: 'bad',
      message: /discovery document .* cannot be read/,
      fix: /admin\.oidc\.issuer/,
    },
  },
  {
    name: 'shared store down',
    plant: (home) =>
      config(home, '[access.store]\nengine = "postgres"\nurl = "postgres://sluice@127.0.0.1:1/sluice"\n'),
    finds: { check: 'store', level: 'bad', message: /127\.0\.0\.1/, fix: /./ },
  },
]

for (const { name, plant, env, finds } of SEEDS) {
  test(`doctor finds: ${name}`, async () => {
    await using home = await temporaryFolder()
    await prepare(home)
    const undo = await plant(home)
    try {
      const { code, stdout, stderr } = await inHome(home, ['doctor', '--json'], { ...withoutFile(home), ...env })
      const findings = JSON.parse(stdout || 'null') as Finding[] | null
      assert.ok(findings, stderr)
      const found = findings.find(
        (finding) =>
          finding.check === finds.check && finding.level === finds.level && finds.message.test(finding.message),
      )
      assert.ok(found, `not found among ${JSON.stringify(findings, null, 1)}`)
      assert.match(found.fix ?? '', finds.fix)
      if (finds.level === 'bad') assert.equal(code, 1)
    } finally {
      undo?.()
    }
  })
}

test('doctor finds: too few descriptors, and a umask that leaves files open', async () => {
  await using home = await temporaryFolder()
  await prepare(home)
  const line = `umask 022; ulimit -n 1024; exec "${process.execPath}" --disable-warning=ExperimentalWarning "${CLI}" doctor --json`
  const { stdout, stderr } = spawnSync('sh', ['-c', line], {
    cwd: home.path,
    encoding: 'utf8',
    env: { ...BARE_ENV, SLUICE_METRICS__LISTEN: '127.0.0.1:0' },
  })
  const findings = JSON.parse(stdout || stderr) as Finding[]
  assert.ok(
    findings.some(
      ({ check, level, fix }) =>
        check === 'descriptors' && level === 'bad' && fix?.startsWith('ulimit -n 65536') === true,
    ),
    stdout,
  )
  assert.ok(
    findings.some(({ check, level, fix }) => check === 'umask' && level === 'warn' && fix === 'umask 077'),
    stdout,
  )
})

test('doctor reports no problem in a healthy folder, and prints one line per check', async () => {
  await using home = await temporaryFolder()
  await prepare(home)
  const line = `umask 077; exec "${process.execPath}" --disable-warning=ExperimentalWarning "${CLI}" doctor`
  const { status, stdout } = spawnSync('sh', ['-c', line], {
    cwd: home.path,
    encoding: 'utf8',
    env: { ...BARE_ENV, SLUICE_METRICS__LISTEN: '127.0.0.1:0' },
  })
  assert.equal(status, 0, stdout)
  assert.doesNotMatch(stdout, /✗/)
  assert.ok(stdout.split('\n').filter((text) => text.startsWith('✓')).length >= 10, stdout)
})

test('doctor finds the customer of the trial in an installation, and nothing else about it', async () => {
  await using home = await temporaryFolder()
  const given = '--products shreds-raw --destination 127.0.0.1:20001 --vouched'
  for (const words of [
    ['customer', 'add', 'demo', '--contact', 'made by the first start'],
    ['sub', 'create', 'demo', '--customer', 'demo', ...given.split(' ')],
  ])
    assert.equal((await inHome(home, words)).code, 0)
  const look = async (env: Record<string, string> = {}) =>
    (JSON.parse((await inHome(home, ['doctor', '--json'], env)).stdout) as Finding[])
      .filter(({ message }) => message.includes('demo'))
      .map(({ check, level, fix }) => [check, level, fix])
  assert.deepEqual(await look(withoutFile(home)), [], 'a trial')
  config(home, 'host = "127.0.0.1"\n[metrics]\nlisten = "127.0.0.1:0"\n')
  assert.deepEqual(await look(), [['demo', 'bad', 'sluice customer remove demo --force --yes']])
  assert.equal((await inHome(home, ['customer', 'remove', 'demo', '--force', '--yes'])).code, 0)
  assert.deepEqual(await look(), [])
})

/** A command with this home's state folder, and its config file where there is one. */
function inHome(home: Home, words: string[], env: Record<string, string> = {}) {
  const config = existsSync(home.file('sluice.toml')) ? ['--config', home.file('sluice.toml')] : []
  return sluiceHere([...words, ...config], { SLUICE_STATE: home.file('.sluice'), ...env })
}

/** A folder with a customer and a subscription, healthy. */
async function prepare(home: Home): Promise<void> {
  mkdirSync(home.path, { recursive: true })
  for (const words of [
    ['customer', 'add', 'acme'],
    [
      'sub',
      'create',
      'acme-shreds',
      '--customer',
      'acme',
      '--products',
      'shreds-raw',
      '--destination',
      '127.0.0.1:20001',
      '--vouched',
    ],
  ]) {
    const { code, stderr } = await inHome(home, words)
    assert.equal(code, 0, stderr)
  }
}

/** A case without a config file must not connect to another program on the default port. */
function withoutFile(home: Home): Record<string, string> {
  return existsSync(home.file('sluice.toml')) ? {} : { SLUICE_METRICS__LISTEN: '127.0.0.1:0' }
}
