import { spawnSync } from 'node:child_process'
import { globSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { prepareTestPackages } from './test-packages.ts'

/** A program that tests or benches use and npm does not install. */
type Need = { name: string; debian: string; why: string; find: () => string | undefined }

const TEST_NEEDS: readonly Need[] = [
  {
    name: 'PostgreSQL 15 or newer',
    debian: 'postgresql',
    why: 'the access store on PostgreSQL',
    // Debian keeps server programs out of PATH, one folder for each major version.
    find: () =>
      globSync('/usr/lib/postgresql/*/bin/postgres').findLast((path) => Number(path.split('/')[4]) >= 15) ??
      findInPath('postgres'),
  },
  { name: 'redis-server', debian: 'redis-server', why: 'the shared quota', find: () => findInPath('redis-server') },
  { name: 'prometheus', debian: 'prometheus', why: 'a real scrape of /metrics', find: () => findInPath('prometheus') },
  { name: 'promtool', debian: 'prometheus', why: 'validation of /metrics', find: () => findInPath('promtool') },
  { name: 'openssl', debian: 'openssl', why: 'certificates for the TLS listener', find: () => findInPath('openssl') },
  { name: 'curl', debian: 'curl', why: 'the commands of the handover card', find: () => findInPath('curl') },
  { name: 'h2load', debian: 'nghttp2-client', why: 'load in HTTP/2', find: () => findInPath('h2load') },
  { name: 'chromium', debian: 'chromium', why: 'the page in a browser', find: () => findInPath('chromium') },
  {
    name: 'nginx',
    debian: 'nginx',
    why: 'a proxy in front, and benchmarks',
    find: () => findInPath('nginx'),
  },
  { name: 'haproxy', debian: 'haproxy', why: 'the same', find: () => findInPath('haproxy') },
  {
    name: 'caddy',
    debian: 'caddy',
    why: 'a proxy in front, and a QUIC peer that requires a client certificate',
    find: () => findInPath('caddy'),
  },
  {
    name: 'systemd-analyze',
    debian: 'systemd',
    why: 'validation of systemd units',
    find: () => findInPath('systemd-analyze'),
  },
  {
    name: 'clickhouse-server',
    debian: 'clickhouse-server',
    why: 'the indexer on ClickHouse',
    find: () => findInPath('clickhouse-server'),
  },
  { name: 'varnishtest', debian: 'varnish', why: 'HTTP byte for byte', find: () => findInPath('varnishtest') },
  { name: 'slowhttptest', debian: 'slowhttptest', why: 'slow clients', find: () => findInPath('slowhttptest') },
  { name: 'ip', debian: 'iproute2', why: 'network namespaces for shreds', find: () => findInPath('ip') },
  { name: 'zsh', debian: 'zsh', why: 'its completion script', find: () => findInPath('zsh') },
  { name: 'fish', debian: 'fish', why: 'its completion script', find: () => findInPath('fish') },
  {
    name: 'python3-grpcio',
    debian: 'python3-grpcio python3-protobuf',
    why: 'a gRPC client in another language',
    find: () => globSync('/usr/lib/python3/dist-packages/grpc/__init__.py')[0],
  },
  { name: 'protoc', debian: 'protobuf-compiler', why: 'the messages of that client', find: () => findInPath('protoc') },
  {
    // Recommended by protobuf-compiler only, so that not every machine with protoc has it.
    name: 'timestamp.proto',
    debian: 'libprotobuf-dev',
    why: 'the proto files that those messages import',
    find: () => globSync('/usr/{local/,}include/google/protobuf/timestamp.proto')[0],
  },
  {
    name: 'libfaketime',
    debian: 'libfaketime',
    why: 'clocks that jump',
    find: () => globSync('/usr/lib/{*/,}faketime/libfaketime.so.1')[0],
  },
]

const BENCH_NEEDS: readonly Need[] = [
  { name: 'wrk', debian: 'wrk', why: 'HTTP load', find: () => findInPath('wrk') },
  { name: 'taskset', debian: 'util-linux', why: 'processes on one core each', find: () => findInPath('taskset') },
  { name: 'gcc', debian: 'gcc libc6-dev', why: 'the reference programs in C', find: () => findInPath('gcc') },
  { name: 'g++', debian: 'g++', why: 'the reference program in C++', find: () => findInPath('g++') },
  ...TEST_NEEDS.filter(({ debian }) =>
    ['nginx', 'haproxy', 'openssl', 'curl', 'postgresql', 'clickhouse-server'].includes(debian),
  ),
]

/**
 * Installs what `npm test` needs and npm's own installation does not bring. Returns the names of programs that are still missing.
 */
export function prepareTestNeeds(report: (line: string) => void): string[] {
  return prepare(TEST_NEEDS, report)
}

/** The same for benches that need these Debian packages. Returns the packages whose program is still missing. */
export function prepareBenchNeeds(packages: ReadonlySet<string>, report: (line: string) => void): Set<string> {
  const needs = BENCH_NEEDS.filter(({ debian }) => packages.has(debian))
  prepare(needs, report)
  return new Set(needs.filter((need) => need.find() === undefined).map(({ debian }) => debian))
}

/** Looks for every need and installs missing ones with apt-get, without prompts. */
function prepare(needs: readonly Need[], report: (line: string) => void): string[] {
  const missing = needs.filter((need) => need.find() === undefined)
  if (missing.length === 0) return []
  for (const need of missing) report(`missing: ${need.name} (Debian package ${need.debian}), used for ${need.why}`)
  const problem = installFromDebian([...new Set(missing.flatMap((need) => need.debian.split(' ')))], report)
  if (problem !== undefined) report(`cannot install: ${problem}`)
  return needs.filter((need) => need.find() === undefined).map((need) => need.name)
}

// The policy file keeps Debian from starting the installed servers: tests start their own.
const INSTALL = `set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\\nexit 101\\n' >"$policy"
  chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "$@"
`

function installFromDebian(packages: string[], report: (line: string) => void): string | undefined {
  if (findInPath('apt-get') === undefined) return 'there is no apt-get on this machine'
  const isRoot = process.getuid?.() === 0
  if (!isRoot && spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status !== 0) {
    return `not root, and sudo asks for a password; run: sudo apt-get install ${packages.join(' ')}`
  }
  report(`installing with apt-get: ${packages.join(' ')}`)
  const command = [...(isRoot ? [] : ['sudo', '-n']), 'sh', '-c', INSTALL, 'sh', ...packages]
  const { status } = spawnSync(command[0] ?? 'sh', command.slice(1), { stdio: ['ignore', 'inherit', 'inherit'] })
  return status === 0 ? undefined : `apt-get ended with ${status ?? 'a signal'}`
}

export function findInPath(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/bin']
  return folders.map((folder) => globSync(join(folder, program))[0]).find((path) => path !== undefined)
}

if (import.meta.main) {
  const report = (line: string) => process.stdout.write(`${line}\n`)
  // `--packages` leaves out what comes from Debian.
  const missing = process.argv.includes('--packages') ? [] : prepareTestNeeds(report)
  if (!prepareTestPackages(report)) missing.push('packages of test/package.json')
  process.stdout.write(missing.length === 0 ? 'all test needs are installed\n' : `MISSING: ${missing.join(', ')}\n`)
  process.exitCode = missing.length === 0 ? 0 : 1
}
