import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { loadConfig } from '../../src/platform/config/file.ts'
import { checkListenerFiles } from '../../src/processes/compose/config/check-listeners.ts'
import { configSchema } from '../../src/processes/compose/config/config.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

type Finding = { check: string; level: 'ok' | 'warn' | 'bad'; message: string; fix: string | null }

test('doctor checks the limits of the running process, not those of its own shell', async () => {
  await using home = await temporaryFolder()
  await using running = serve({ cwd: home.path })
  await running.line(/"msg":"started"/)
  const doctor = async (limits: string) => {
    execFileSync('prlimit', ['--pid', String(running.child.pid), `--nofile=${limits}:`])
    const { stdout } = await sluice(['doctor', '--json'], { cwd: home.path })
    return (JSON.parse(stdout) as Finding[]).find(({ check }) => check === 'descriptors')
  }
  const few = await doctor('5000')
  assert.equal(few?.level, 'warn')
  assert.match(few.message, new RegExp(`^process ${running.child.pid}: only 5000 open files allowed`))
  assert.match(few.fix ?? '', /LimitNOFILE=65536/)
  const { stdout } = await sluice(['doctor', '--json'], { cwd: home.path })
  const umask = (JSON.parse(stdout) as Finding[]).find(({ check }) => check === 'umask')
  assert.match(umask?.message ?? '', new RegExp(`^process ${running.child.pid}: 0`))
})

test('doctor and config check name the owner of a TLS key that the service user cannot read', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('SKIPPED: only root can change the owner of a file')
  await using home = await temporaryFolder()
  const words = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=localhost -days 90'
  execFileSync('openssl', [...words.split(' '), '-keyout', home.file('key.pem'), '-out', home.file('cert.pem')], {
    stdio: 'ignore',
  })
  chmodSync(home.file('key.pem'), 0o600)
  chmodSync(home.path, 0o755)
  writeFileSync(home.file('sluice.toml'), '[metrics]\ntls = { cert = "cert.pem", key = "key.pem" }\n')
  const { value } = await loadConfig({ schema: configSchema, env: {}, file: home.file('sluice.toml') })
  process.seteuid?.(65_534)
  try {
    const findings = await checkListenerFiles(value, home.path)
    const found = findings.find(({ level }) => level === 'bad')
    assert.match(found?.message ?? '', /key\.pem belongs to user 0, this command runs as user 65534/)
    assert.match(found && 'fix' in found ? found.fix : '', /as root: chown 65534 .*key\.pem/)
  } finally {
    process.seteuid?.(0)
  }
})
