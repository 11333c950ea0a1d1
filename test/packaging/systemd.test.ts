import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, test } from 'node:test'
import { EXIT_CODES } from '../../src/contract/exit-codes.ts'
import { listenAsServiceManager } from '../../src/platform/process/test-service-manager.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { configSchema } from '../../src/processes/compose/config/config.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'ops/systemd')
const [backup = '', ...others] = globSync(join(folder, '*.service')).toSorted()
/** Those of the services; the backup is not one. */
const units = others
const EXPOSURE_MAX = 3.0
/** DefaultStartLimitBurst= of systemd-system.conf(5). */
const SYSTEMD_START_LIMIT_BURST = 5

describe('systemd units', () => {
  test('there is one unit for all services and one for each standalone service, and one for backups', () => {
    assert.equal(basename(backup), 'sluice-backup.service')
    assert.deepEqual(
      units.map((path) => basename(path)),
      [
        'sluice-execution.service',
        'sluice-gateway.service',
        'sluice-indexer.service',
        'sluice-localnet.service',
        'sluice-sender.service',
        'sluice-shreds.service',
        'sluice.service',
      ],
    )
  })

  test('the sample for ports below 1024 gives the process that capability and no other', async () => {
    const sample = join(folder, 'port-443.conf')
    for (const key of ['CapabilityBoundingSet', 'AmbientCapabilities'])
      assert.deepEqual(valuesOf(sample, key), ['CAP_NET_BIND_SERVICE'])
    // What systemd does with these settings, without systemd: an unprivileged user in a user namespace of its own.
    const bind = (capability: string) =>
      spawnSync(
        'unshare',
        [
          ...['-Urn', 'setpriv', '--no-new-privs', `--bounding-set=${capability}`, `--inh-caps=${capability}`],
          ...[`--ambient-caps=${capability}`, process.execPath, '-e'],
          "const s = require('node:net').createServer(); s.on('error', (e) => { console.log(e.code); process.exit() }); s.listen(443, '0.0.0.0', () => { console.log('open'); s.close() })",
        ],
        { encoding: 'utf8' },
      )
    assert.equal(bind('-all,+net_bind_service').stdout.trim(), 'open', bind('-all,+net_bind_service').stderr)
  })

  test('the sample for the relay grants the priorities that it asks for, and no capability', () => {
    const sample = join(folder, 'relay-priority.conf')
    assert.deepEqual(valuesOf(sample, 'LimitNICE'), ['-10'])
    assert.deepEqual(valuesOf(sample, 'CPUWeight'), ['1000'])
    assert.deepEqual(valuesOf(sample, 'LimitRTPRIO'), ['2'])
    assert.deepEqual(valuesOf(sample, 'RestrictRealtime'), ['no'])
    assert.deepEqual(valuesOf(sample, 'SystemCallFilter'), ['sched_setscheduler sched_setaffinity'])
    assert.deepEqual(valuesOf(sample, 'AmbientCapabilities'), [])
  })

  test('the kernel settings grant the buffers of the configuration', () => {
    const text = readFileSync(join(root, 'ops/sysctl/60-sluice.conf'), 'utf8')
    const settings = new Map(
      [...text.matchAll(/^([a-z0-9_.]+) = (\d+)$/gm)].map(([, key = '', value]) => [key, Number(value)]),
    )
    const { shreds } = configSchema.parse({})
    assert.equal(settings.get('net.core.rmem_max'), shreds.receiveBufferBytes)
    assert.equal(settings.get('net.core.wmem_max'), shreds.sendBufferBytes)
    for (const key of settings.keys()) assert.ok(existsSync(`/proc/sys/${key.replaceAll('.', '/')}`), key)
  })

  test('systemd-analyze verify accepts them and the samples', async () => {
    await using position = await temporaryFolder()
    const copies = [backup, ...units].map((path) => {
      const copy = position.file(basename(path))
      // The program must exist for the check: the one of this checkout replaces the installed one.
      writeFileSync(copy, readFileSync(path, 'utf8').replaceAll('/opt/sluice/sluice', join(root, 'sluice')))
      return copy
    })
    mkdirSync(position.file('sluice.service.d'))
    copyFileSync(join(folder, 'sluice-backup.timer'), position.file('sluice-backup.timer'))
    for (const name of ['credentials.conf', 'port-443.conf', 'relay-priority.conf'])
      copyFileSync(join(folder, name), position.file(`sluice.service.d/${name}`))
    assert.deepEqual(analyze('verify', '--man=no', ...copies, position.file('sluice-backup.timer')), {
      status: 0,
      stdout: '',
      stderr: '',
    })

    const broken = position.file('broken.service')
    writeFileSync(broken, readFileSync(copies.at(-1) ?? '', 'utf8').replace('KillMode=', 'KilMode='))
    assert.match(analyze('verify', '--man=no', broken).stderr, /KilMode/, 'systemd-analyze reports errors')
  })

  for (const path of [backup, ...units]) {
    test(`${basename(path)} has an exposure of at most ${EXPOSURE_MAX}`, (t) => {
      const { status, stdout, stderr } = analyze(
        'security',
        '--offline=true',
        `--threshold=${EXPOSURE_MAX * 10}`,
        '--no-pager',
        path,
      )
      const exposure = Number(/Overall exposure level for \S+: ([0-9.]+)/.exec(stdout)?.[1])
      t.diagnostic(`exposure ${exposure}`)
      assert.equal(status, 0, stderr)
      assert.ok(exposure <= EXPOSURE_MAX)
    })
  }

  for (const path of units) {
    test(`${basename(path)} starts and reloads with existing commands, and handles exit codes as documented`, async () => {
      const commands = [...valuesOf(path, 'ExecStart'), ...valuesOf(path, 'ExecReload')]
      assert.ok(commands.length > 0)
      // The embedded chain has nothing to reload.
      const isReloaded = !path.includes('localnet')
      assert.equal(valuesOf(path, 'ExecReload').length, isReloaded ? 1 : 0, 'systemctl reload')
      for (const command of commands) {
        const [program, ...words] = command.split(' ')
        assert.equal(program, '/opt/sluice/sluice')
        const flagsFrom = words.findIndex((word) => word.startsWith('--'))
        const [name, flags] = [words.slice(0, flagsFrom), words.slice(flagsFrom)]
        const { code, stdout } = await sluice([...name, '--help'])
        assert.equal(code, 0, command)
        for (const flag of flags.filter((word) => word.startsWith('--')))
          assert.ok(stdout.includes(`[${flag}]`), command)
        assert.ok(flags.includes(`/var/lib/${valuesOf(path, 'StateDirectory')[0]}`), 'the state folder is writable')
      }
      const prevented = valuesOf(path, 'RestartPreventExitStatus')[0]?.split(' ') ?? []
      for (const [code, { retryable }] of Object.entries(EXIT_CODES))
        if (retryable) assert.ok(!prevented.includes(code), `${code} is retryable`)
      assert.deepEqual(prevented, ['2', '77', '78'])
      assert.equal(valuesOf(path, 'Restart')[0], 'on-failure')
    })
  }

  test('the backup has a name of its own, and may write where it goes', async () => {
    const [line = ''] = valuesOf(backup, 'ExecStart')
    const [, path = '', flags = ''] =
      /^\/bin\/sh -c 'exec \/opt\/sluice\/sluice backup "([^"]+)" (.*)'$/.exec(line) ?? []
    // As systemd expands it.
    const shell = path.replaceAll('$$', '$').replaceAll('%%', '%')
    const { stdout } = spawnSync('sh', ['-c', `echo "${shell}"`], { encoding: 'utf8' })
    assert.match(stdout, /^\/var\/backups\/sluice\/\d{4}-\d\d-\d\dT\d{6}Z\.jsonl\n$/)
    assert.deepEqual(valuesOf(backup, 'ReadWritePaths'), ['/var/backups/sluice'])
    const help = (await sluice(['backup', '--help'])).stdout
    for (const flag of flags.match(/--\S+/g) ?? []) assert.ok(help.includes(`[${flag}]`), flag)
  })

  test('a start that fails is retried for as long as it fails', () => {
    for (const path of units) {
      const [restartSec = 0, intervalSec, burst = SYSTEMD_START_LIMIT_BURST] = [
        'RestartSec',
        'StartLimitIntervalSec',
        'StartLimitBurst',
      ].map((key) => valuesOf(path, key).map(Number)[0])
      assert.ok(intervalSec !== undefined, `${basename(path)}: systemd has a limit by default`)
      assert.ok(restartSec * burst > intervalSec, `${basename(path)}: ${burst} starts fit into ${intervalSec} s`)
      // A crash is not a long outage, and failing starts leave the processor to the database they wait for.
      assert.ok(restartSec >= 5 && restartSec <= 10, `${basename(path)}: ${restartSec} s`)
    }
  })

  test('all announce their process in one folder that no unit removes, where the commands of their user look', () => {
    for (const path of units)
      assert.deepEqual(
        ['RuntimeDirectory', 'RuntimeDirectoryMode', 'RuntimeDirectoryPreserve'].map((key) => valuesOf(path, key)),
        [['sluice'], ['0700'], ['yes']],
        basename(path),
      )
  })

  test('the environment variables of units are options, and no two units share a metrics port', async () => {
    const { stdout } = await sluice(['config', 'schema'])
    const { properties } = JSON.parse(stdout) as { properties: Record<string, { properties: object }> }
    const options = units.flatMap(optionsOf)
    for (const option of options) {
      const [, section = '', key = ''] = /^SLUICE_([A-Z]+)__([A-Z_]+)=/.exec(option) ?? []
      assert.ok(camelCase(key) in (properties[camelCase(section)]?.properties ?? {}), option)
    }
    const ports = options.filter((option) => option.startsWith('SLUICE_METRICS__LISTEN='))
    assert.equal(new Set([...ports, 'SLUICE_METRICS__LISTEN=127.0.0.1:9464']).size, 6)
  })

  test('a process refuses new connections before systemd throttles it for its memory', () => {
    const { memory, indexer } = configSchema.parse({})
    const databaseBytes = indexer.store.residentBytesMax
    const childrenOf: Record<string, number> = {
      'sluice.service': databaseBytes,
      'sluice-indexer.service': databaseBytes,
    }
    for (const path of units) {
      const [highBytes = 0, maxBytes = 0] = ['MemoryHigh', 'MemoryMax'].map((key) => bytesOf(valuesOf(path, key)[0]))
      assert.ok(highBytes < maxBytes, basename(path))
      // No customer connects to these two, so they have no memory ceiling.
      if (/-(localnet|shreds)\.service$/.test(path)) continue
      const set = optionsOf(path).find((option) => option.startsWith('SLUICE_MEMORY__RESIDENT_BYTES_MAX='))
      const ceilingBytes = set === undefined ? memory.residentBytesMax : Number(set.split('=')[1])
      const takenBytes = ceilingBytes + (childrenOf[basename(path)] ?? 0)
      assert.ok(takenBytes >= 512 * 2 ** 20 && takenBytes <= 0.9 * highBytes, `${basename(path)}: ${takenBytes}`)
    }
  })

  test('all have the same sandbox settings', () => {
    const walls = [backup, ...units].map((path) => {
      const text = readFileSync(path, 'utf8')
      return text.slice(text.indexOf('UMask=')).split('[Install]')[0]?.trim()
    })
    assert.match(walls[0] ?? '', /NoNewPrivileges=yes[^]*CapabilityBoundingSet=\n/)
    assert.equal(new Set(walls).size, 1)
  })

  test('systemd is notified of readiness, of the watchdog and of stopping', async () => {
    for (const path of units)
      assert.deepEqual([valuesOf(path, 'Type'), valuesOf(path, 'NotifyAccess')], [['notify'], ['main']])
    await using position = await temporaryFolder()
    using heard = await listenAsServiceManager(position.file('notify'))
    await using running = serve({
      cwd: position.path,
      program: join(root, 'sluice'),
      env: { NOTIFY_SOCKET: position.file('notify'), WATCHDOG_USEC: '200000' },
    })
    await running.line(/"msg":"started"/)
    await until('READY=1 is sent', () => heard.all().includes('READY=1'))
    await until('it lives', () => heard.all().filter((line) => line === 'WATCHDOG=1').length >= 2)
    assert.equal(await running.stop(), 0)
    assert.ok(heard.all().includes('STOPPING=1'))
  })

  test('the time to stop is longer than a drain takes by default', async () => {
    const { stdout } = await sluice(['config', 'show', '--json'])
    assert.match(stdout, /deadlineMs/)
    const deadlineMs = Number(/deadlineMs"[^0-9]*(\d+)/.exec(stdout)?.[1])
    for (const path of units) assert.ok(Number(valuesOf(path, 'TimeoutStopSec')[0]) * 1000 > deadlineMs + 5000)
  })

  test('the user of the units is created by sysusers.conf', async () => {
    await using position = await temporaryFolder()
    mkdirSync(position.file('etc'))
    const made = spawnSync('systemd-sysusers', ['--root', position.path, '-'], {
      input: readFileSync(join(folder, 'sysusers.conf')),
      encoding: 'utf8',
    })
    assert.equal(made.status, 0, made.stderr)
    assert.match(
      readFileSync(position.file('etc/passwd'), 'utf8'),
      /^sluice:.*:\/var\/lib\/sluice:\/usr\/sbin\/nologin$/m,
    )
    for (const path of units) assert.equal(valuesOf(path, 'User')[0], 'sluice')
  })

  test('a systemd credential may belong to root and be readable by the group; any other secret may not', async () => {
    await using position = await temporaryFolder()
    mkdirSync(position.file('credentials'), { mode: 0o700 })
    writeFileSync(position.file('credentials/bearer'), 'scrape-me', { mode: 0o440 })
    const check = (env: Record<string, string>) =>
      sluice(['config', 'check'], {
        cwd: position.path,
        env: { SLUICE_METRICS__BEARER: `file:${position.file('credentials/bearer')}`, ...env },
      })
    const refused = await check({})
    assert.equal(refused.code, 78)
    assert.match(refused.stderr, /bearer holds a secret and has mode 0440/)
    const elsewhere = await check({ CREDENTIALS_DIRECTORY: position.path })
    assert.equal(elsewhere.code, 78)
    const given = await check({ CREDENTIALS_DIRECTORY: position.file('credentials') })
    assert.equal(given.code, 0, given.stderr)
  })

  test('logs go to standard output only: no option names a log file, so no rotation is needed', async () => {
    const { stdout } = await sluice(['config', 'schema'])
    const schema = JSON.parse(stdout) as { properties: { log: { properties: object } } }
    assert.deepEqual(Object.keys(schema.properties.log.properties), ['level'])
    for (const path of units) assert.deepEqual(valuesOf(path, 'StandardOutput'), ['journal'])
    assert.ok(!existsSync(join(root, 'ops/logrotate')))
  })
})

function valuesOf(path: string, key: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value ?? '')
}

/** Options of the configuration that a unit sets. */
function optionsOf(path: string): string[] {
  const set = valuesOf(path, 'Environment').flatMap((value) => value.split(' '))
  return set.filter((each) => each.startsWith('SLUICE_'))
}

function camelCase(upper: string): string {
  return upper.toLowerCase().replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function bytesOf(size = ''): number {
  const [, figure, unit] = /^(\d+)([MG])$/.exec(size) ?? []
  return Number(figure) * (unit === 'G' ? 2 ** 30 : 2 ** 20)
}

function analyze(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync('systemd-analyze', args, {
    encoding: 'utf8',
    env: { ...process.env, SYSTEMD_COLORS: '0' },
    timeout: 60_000,
  })
  return { status, stdout, stderr }
}
