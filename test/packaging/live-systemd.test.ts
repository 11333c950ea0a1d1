import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { readFences } from '../markdown.ts'
import { type LiveSystemd, startLiveSystemd } from '../support/machine/live-systemd.ts'
import { isFull } from '../support/process/property.ts'

const root = join(import.meta.dirname, '../..')
/** Generous: a process restarts after five seconds, and a busy machine is slow. */
const START_MS = 120_000
const CONFIG = '/etc/sluice/sluice.toml'
const UNITS = [
  'sluice',
  'sluice-localnet',
  'sluice-execution',
  'sluice-gateway',
  'sluice-indexer',
  'sluice-sender',
  'sluice-shreds',
]
/** The standalone chain has the usual ports of the gateway. */
const GATEWAY_PORTS = ['RPC__LISTEN=127.0.0.1:18899', 'WS__LISTEN=127.0.0.1:18900', 'GRPC__LISTEN=127.0.0.1:18910']
/** For the standalone services: their node is the standalone embedded chain. */
const ONE_NODE = `[[upstreams.nodes]]\\nname = "local"\\nrpc = "http://127.0.0.1:8899"\\nallowPrivate = true\\n`

/** A unit that passes `systemd-analyze` may still fail in its sandbox: here a live systemd starts it. */
test('under a live systemd', async (t) => {
  const started = await startLiveSystemd(root)
  if (typeof started === 'string') {
    t.skip(`SKIPPED: no systemd can be started here: ${started}`)
    return
  }
  await using systemd = started
  const sh = shellIn(systemd)
  const property = (unit: string, name: string) => sh(`systemctl show --value -p ${name} ${unit}`)
  const isReady = async (port: number) =>
    (await systemd.run('curl', '-sf', `http://127.0.0.1:${port}/readyz`)).code === 0

  // As in docs/packaging.md, except for the log, because there is no journal, and the lame-duck period for load balancers.
  await sh('systemd-sysusers /opt/sluice/ops/systemd/sysusers.conf')
  await sh('install -d -o sluice -g sluice -m 0700 /etc/sluice /var/lib/sluice')
  const init = `init --host rpc.example.net --config ${CONFIG} --state /var/lib/sluice`
  await sh(`runuser -u sluice -- /opt/sluice/sluice ${init}`)
  for (const unit of UNITS) {
    await sh(`cp /opt/sluice/ops/systemd/${unit}.service /run/systemd/system/`)
    await sh(`mkdir /run/systemd/system/${unit}.service.d`)
    const log = 'StandardOutput=append:/run/sluice.log\\nStandardError=append:/run/sluice.log\\n'
    const haste = 'Environment=SLUICE_DRAIN__LAME_DUCK_MS=0\\n'
    const ports = GATEWAY_PORTS.map((port) => `Environment=SLUICE_BUNDLE__${port}\\n`).join('')
    const more = unit === 'sluice-gateway' ? ports : ''
    await sh(`printf '[Service]\\n${log}${haste}${more}' >/run/systemd/system/${unit}.service.d/test.conf`)
  }
  await sh('systemctl daemon-reload')

  await t.test('the unit of all services starts in its sandbox, and every service is healthy', async () => {
    await sh('systemctl start sluice')
    assert.equal(await property('sluice', 'ActiveState'), 'active')
    const main = await property('sluice', 'MainPID')
    const facts = await sh(`cat /proc/${main}/status`)
    assert.match(facts, /^NoNewPrivs:\t1$/m)
    assert.match(facts, /^Seccomp:\t2$/m)
    assert.match(facts, /^CapBnd:\t0+$/m)
    assert.equal(await sh(`stat -c %U /proc/${main}`), 'sluice')
    assert.equal(await sh('stat -c "%U %a" /var/lib/sluice'), 'sluice 700')
    assert.ok(await isReady(9464))
    // The chain engine, the indexer's database and the ring reader are processes and threads in the same sandbox.
    const status = async () => JSON.parse(await sh(`${OPERATOR} status --json`)) as Status
    await until('every service is healthy', async () => (await status()).state === 'ok', START_MS)
    const names = (await status()).services.map(({ name }) => name)
    for (const name of ['rpc', 'ws', 'grpc', 'sender', 'indexer', 'execution', 'shreds', 'metrics'])
      assert.ok(names.includes(name), `${name} of ${names.join()}`)
    await sh('curl -sf http://127.0.0.1:8443/health')
  })

  await t.test('it reloads, keeps serving after an invalid reload, and restarts after a crash', async () => {
    const main = await property('sluice', 'MainPID')
    await sh('systemctl reload sluice')
    await sh(`cp ${CONFIG} /run/good.toml && echo "nonsense = 1" >>${CONFIG}`)
    assert.notEqual((await systemd.run('systemctl', 'reload', 'sluice')).code, 0)
    assert.deepEqual(
      [await property('sluice', 'ActiveState'), await property('sluice', 'MainPID')],
      ['active', main],
      'an invalid configuration changes nothing',
    )
    await sh(`cp /run/good.toml ${CONFIG}`)
    const end = async (signal: string, restarts: string) => {
      await sh(`kill -${signal} ${await property('sluice', 'MainPID')}`)
      const isBack = async () => (await property('sluice', 'NRestarts')) === restarts && (await isReady(9464))
      await until(`it has restarted after ${signal}`, isBack, START_MS)
    }
    await end('KILL', '1')
    // The watchdog ends a blocked event loop after 30 s.
    if (isFull) await end('STOP', '2')
  })

  await t.test('a backup is made by the unit and its timer as documented', async () => {
    const fences = readFences(readFileSync(join(root, 'docs/operating.md'), 'utf8'))
    const linesOf = (mark: string) => fences.find(({ info }) => info === `sh ${mark}`)?.text ?? ''
    await sh('mount -t tmpfs tmpfs /var/backups')
    await sh(`set -e\n${linesOf('backup-folder')}`)
    await sh('cp /opt/sluice/ops/systemd/sluice-backup.* /run/systemd/system/ && systemctl daemon-reload')
    const listed = await sh(`set -e\n${linesOf('timer').replace('enable --now', 'start')}`)
    assert.match(listed, /-rw------- 1 sluice sluice .* \d{4}-\d\d-\d\dT\d{6}Z\.jsonl/)
    assert.equal(await property('sluice-backup.timer', 'ActiveState'), 'active')
  })

  await t.test('it stops cleanly, and a configuration error does not cause a restart', async () => {
    await sh('systemctl stop sluice')
    assert.deepEqual([await property('sluice', 'Result'), await property('sluice', 'ExecMainStatus')], ['success', '0'])
    await sh(`echo "nonsense = 1" >>${CONFIG}`)
    assert.notEqual((await systemd.run('systemctl', 'start', 'sluice')).code, 0)
    const [state, code] = [await property('sluice', 'ActiveState'), await property('sluice', 'ExecMainStatus')]
    assert.deepEqual([state, code], ['failed', '78'])
    await sh(`cp /run/good.toml ${CONFIG}`)
  })

  await t.test('the tables of the indexer move to a larger disk as documented', async () => {
    const page = readFileSync(join(root, 'docs/operating.md'), 'utf8')
    const lines = readFences(page).find(({ info }) => info === 'sh larger-disk')?.text ?? ''
    await sh('mkdir /run/data && mount -t tmpfs tmpfs /run/data')
    await sh(`set -e\n${lines.replaceAll('/data/', '/run/data/')}`)
    const status = async () => JSON.parse(await sh(`${OPERATOR} status --json`)) as Status
    await until('every service is healthy', async () => (await status()).state === 'ok', START_MS)
    await sh('test -s /run/data/sluice-indexer/chain.duckdb && systemctl stop sluice')
  })

  await t.test('the units of single services start in the same sandbox, in parallel, and stop cleanly', async () => {
    await sh(`printf '${ONE_NODE}' >>${CONFIG}`)
    // With a node configured, simulated execution data is served on request only.
    await sh(
      `sed -i 's/^\\[execution\\]$/[execution]\\nsimulated = true/' ${CONFIG} && grep -q '^simulated = true' ${CONFIG}`,
    )
    const alone = UNITS.filter((unit) => unit !== 'sluice')
    for (const unit of ['sluice-gateway', 'sluice-indexer', 'sluice-shreds']) {
      await sh(`install -d -o sluice -g sluice -m 0700 /var/lib/${unit}`)
      await sh(`${OPERATOR} customer add acme --create-store --config ${CONFIG} --state /var/lib/${unit}`)
    }
    await sh(`systemctl start ${alone.join(' ')}`)
    for (const unit of alone) assert.equal(await property(unit, 'ActiveState'), 'active', unit)
    for (const port of [9465, 9466, 9467, 9468, 9469]) await until(`${port} is ready`, () => isReady(port), START_MS)
    await sh('curl -sf http://127.0.0.1:8901/ping')
    await sh('curl -sf http://127.0.0.1:18899/health')
    await sh('curl -sf http://127.0.0.1:8123/ping')
    await sh(`systemctl stop ${alone.join(' ')}`)
    for (const unit of alone)
      assert.deepEqual(
        [await property(unit, 'Result'), await property(unit, 'ExecMainStatus'), await property(unit, 'NRestarts')],
        ['success', '0', '0'],
        unit,
      )
  })
})

/** Without a flag: the command finds the process by its announcement in /run/sluice. */
const OPERATOR = 'cd / && runuser -u sluice -- /opt/sluice/sluice'

type Status = { readonly state: string; readonly services: readonly { readonly name: string }[] }

/** Runs a shell line that must succeed; returns its output. */
function shellIn(systemd: LiveSystemd): (line: string) => Promise<string> {
  return async (line) => {
    const { code, stdout, stderr } = await systemd.run('sh', '-c', line)
    const log = code === 0 ? '' : (await systemd.run('tail', '-8', '/run/sluice.log')).stdout
    assert.equal(code, 0, `${line}\n${stdout}${stderr}\n${log}`)
    return stdout.trim()
  }
}
