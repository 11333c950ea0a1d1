import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parseYaml } from '@redocly/openapi-core'
import { validate } from 'dockerfile-utils'
import { parse as parseToml } from 'smol-toml'
import { configSchema } from '../../src/processes/compose/config/config.ts'
import { sluice, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const root = join(import.meta.dirname, '../..')
const folder = join(root, 'ops/docker')
const dockerfile = readFileSync(join(folder, 'Dockerfile'), 'utf8')
const { version, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string
  devDependencies: Record<string, string>
}

type Service = {
  image: string
  build: { context: string; dockerfile: string }
  stop_grace_period: string
  read_only: boolean
  cap_drop: string[]
  security_opt: string[]
  volumes: string[]
  tmpfs: string[]
  secrets: string[]
  ports: string[]
  networks: { front: { ipv4_address: string } }
}
type Compose = {
  services: { sluice: Service }
  networks: { front: { ipam: { config: { subnet: string; gateway: string }[] } } }
  volumes: Record<string, unknown>
  secrets: Record<string, { file: string }>
}
const compose = parseYaml(readFileSync(join(folder, 'compose.yaml'), 'utf8')) as Compose
const service = compose.services.sluice

/** Default ports of all listeners, from the schema. */
const config = configSchema.parse({})
const TCP_PORTS = [
  config.bundle.rpc.listen,
  config.bundle.ws.listen,
  config.bundle.grpc.listen,
  config.sender.listen,
  config.indexer.listen,
  config.execution.listen,
  config.metrics.listen,
].map(portOf)
const UDP_PORTS = [portOf(config.shreds.listen)]

describe('the container image', () => {
  test('has a Dockerfile that passes the linter', () => {
    assert.deepEqual(validate(dockerfile), [])
    assert.notDeepEqual(
      validate(dockerfile.replace('STOPSIGNAL SIGTERM', 'STOPSIGNL SIGTERM')),
      [],
      'the linter reports errors',
    )
  })

  test('is built from this release with this Node', () => {
    assert.equal(instruction('ARG'), `VERSION=${version}`)
    assert.ok(dockerfile.includes(`FROM node:${devDependencies['node']}-`))
    assert.ok(dockerfile.includes(`-t sluice:${version} dist/release`))
    assert.match(instruction('COPY'), /^sluice-\$\{VERSION\}\.tgz SHA256SUMS /)
    assert.match(dockerfile, /npm ci [^\n]*--ignore-scripts/)
    // Node is linked with a library that the slim image of Debian does not have.
    assert.match(dockerfile.slice(dockerfile.indexOf('FROM debian:')), /apt-get install .*\blibatomic1\b/)
  })

  test('runs as an unprivileged user on a read-only root file system', () => {
    assert.equal(instruction('USER'), '10001:10001')
    assert.match(dockerfile, /useradd [^\n]*--uid 10001/)
    assert.doesNotMatch(dockerfile.slice(dockerfile.indexOf('USER ')), /^(RUN|COPY|ADD) /m)
    assert.equal(service.read_only, true)
    assert.deepEqual(service.cap_drop, ['ALL'])
    assert.deepEqual(service.security_opt, ['no-new-privileges:true'])
    assert.match(service.tmpfs[0] ?? '', /^\/tmp:.*uid=10001/)
  })

  test('exposes exactly the ports of the program', () => {
    const exposed = instruction('EXPOSE').split(' ').toSorted()
    const wanted = [...TCP_PORTS.map(String), ...UDP_PORTS.map((port) => `${port}/udp`)]
    assert.deepEqual(exposed, wanted.toSorted())
    // No published port is reachable from outside: TCP is behind the proxy, and senders of UDP would all have the address of the gateway.
    assert.deepEqual(
      service.ports.map((port) => port.replace(/^127\.0\.0\.1:/, '').replace(/^\d+:/, '')).toSorted(),
      exposed,
    )
    for (const port of service.ports) assert.match(port, /^127\.0\.0\.1:(\d+):\1(\/udp)?$/)
  })

  test('starts, stops and checks its health with existing commands', async () => {
    assert.equal(instruction('ENTRYPOINT'), '["sluice"]')
    const health = JSON.parse(/HEALTHCHECK .*CMD (\[.*\])/.exec(dockerfile)?.[1] ?? '') as string[]
    const start = JSON.parse(instruction('CMD')) as string[]
    assert.equal(health[0], 'sluice')
    for (const words of [health.slice(1), start]) {
      const { code, stdout } = await sluice([words[0] ?? '', '--help'])
      assert.equal(code, 0)
      for (const flag of words.filter((word) => word.startsWith('--'))) assert.ok(stdout.includes(`[${flag}]`), flag)
    }
    assert.equal(instruction('STOPSIGNAL'), 'SIGTERM')
    const grace = Number(/^(\d+)s$/.exec(service.stop_grace_period)?.[1])
    assert.ok(grace * 1000 > config.drain.deadlineMs + 5000)
    assert.ok(dockerfile.includes('ln -s /opt/sluice/sluice /usr/local/bin/sluice'))
  })

  test('compose refers to existing files, folders and volumes, and matches the image', () => {
    assert.equal(service.image, `sluice:${version}`)
    assert.equal(join(folder, service.build.dockerfile.replace('../../ops/docker/', '')), join(folder, 'Dockerfile'))
    assert.equal(join(folder, service.build.context), join(root, 'dist/release'))
    const [state, config_] = service.volumes.map((volume) => volume.split(':'))
    assert.ok((state?.[0] ?? '') in compose.volumes)
    assert.equal(instruction('VOLUME'), JSON.stringify([state?.[1]]))
    assert.match(dockerfile, new RegExp(`SLUICE_STATE=${state?.[1]}`))
    assert.ok(existsSync(join(folder, config_?.[0] ?? '-')))
    assert.ok(instruction('CMD').includes(`"${config_?.[1]}"`))
    assert.deepEqual(Object.keys(compose.secrets), service.secrets)
    // A secret inside the checkout would be packed into the next release.
    for (const { file } of Object.values(compose.secrets)) assert.match(file, /^\/etc\/sluice\/secrets\//)
  })

  test('backup and restore as documented: one service by its entry point, in a folder that is mounted', () => {
    const page = readFileSync(join(root, 'docs/packaging.md'), 'utf8')
    const lines = page.match(/^.*docker compose .*sluice (?:backup|restore) .*$/gm) ?? []
    // `exec` does not use the entry point, `run` does.
    assert.deepEqual(
      lines.map((line) => /(exec sluice sluice backup|run --rm sluice restore) (\/\w+)\//.exec(line)?.slice(1)),
      [
        ['exec sluice sluice backup', '/backup'],
        ['run --rm sluice restore', '/backup'],
      ],
    )
    for (const file of ['compose.yaml', 'compose.host.yaml'])
      assert.match(readFileSync(join(folder, file), 'utf8'), /^ {6}- \/\S+:\/backup$/m)
  })

  test('in the network of the host it has no ports of its own and the loopback configuration', () => {
    const text = readFileSync(join(folder, 'compose.host.yaml'), 'utf8')
    const { services } = parseYaml(text.replaceAll(/!(reset|override)/g, '')) as {
      services: { sluice: { network_mode: string; volumes: string[]; ports: string[] } }
    }
    assert.equal(services.sluice.network_mode, 'host')
    assert.match(text, /ports: !reset \[\]/)
    assert.match(text, /networks: !reset null/)
    assert.equal(services.sluice.volumes[0], service.volumes[0])
    const [from = '', to] = services.sluice.volumes[1]?.split(':') ?? []
    assert.equal(to, service.volumes[1]?.split(':')[1])
    const front = readFileSync(join(folder, from), 'utf8')
    for (const [, host] of front.matchAll(/listen = "([^"]+):\d+"/g)) assert.equal(host, '127.0.0.1')
  })

  test('its configuration starts a Sluice, trusts the gateway of its network and refers to the secret where compose mounts it', async () => {
    await using position = await temporaryFolder()
    const file = join(folder, 'sluice.toml')
    const parsed = parseToml(readFileSync(file, 'utf8')) as unknown as {
      metrics: { bearer: string }
      bundle: { trustedProxies: string[] }
      sender: { trustedProxies: string[] }
      execution: { trustedProxies: string[] }
      shreds: { sources: string[] }
    }
    const { gateway } = compose.networks.front.ipam.config[0] ?? {}
    for (const { trustedProxies } of [parsed.bundle, parsed.sender, parsed.execution])
      assert.deepEqual(trustedProxies, [gateway])
    // What a receiver on the host has as its address behind the translation.
    assert.deepEqual(parsed.shreds.sources, [gateway])
    assert.equal(parsed.metrics.bearer, `file:/run/secrets/${service.secrets[0]}`)

    // Without the mounted secret, and started on loopback: the check knows which listeners would be public.
    const env = { SLUICE_METRICS__BEARER: 'env:BEARER', BEARER: 'scrape-me' }
    const checked = await sluice(['config', 'check', '--config', file], { env })
    assert.equal(checked.code, 0, checked.stderr)
    await using running = serve({
      cwd: position.path,
      args: ['--config', file, '--state', position.file('state')],
      env,
    })
    await running.line(/"msg":"started"/)
    assert.equal(await running.stop(), 0)
  })
})

function instruction(name: string): string {
  const found = new RegExp(`^${name} (.*)$`, 'm').exec(dockerfile)?.[1]
  assert.ok(found, `${name} is in the Dockerfile`)
  return found
}

function portOf(listen: string): number {
  return Number(listen.slice(listen.lastIndexOf(':') + 1))
}
